-- Signs in one identity, whatever it needs: a link to the user who has its e-mail, a new user, a change of what the
-- provider says, or a refusal. All or nothing. `sign_in_known.sql` and `sign_in_new.sql` do the frequent cases for many
-- at once, and this one does whatever they leave.
--
-- A concurrent first sign-in shows as a unique violation (users_email_key, identities_provider_subject_key), a concurrent
-- deletion as a foreign key violation (sessions_identity_id_fkey, identities_user_id_fkey), and a concurrent change of the
-- user with that e-mail as the outcome 'raced'. In each case nothing is written, and the caller runs the statement again.
WITH input AS (
    SELECT $1::text AS provider, $2::text AS subject, $3::text AS email, lower($3::text COLLATE "C") AS folded,
           $4::boolean AS email_verified,
           -- The provider proves the e-mail: it is verified, and its link policy counts.
           $5::boolean AS proves, $6::text AS name, $7::text AS picture,
           $8::uuid AS session_id, $9::bytea AS family_hash, $10::bytea AS token_hash,
           $11::text AS client_id, $12::inet AS ip, $13::text AS user_agent, $14::text AS device_name,
           $15::text AS device_platform, $16::text AS request_id,
           now() + $17::integer * interval '1 second' AS expires_at,
           $18::uuid AS new_user_id, $19::uuid AS new_identity_id, $20::uuid AS loss_event_id,
           -- What becomes of an unknown identity whose e-mail somebody has, or nobody: 'linked' and 'created', or the
           -- reason of a refusal.
           $21::text AS if_taken, $22::text AS if_free, $23::boolean AS refuse_recycled
),
known AS MATERIALIZED (
    SELECT i.id AS identity_id, i.email AS identity_email, i.email_verified AS identity_email_verified,
           i.name AS identity_name, i.picture AS identity_picture,
           u.id, u.email, u.email_verified, u.name, u.picture, u.created_at, u.disabled_at,
           coalesce(u.last_seen_on < current_date, true) AS away
    FROM input t
    JOIN identities i ON i.provider = t.provider AND i.subject = t.subject
    JOIN users u ON u.id = i.user_id
),
-- Who has the e-mail, asked only for an unknown identity: as this statement's snapshot has them, and as they are once
-- their row is locked.
seen AS MATERIALIZED (
    SELECT u.id, u.updated_at FROM input t JOIN users u ON u.email = t.folded WHERE NOT EXISTS (SELECT FROM known)
),
holder AS MATERIALIZED (
    SELECT u.id, u.updated_at, u.created_at, u.disabled_at, u.email_verified,
           u.imported_at IS NOT NULL AND u.last_seen_on IS NULL
               AND NOT EXISTS (SELECT FROM identities i WHERE i.user_id = u.id) AS waiting
    FROM users u
    WHERE u.id = (SELECT id FROM seen) AND u.email = (SELECT folded FROM input)
    FOR NO KEY UPDATE
),
decision AS MATERIALIZED (
    SELECT CASE
               WHEN known.disabled_at IS NOT NULL THEN 'user_disabled'
               WHEN known.id IS NOT NULL THEN 'signed_in'
               WHEN seen.id IS NULL THEN t.if_free
               WHEN t.if_taken <> 'linked' THEN t.if_taken
               -- The user changed since the snapshot. That matters where their identities decide.
               WHEN holder.id IS NULL
                    OR (holder.updated_at <> seen.updated_at AND (t.refuse_recycled OR NOT holder.email_verified))
                   THEN 'raced'
               -- A user who merely claims the e-mail loses it to whoever proves it. One that was imported without any
               -- identity waits for its owner.
               WHEN NOT holder.email_verified AND NOT holder.waiting THEN 'created'
               WHEN holder.disabled_at IS NOT NULL THEN 'user_disabled'
               -- An e-mail that its holder never proved has not changed hands.
               WHEN t.refuse_recycled AND same.provider AND holder.email_verified THEN 'identity_conflict'
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
-- Before the newcomer takes the e-mail, which must be free by then.
bereft AS (
    UPDATE users u SET email = NULL, email_verified = false, updated_at = now()
    FROM holder h, decision d
    WHERE u.id = h.id AND d.outcome = 'created'
    RETURNING u.id
),
created AS (
    INSERT INTO users (id, email, email_verified, name, picture, last_seen_on)
    SELECT t.new_user_id, t.folded, t.proves, t.name, t.picture, current_date
    FROM input t JOIN decision d ON d.outcome = 'created' LEFT JOIN bereft ON true
    RETURNING id, email, email_verified, name, picture, created_at
),
linked AS (
    UPDATE users u
    SET email_verified = true, name = coalesce(u.name, t.name), picture = coalesce(u.picture, t.picture),
        last_seen_on = current_date, updated_at = now()
    FROM input t, holder h, decision d
    WHERE d.outcome = 'linked' AND u.id = h.id
    RETURNING u.id, u.email, u.email_verified, u.name, u.picture, u.created_at
),
-- The new identity's user.
owner AS (
    SELECT * FROM created UNION ALL SELECT * FROM linked
),
created_identity AS (
    INSERT INTO identities (id, user_id, provider, subject, email, email_verified, name, picture)
    SELECT t.new_identity_id, o.id, t.provider, t.subject, t.email, t.email_verified, t.name, t.picture
    FROM input t, owner o
),
-- What the provider says of a known identity replaces what it said before. The user's own fields follow as long as they
-- are this identity's; the e-mail only when it is proven and free.
news AS MATERIALIZED (
    SELECT k.id, k.identity_id, k.away,
           CASE
               WHEN t.folded IS NULL OR NOT t.proves THEN false
               WHEN k.email = t.folded THEN NOT k.email_verified
               -- An identity that had no e-mail is not where the user's came from.
               WHEN k.email <> coalesce(lower(k.identity_email COLLATE "C"), '') THEN false
               ELSE NOT EXISTS (SELECT FROM users u WHERE u.email = t.folded)
           END AS email_follows,
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
        name = CASE WHEN n.name_follows THEN t.name ELSE u.name END,
        picture = CASE WHEN n.picture_follows THEN t.picture ELSE u.picture END,
        last_seen_on = current_date,
        updated_at = now()
    FROM news n, input t
    WHERE u.id = n.id AND (n.email_follows OR n.name_follows OR n.picture_follows)
    RETURNING u.id, u.email, u.email_verified, u.name, u.picture, u.created_at
),
-- The first sign-in of the day, where nothing else of the user changes. It is no change that others decide by, so
-- `updated_at` stays; and it waits for nobody, since there will be another one.
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
           u.id AS user_id, u.email, u.email_verified, u.name, u.picture, u.created_at,
           d.outcome IN ('signed_in', 'linked', 'created') AS opens
    FROM input t
    JOIN decision d ON true
    LEFT JOIN known k ON true
    LEFT JOIN LATERAL (
        SELECT * FROM owner
        UNION ALL SELECT * FROM changed_user
        UNION ALL SELECT k.id, k.email, k.email_verified, k.name, k.picture, k.created_at
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
           CASE WHEN b.id IS NOT NULL THEN jsonb_build_object('from', b.id) END
    FROM input t JOIN decision d ON d.outcome <> 'raced' JOIN answer a ON true LEFT JOIN bereft b ON true
),
-- What the user who merely claimed the e-mail is told. Where the newcomer came from is not theirs to know.
recorded_loss AS (
    INSERT INTO events (id, kind, reason, provider, user_id, request_id, detail)
    SELECT t.loss_event_id, 'email_lost', 'email_proven', t.provider, b.id, t.request_id,
           jsonb_build_object('to', t.new_user_id)
    FROM input t, bereft b
)
SELECT outcome AS "outcome!", identity_id AS "identity_id!", identity_email, user_id, email, email_verified, name, picture,
       created_at
FROM answer
