-- Signs in one identity in every case: links it to the user with its e-mail address, creates a
-- user, updates the provider's data, or refuses. `sign_in_known.sql` and `sign_in_new.sql` handle
-- the frequent cases in batches; this statement handles all others.
--
-- A concurrent first sign-in shows as a unique violation (users_email_key,
-- identities_provider_subject_key), a concurrent deletion as a foreign key violation
-- (sessions_identity_id_fkey, identities_user_id_fkey), and a concurrent change of the user with
-- that e-mail as the outcome 'raced'. In each case nothing is written, and the caller runs the
-- statement again.
WITH input AS (
    SELECT $1::text AS provider, $2::text AS subject, $3::text AS email, lower($3::text COLLATE "C") AS folded,
           -- True if the provider verifies the e-mail address and its link policy accepts that.
           $4::boolean AS proves, $5::text AS name, $6::text AS picture,
           $7::uuid AS session_id, $8::bytea AS family_hash, $9::bytea AS token_hash,
           $10::text AS client_id, $11::inet AS ip, $12::text AS user_agent, $13::text AS device_name,
           $14::text AS device_platform, $15::text AS request_id,
           now() + $16::integer * interval '1 second' AS expires_at,
           $17::uuid AS new_user_id, $18::uuid AS new_identity_id,
           -- The outcome for an unknown identity whose e-mail address a user has ('linked'), or no
           -- user has ('created'); or the reason for a refusal instead.
           $19::text AS if_taken, $20::text AS if_free, $21::boolean AS refuse_recycled,
           -- The name as the provider gave it to the app, for a new user whose token contains no
           -- name.
           $22::text AS reported_name,
           $23::timestamptz AS issued_at, $24::bytea AS jkt, $25::integer AS most_identities
),
known AS MATERIALIZED (
    SELECT i.id AS identity_id, i.email AS identity_email, i.email_verified AS identity_email_verified,
           i.name AS identity_name, i.picture AS identity_picture, i.suspended_at, i.tokens_from,
           u.id, u.email, u.email_verified, u.email_vouched, u.name, u.picture, u.created_at, u.updated_at, u.disabled_at,
           u.own_name, u.claims::text AS claims, coalesce(u.seen_noted_on <= current_date - 35, true) AS away,
           -- True if the token has an address that is not the identity's, or is proven while the
           -- identity's is not, or the other way round.
           t.email IS NOT NULL
               AND (t.folded, t.proves) IS DISTINCT FROM (lower(i.email COLLATE "C"), i.email_verified) AS proof_differs,
           -- True if the user's own address came from this identity, or the user has no address.
           coalesce(u.email = coalesce(lower(i.email COLLATE "C"), ''), true) AS email_is_its_own
    FROM input t
    JOIN identities i ON i.provider = t.provider AND i.subject = t.subject
    JOIN users u ON u.id = i.user_id
),
-- The users whose rows the decision depends on, as of this statement's snapshot: the user who has
-- the address of an unknown identity, or the new address of a known one, and the known identity's
-- own user if the token may change whether their address is verified.
seen AS MATERIALIZED (
    SELECT u.id, u.updated_at
    FROM input t JOIN users u ON u.email = t.folded
    WHERE NOT EXISTS (SELECT FROM known WHERE NOT (t.proves AND email_is_its_own AND email IS DISTINCT FROM t.folded))
    UNION
    SELECT known.id, updated_at FROM known, input t WHERE proof_differs OR t.proves AND NOT known.email_verified
),
-- The same users after their rows have been locked, in the order of their ids, so that concurrent
-- sign-ins cannot deadlock.
locked AS MATERIALIZED (
    SELECT u.id, u.updated_at, u.email, u.created_at, u.disabled_at, u.email_verified, u.name, u.picture,
           u.imported_at IS NOT NULL AND u.seen_noted_on IS NULL
               AND NOT EXISTS (SELECT FROM identities i WHERE i.user_id = u.id) AS waiting
    FROM users u
    WHERE u.id IN (SELECT id FROM seen)
    ORDER BY u.id
    FOR NO KEY UPDATE
),
-- The user, other than the identity's own, with the token's address.
holder AS MATERIALIZED (
    SELECT l.* FROM input t JOIN locked l ON l.email = t.folded
    WHERE NOT EXISTS (SELECT FROM known WHERE known.id = l.id)
),
decision AS MATERIALIZED (
    SELECT CASE
               WHEN known.disabled_at IS NOT NULL THEN 'user_disabled'
               WHEN known.suspended_at IS NOT NULL THEN 'identity_suspended'
               WHEN known.tokens_from > t.issued_at THEN 'token_expired'
               -- A user has changed since the snapshot, and perhaps their identities, on which the
               -- decision depends.
               WHEN EXISTS (
                   SELECT FROM seen s LEFT JOIN locked l ON l.id = s.id WHERE l.updated_at IS DISTINCT FROM s.updated_at
               ) THEN 'raced'
               WHEN known.id IS NOT NULL THEN 'signed_in'
               WHEN unknown_identity_refusal(t.provider, t.subject, t.issued_at) IS NOT NULL
                   THEN unknown_identity_refusal(t.provider, t.subject, t.issued_at)
               WHEN holder.id IS NULL THEN t.if_free
               WHEN t.if_taken <> 'linked' THEN t.if_taken
               -- A user with the unverified address loses it to the user who verifies it. An
               -- imported user without identities is linked instead.
               WHEN NOT holder.email_verified AND NOT holder.waiting THEN 'created'
               WHEN holder.disabled_at IS NOT NULL THEN 'user_disabled'
               -- An address that its user never verified has not been recycled.
               WHEN t.refuse_recycled AND same.provider AND holder.email_verified THEN 'identity_conflict'
               -- A hijacker may read mailboxes whose addresses the account shows, and verify one at
               -- another provider.
               WHEN has_hijacked_identity(holder.id) THEN 'link_required'
               WHEN (SELECT count(*) FROM identities i WHERE i.user_id = holder.id) >= t.most_identities
                   THEN 'too_many_identities'
               ELSE 'linked'
           END AS outcome,
           same.provider AS same_provider
    FROM input t
    LEFT JOIN known ON true
    LEFT JOIN holder ON true
    LEFT JOIN LATERAL (
        SELECT EXISTS (SELECT FROM identities i WHERE i.user_id = holder.id AND i.provider = t.provider) AS provider
        WHERE holder.id IS NOT NULL
    ) AS same ON true
),
-- The provider's new data replaces the data of a known identity. The user's own fields follow while
-- they equal the identity's. The e-mail address follows only if it is proven, no other user has
-- proven it, and it does not belong to an imported user who has yet to sign in.
updates AS MATERIALIZED (
    SELECT k.id, k.identity_id, k.away,
           CASE
               WHEN t.folded IS NULL OR NOT t.proves THEN false
               WHEN k.email = t.folded THEN NOT k.email_verified
               ELSE k.email_is_its_own AND NOT EXISTS (SELECT FROM holder WHERE email_verified OR waiting)
           END AS email_follows,
           -- Predicts whether `withdraw_proof()` will withdraw the verification.
           k.email_verified AND k.proof_differs AND NOT k.email_vouched AND NOT EXISTS (
               SELECT FROM identities i
               WHERE i.user_id = k.id AND i.id <> k.identity_id AND i.email_verified AND lower(i.email COLLATE "C") = k.email
           ) AND (t.proves AND k.email = t.folded) IS NOT TRUE AS proof_goes,
           NOT k.own_name AND
               coalesce(k.name IS NOT DISTINCT FROM k.identity_name AND t.name <> k.name, k.name IS NULL AND t.name IS NOT NULL)
               AS name_follows,
           coalesce(k.picture IS NOT DISTINCT FROM k.identity_picture AND t.picture <> k.picture,
                    k.picture IS NULL AND t.picture IS NOT NULL) AS picture_follows,
           (t.email IS NOT NULL AND (t.email, t.proves) IS DISTINCT FROM (k.identity_email, k.identity_email_verified))
               OR t.name <> coalesce(k.identity_name, '') OR t.picture <> coalesce(k.identity_picture, '')
               AS identity_differs,
           -- This identity proves the address from now on, so the product no longer vouches for it.
           (k.email_vouched AND t.proves AND k.email = t.folded) IS TRUE AS vouch_ends,
           k.proof_differs
    FROM input t JOIN known k ON true JOIN decision d ON d.outcome = 'signed_in'
),
-- Clears the address of a user who has not verified it, before the user who has verified it gets
-- it: `users.email` is unique.
displaced_holder AS (
    UPDATE users u SET email = NULL, email_verified = false, updated_at = now()
    FROM holder h JOIN decision d ON d.outcome = 'created' OR EXISTS (SELECT FROM updates WHERE email_follows)
    WHERE u.id = h.id
    RETURNING u.id
),
created AS (
    INSERT INTO users (id, email, email_verified, name, own_name, picture, seen_noted_on)
    SELECT t.new_user_id, t.folded, t.proves, coalesce(t.name, t.reported_name),
           t.name IS NULL AND t.reported_name IS NOT NULL, t.picture, current_date
    FROM input t JOIN decision d ON d.outcome = 'created' LEFT JOIN displaced_holder ON true
    RETURNING id, email, email_verified, name, picture, created_at, NULL::text AS claims
),
linked AS (
    UPDATE users u
    SET email_verified = true, email_vouched = false, name = coalesce(u.name, t.name), picture = coalesce(u.picture, t.picture),
        seen_noted_on = current_date, updated_at = now()
    FROM input t, holder h, decision d
    WHERE d.outcome = 'linked' AND u.id = h.id
    RETURNING u.id, u.email, u.email_verified, u.name, u.picture, u.created_at, u.claims::text
),
-- The user of the new identity.
owner AS (
    SELECT * FROM created UNION ALL SELECT * FROM linked
),
created_identity AS (
    INSERT INTO identities (id, user_id, provider, subject, email, email_verified, name, picture)
    SELECT t.new_identity_id, o.id, t.provider, t.subject, t.email, t.proves, t.name, t.picture
    FROM input t, owner o
),
changed_user AS (
    UPDATE users u
    SET email = CASE WHEN n.email_follows THEN t.folded ELSE u.email END,
        email_verified = u.email_verified OR n.email_follows,
        email_vouched = u.email_vouched AND NOT n.email_follows AND NOT n.vouch_ends,
        -- The user may have chosen a name since this statement's snapshot.
        name = CASE WHEN n.name_follows AND NOT u.own_name THEN t.name ELSE u.name END,
        picture = CASE WHEN n.picture_follows THEN t.picture ELSE u.picture END,
        seen_noted_on = current_date,
        updated_at = now()
    FROM updates n CROSS JOIN input t CROSS JOIN (SELECT count(*) FROM displaced_holder) AS first
    WHERE u.id = n.id
          AND (n.email_follows OR n.name_follows OR n.picture_follows OR n.vouch_ends OR n.proof_differs)
    RETURNING u.id, u.email, u.email_verified, u.name, u.picture, u.created_at, u.claims::text
),
-- Notes the day once the noted one is old, if nothing else of the user changes. No decision depends
-- on it, so `updated_at` stays. It skips a locked user, since a later sign-in will note the day.
visited AS (
    UPDATE users SET seen_noted_on = current_date
    WHERE id = (
        SELECT u.id FROM users u JOIN updates n ON n.id = u.id
        WHERE n.away AND NOT (n.email_follows OR n.name_follows OR n.picture_follows OR n.vouch_ends OR n.proof_differs)
        FOR NO KEY UPDATE OF u SKIP LOCKED
    )
),
changed_identity AS (
    UPDATE identities i
    SET email = coalesce(t.email, i.email),
        email_verified = CASE WHEN t.email IS NULL THEN i.email_verified ELSE t.proves END,
        name = coalesce(t.name, i.name),
        picture = coalesce(t.picture, i.picture),
        updated_at = now()
    FROM updates n, input t
    WHERE i.id = n.identity_id AND n.identity_differs
),
answer AS MATERIALIZED (
    SELECT d.outcome, coalesce(k.identity_id, t.new_identity_id) AS identity_id,
           coalesce(t.email, k.identity_email) AS identity_email,
           u.id AS user_id, u.email, u.email_verified AND (n.proof_goes AND NOT n.email_follows) IS NOT TRUE AS email_verified,
           u.name, u.picture, u.created_at, u.claims,
           d.outcome IN ('signed_in', 'linked', 'created') AS opens
    FROM input t
    JOIN decision d ON true
    LEFT JOIN known k ON true
    LEFT JOIN updates n ON true
    LEFT JOIN LATERAL (
        SELECT * FROM owner
        UNION ALL SELECT * FROM changed_user
        UNION ALL SELECT k.id, k.email, k.email_verified, k.name, k.picture, k.created_at, k.claims
        WHERE k.id IS NOT NULL AND NOT EXISTS (SELECT FROM changed_user)
    ) AS u ON true
),
opened AS (
    INSERT INTO sessions (id, identity_id, family_hash, token_hash, expires_at, client_id, device_name, device_platform,
                          jkt)
    SELECT t.session_id, a.identity_id, t.family_hash, t.token_hash, t.expires_at, t.client_id, t.device_name,
           t.device_platform, t.jkt
    FROM input t JOIN answer a ON a.opens
),
recorded AS (
    INSERT INTO events (id, kind, reason, provider, email, user_id, ip, user_agent, request_id, detail)
    SELECT t.session_id,
           CASE a.outcome
               WHEN 'signed_in' THEN 'signed_in'
               WHEN 'linked' THEN 'identity_linked'
               WHEN 'created' THEN 'user_created'
               ELSE 'sign_in_refused'
           END,
           CASE
               WHEN NOT a.opens THEN a.outcome
               WHEN a.outcome = 'linked' AND d.same_provider THEN 'same_provider'
               WHEN a.outcome = 'created' AND b.id IS NOT NULL THEN 'email_proven'
           END,
           t.provider,
           CASE WHEN NOT a.opens THEN t.folded END,
           coalesce(a.user_id, CASE a.outcome WHEN 'user_disabled' THEN (SELECT id FROM holder) END),
           t.ip, t.user_agent, t.request_id,
           CASE
               WHEN a.outcome = 'created' AND b.id IS NOT NULL THEN jsonb_build_object('from', b.id)
               WHEN a.outcome = 'linked' THEN jsonb_build_object('identity_id', a.identity_id)
           END
    FROM input t JOIN decision d ON d.outcome <> 'raced' JOIN answer a ON true LEFT JOIN displaced_holder b ON true
    RETURNING 1
),
-- The event for the user who lost the unverified address. It does not show the other user's IP
-- address and user agent.
recorded_loss AS (
    INSERT INTO events (kind, reason, provider, user_id, request_id, detail)
    SELECT 'email_lost', 'email_proven', t.provider, b.id, t.request_id,
           jsonb_build_object('to', coalesce(k.id, t.new_user_id))
    FROM input t CROSS JOIN displaced_holder b LEFT JOIN known k ON true
),
-- The event of a change to the user's own fields, by a known identity or by a newly linked one. It
-- follows the event of the sign-in.
recorded_update AS (
    INSERT INTO events (kind, reason, provider, user_id, session_id, ip, user_agent, request_id, detail)
    SELECT 'user_updated', CASE WHEN b.id IS NOT NULL THEN 'email_proven' END, t.provider, c.id,
           t.session_id, t.ip, t.user_agent, t.request_id,
           jsonb_strip_nulls(jsonb_build_object('fields', c.fields, 'from', b.id))
    FROM input t CROSS JOIN (SELECT count(*) FROM recorded) AS first LEFT JOIN displaced_holder b ON true CROSS JOIN LATERAL (
        SELECT u.id, changed_fields(to_jsonb(k), to_jsonb(u)) AS fields FROM changed_user u JOIN known k ON k.id = u.id
        UNION ALL
        SELECT u.id, changed_fields(to_jsonb(h), to_jsonb(u)) FROM linked u JOIN holder h ON h.id = u.id
    ) AS c
    WHERE c.fields <> '{}'
)
SELECT outcome AS "outcome!", identity_id AS "identity_id!", identity_email, user_id, email, email_verified, name, picture,
       created_at, claims
FROM answer
