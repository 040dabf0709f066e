-- Signs in one identity in every case: links it to the user with its e-mail address, creates a user, updates what the
-- provider says, or refuses. `sign_in_known.sql` and `sign_in_new.sql` handle the frequent cases in batches; this
-- statement handles all others.
--
-- A concurrent first sign-in shows as a unique violation (users_email_key, identities_provider_subject_key), a concurrent
-- deletion as a foreign key violation (sessions_identity_id_fkey, identities_user_id_fkey), and a concurrent change of the
-- user with that e-mail as the outcome 'raced'. In each case nothing is written, and the caller runs the statement again.
WITH input AS (
    SELECT $1::text AS provider, $2::text AS subject, $3::text AS email, lower($3::text COLLATE "C") AS folded,
           $4::boolean AS email_verified,
           -- True if the provider verifies the e-mail address and its link policy accepts that.
           $5::boolean AS proves, $6::text AS name, $7::text AS picture,
           $8::uuid AS session_id, $9::bytea AS family_hash, $10::bytea AS token_hash,
           $11::text AS client_id, $12::inet AS ip, $13::text AS user_agent, $14::text AS device_name,
           $15::text AS device_platform, $16::text AS request_id,
           now() + $17::integer * interval '1 second' AS expires_at,
           $18::uuid AS new_user_id, $19::uuid AS new_identity_id, $20::uuid AS loss_event_id,
           $24::uuid AS update_event_id,
           -- The outcome for an unknown identity whose e-mail address a user has, or no user: 'linked' and 'created', or
           -- the reason of a refusal.
           $21::text AS if_taken, $22::text AS if_free, $23::boolean AS refuse_recycled,
           -- The name that the app was told, for a new user of whom the provider gives none.
           $25::text AS told_name,
           $26::timestamptz AS issued_at
),
known AS MATERIALIZED (
    SELECT i.id AS identity_id, i.email AS identity_email, i.email_verified AS identity_email_verified,
           i.name AS identity_name, i.picture AS identity_picture, i.suspended_at, i.tokens_from,
           u.id, u.email, u.email_verified, u.name, u.picture, u.created_at, u.disabled_at, u.own_name,
           u.claims::text AS claims, coalesce(u.last_seen_on < current_date, true) AS away
    FROM input t
    JOIN identities i ON i.provider = t.provider AND i.subject = t.subject
    JOIN users u ON u.id = i.user_id
),
-- The user with the e-mail address, for an unknown identity only: as of this statement's snapshot, and after the row has
-- been locked.
seen AS MATERIALIZED (
    SELECT u.id, u.updated_at FROM input t JOIN users u ON u.email = t.folded WHERE NOT EXISTS (SELECT FROM known)
),
holder AS MATERIALIZED (
    SELECT u.id, u.updated_at, u.created_at, u.disabled_at, u.email_verified, u.name, u.picture,
           u.imported_at IS NOT NULL AND u.last_seen_on IS NULL
               AND NOT EXISTS (SELECT FROM identities i WHERE i.user_id = u.id) AS waiting
    FROM users u
    WHERE u.id = (SELECT id FROM seen) AND u.email = (SELECT folded FROM input)
    FOR NO KEY UPDATE
),
decision AS MATERIALIZED (
    SELECT CASE
               WHEN known.disabled_at IS NOT NULL THEN 'user_disabled'
               WHEN known.suspended_at IS NOT NULL THEN 'identity_suspended'
               WHEN known.tokens_from > t.issued_at THEN 'token_expired'
               WHEN known.id IS NOT NULL THEN 'signed_in'
               WHEN seen.id IS NULL THEN t.if_free
               WHEN t.if_taken <> 'linked' THEN t.if_taken
               -- The user has changed since the snapshot, and so may have the identities, on which the decision depends.
               WHEN holder.id IS NULL OR holder.updated_at <> seen.updated_at THEN 'raced'
               -- A user with the unverified address loses it to the user who verifies it. An imported user without
               -- identities is linked instead.
               WHEN NOT holder.email_verified AND NOT holder.waiting THEN 'created'
               WHEN holder.disabled_at IS NOT NULL THEN 'user_disabled'
               -- An address that its user never verified has not been recycled.
               WHEN t.refuse_recycled AND same.provider AND holder.email_verified THEN 'identity_conflict'
               -- Whoever has hijacked an account may read its mailbox, which another provider verifies.
               WHEN EXISTS (
                   SELECT FROM identities i
                   WHERE i.user_id = holder.id AND i.suspended_at IS NOT NULL AND lower(i.email COLLATE "C") = t.folded
                         AND coalesce(i.suspended_reason, '') NOT IN ('account_purged', 'account_deleted')
               ) THEN 'link_required'
               ELSE 'linked'
           END AS outcome,
           same.provider AS same_provider
    FROM input t
    LEFT JOIN known ON true
    LEFT JOIN seen ON true
    LEFT JOIN holder ON true
    LEFT JOIN LATERAL (
        SELECT EXISTS (SELECT FROM identities i WHERE i.user_id = holder.id AND i.provider = t.provider) AS provider
        WHERE holder.id IS NOT NULL
    ) AS same ON true
),
-- Runs before the new user gets the e-mail address, which must be free by then.
bereft AS (
    UPDATE users u SET email = NULL, email_verified = false, updated_at = now()
    FROM holder h, decision d
    WHERE u.id = h.id AND d.outcome = 'created'
    RETURNING u.id
),
created AS (
    INSERT INTO users (id, email, email_verified, name, own_name, picture, last_seen_on)
    SELECT t.new_user_id, t.folded, t.proves, coalesce(t.name, t.told_name),
           t.name IS NULL AND t.told_name IS NOT NULL, t.picture, current_date
    FROM input t JOIN decision d ON d.outcome = 'created' LEFT JOIN bereft ON true
    RETURNING id, email, email_verified, name, picture, created_at, NULL::text AS claims
),
linked AS (
    UPDATE users u
    SET email_verified = true, name = coalesce(u.name, t.name), picture = coalesce(u.picture, t.picture),
        last_seen_on = current_date, updated_at = now()
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
    SELECT t.new_identity_id, o.id, t.provider, t.subject, t.email, t.email_verified, t.name, t.picture
    FROM input t, owner o
),
-- The provider's new data replaces that of a known identity. The user's own fields follow as long as they equal those of
-- the identity; the e-mail address only if it is verified and free.
news AS MATERIALIZED (
    SELECT k.id, k.identity_id, k.away,
           CASE
               WHEN t.folded IS NULL OR NOT t.proves THEN false
               WHEN k.email = t.folded THEN NOT k.email_verified
               -- The user's address cannot come from an identity that had none.
               WHEN k.email <> coalesce(lower(k.identity_email COLLATE "C"), '') THEN false
               ELSE NOT EXISTS (SELECT FROM users u WHERE u.email = t.folded)
           END AS email_follows,
           NOT k.own_name AND
               coalesce(k.name IS NOT DISTINCT FROM k.identity_name AND t.name <> k.name, k.name IS NULL AND t.name IS NOT NULL)
               AS name_follows,
           coalesce(k.picture IS NOT DISTINCT FROM k.identity_picture AND t.picture <> k.picture,
                    k.picture IS NULL AND t.picture IS NOT NULL) AS picture_follows,
           (t.email IS NOT NULL AND (t.email, t.email_verified) IS DISTINCT FROM (k.identity_email, k.identity_email_verified))
               OR t.name <> coalesce(k.identity_name, '') OR t.picture <> coalesce(k.identity_picture, '')
               AS identity_differs
    FROM input t JOIN known k ON true JOIN decision d ON d.outcome = 'signed_in'
),
changed_user AS (
    UPDATE users u
    SET email = CASE WHEN n.email_follows THEN t.folded ELSE u.email END,
        email_verified = u.email_verified OR n.email_follows,
        -- The user may have chosen a name since this statement's snapshot.
        name = CASE WHEN n.name_follows AND NOT u.own_name THEN t.name ELSE u.name END,
        picture = CASE WHEN n.picture_follows THEN t.picture ELSE u.picture END,
        last_seen_on = current_date,
        updated_at = now()
    FROM news n, input t
    WHERE u.id = n.id AND (n.email_follows OR n.name_follows OR n.picture_follows)
    RETURNING u.id, u.email, u.email_verified, u.name, u.picture, u.created_at, u.claims::text
),
-- Records the first sign-in of the day if nothing else of the user changes. No decision depends on it, so `updated_at`
-- stays. It waits for no lock, since a later sign-in will record it.
came_back AS (
    UPDATE users SET last_seen_on = current_date
    WHERE id = (
        SELECT u.id FROM users u JOIN news n ON n.id = u.id
        WHERE n.away AND NOT (n.email_follows OR n.name_follows OR n.picture_follows)
        FOR NO KEY UPDATE OF u SKIP LOCKED
    )
),
changed_identity AS (
    UPDATE identities i
    SET email = coalesce(t.email, i.email),
        email_verified = CASE WHEN t.email IS NULL THEN i.email_verified ELSE t.email_verified END,
        name = coalesce(t.name, i.name),
        picture = coalesce(t.picture, i.picture),
        updated_at = now()
    FROM news n, input t
    WHERE i.id = n.identity_id AND n.identity_differs
),
answer AS MATERIALIZED (
    SELECT d.outcome, coalesce(k.identity_id, t.new_identity_id) AS identity_id,
           coalesce(t.email, k.identity_email) AS identity_email,
           u.id AS user_id, u.email, u.email_verified, u.name, u.picture, u.created_at, u.claims,
           d.outcome IN ('signed_in', 'linked', 'created') AS opens
    FROM input t
    JOIN decision d ON true
    LEFT JOIN known k ON true
    LEFT JOIN LATERAL (
        SELECT * FROM owner
        UNION ALL SELECT * FROM changed_user
        UNION ALL SELECT k.id, k.email, k.email_verified, k.name, k.picture, k.created_at, k.claims
        WHERE k.id IS NOT NULL AND NOT EXISTS (SELECT FROM changed_user)
    ) AS u ON true
),
opened AS (
    INSERT INTO sessions (id, identity_id, family_hash, token_hash, expires_at, client_id, ip, user_agent, device_name,
                          device_platform)
    SELECT t.session_id, a.identity_id, t.family_hash, t.token_hash, t.expires_at, t.client_id, t.ip, t.user_agent,
           t.device_name, t.device_platform
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
               WHEN b.id IS NOT NULL THEN 'email_proven'
           END,
           t.provider,
           CASE WHEN NOT a.opens THEN t.folded END,
           coalesce(a.user_id, CASE a.outcome WHEN 'user_disabled' THEN (SELECT id FROM holder) END),
           t.ip, t.user_agent, t.request_id,
           CASE
               WHEN b.id IS NOT NULL THEN jsonb_build_object('from', b.id)
               WHEN a.outcome = 'linked' THEN jsonb_build_object('identity_id', a.identity_id)
           END
    FROM input t JOIN decision d ON d.outcome <> 'raced' JOIN answer a ON true LEFT JOIN bereft b ON true
),
-- The event for the user who lost the unverified address. It does not show the new user's IP address and user agent.
recorded_loss AS (
    INSERT INTO events (id, kind, reason, provider, user_id, request_id, detail)
    SELECT t.loss_event_id, 'email_lost', 'email_proven', t.provider, b.id, t.request_id,
           jsonb_build_object('to', t.new_user_id)
    FROM input t, bereft b
),
-- The event of a change to the user's own fields, by a known identity or by the one that was linked.
recorded_update AS (
    INSERT INTO events (id, kind, provider, user_id, session_id, ip, user_agent, request_id, detail)
    SELECT t.update_event_id, 'user_updated', t.provider, c.id, t.session_id, t.ip, t.user_agent, t.request_id,
           jsonb_build_object('fields', c.fields)
    FROM input t CROSS JOIN LATERAL (
        SELECT u.id,
               array_remove(ARRAY[
                   CASE WHEN u.email IS DISTINCT FROM k.email THEN 'email' END,
                   CASE WHEN u.email_verified <> k.email_verified THEN 'email_verified' END,
                   CASE WHEN u.name IS DISTINCT FROM k.name THEN 'name' END,
                   CASE WHEN u.picture IS DISTINCT FROM k.picture THEN 'picture' END
               ], NULL) AS fields
        FROM changed_user u JOIN known k ON k.id = u.id
        UNION ALL
        SELECT u.id,
               array_remove(ARRAY[
                   CASE WHEN u.email_verified <> h.email_verified THEN 'email_verified' END,
                   CASE WHEN u.name IS DISTINCT FROM h.name THEN 'name' END,
                   CASE WHEN u.picture IS DISTINCT FROM h.picture THEN 'picture' END
               ], NULL)
        FROM linked u JOIN holder h ON h.id = u.id
    ) AS c
    WHERE c.fields <> '{}'
)
SELECT outcome AS "outcome!", identity_id AS "identity_id!", identity_email, user_id, email, email_verified, name, picture,
       created_at, claims
FROM answer
