-- Finds, creates or links the user of a verified identity, opens the session, stores the refresh
-- token and records the event: one statement, all or nothing.
--
--   $1 provider      $2 subject        $3 email as given  $4 email folded  $5 email verified
--   $6 name          $7 picture        $8 if taken        $9 if free       $10 refuse recycled
--   $11 new user id  $12 new identity id                  $13 session id   $14 event id
--   $15 refresh token's hash           $16 its lifetime in seconds
--   $17 client id    $18 ip            $19 user agent     $20 device name  $21 device platform
--   $22 request id  $23 how many sessions an identity may have
--
-- A concurrent first sign-in shows as a unique violation (users_email_key,
-- identities_provider_subject_key), a concurrent deletion as a foreign key violation
-- (sessions_identity_id_fkey, identities_user_id_fkey), and a concurrent change of the user with
-- that address as the outcome 'raced'. In each case nothing is written, and the caller runs the
-- statement again, which then sees what the other one did.
WITH known AS MATERIALIZED (
    SELECT i.id AS identity_id, i.email AS identity_email, i.email_verified AS identity_email_verified,
           i.name AS identity_name, i.picture AS identity_picture,
           u.id, u.email, u.email_verified, u.name, u.picture, u.created_at, u.disabled_at,
           coalesce(u.last_seen_on < current_date, true) AS away
    FROM identities i JOIN users u ON u.id = i.user_id
    WHERE i.provider = $1 AND i.subject = $2
),
-- Somebody with that address, asked about only for an identity that nobody has: as this
-- statement's snapshot has them, and as they are once their row is locked.
seen AS MATERIALIZED (
    SELECT u.id, u.updated_at FROM users u
    WHERE u.email = $4 AND NOT EXISTS (SELECT FROM known)
),
owner AS MATERIALIZED (
    SELECT u.id, u.email_verified, u.created_at, u.updated_at, u.disabled_at
    FROM users u
    WHERE u.id = (SELECT id FROM seen) AND u.email = $4
    FOR NO KEY UPDATE
),
decision AS MATERIALIZED (
    SELECT CASE
               WHEN known.disabled_at IS NOT NULL THEN 'user_disabled'
               WHEN known.id IS NOT NULL THEN 'signed_in'
               WHEN seen.id IS NULL THEN $9
               WHEN $8 <> 'linked' THEN $8
               WHEN owner.id IS NULL THEN 'raced'
               -- The user changed since the snapshot. That matters where the user's identities do.
               WHEN owner.updated_at <> seen.updated_at AND ($10 OR NOT owner.email_verified) THEN 'raced'
               WHEN owner.disabled_at IS NOT NULL THEN 'user_disabled'
               -- An address that its holder never proved has not changed hands.
               WHEN $10 AND same.provider AND owner.email_verified THEN 'identity_conflict'
               ELSE 'linked'
           END AS outcome,
           coalesce(known.id, seen.id, $11) AS user_id,
           coalesce(known.identity_id, $12) AS identity_id,
           coalesce(same.provider, false) AS same_provider,
           seen.id IS NOT NULL AND NOT coalesce(owner.email_verified, false) AS unproven
    FROM (VALUES (1)) AS one (row)
    LEFT JOIN known ON true
    LEFT JOIN seen ON true
    LEFT JOIN owner ON true
    LEFT JOIN LATERAL (
        SELECT EXISTS (SELECT FROM identities i WHERE i.user_id = owner.id AND i.provider = $1) AS provider
        WHERE owner.id IS NOT NULL
    ) AS same ON true
),
created_user AS (
    INSERT INTO users (id, email, email_verified, name, picture, last_seen_on)
    SELECT user_id, $4, $5, $6, $7, current_date FROM decision WHERE outcome = 'created'
    RETURNING email, email_verified, name, picture, created_at
),
-- Whoever held a row whose address was never verified has proved nothing: every identity they
-- brought goes, and with the identities (by cascade) every session.
evicted AS (
    DELETE FROM identities i USING decision d
    WHERE d.outcome = 'linked' AND d.unproven AND i.user_id = d.user_id
    RETURNING i.id
),
linked_user AS (
    UPDATE users u
    SET email_verified = true,
        name = CASE WHEN d.unproven THEN coalesce($6, u.name) ELSE coalesce(u.name, $6) END,
        picture = CASE WHEN d.unproven THEN $7 ELSE coalesce(u.picture, $7) END,
        last_seen_on = current_date,
        updated_at = now()
    FROM decision d
    WHERE d.outcome = 'linked' AND u.id = d.user_id
    RETURNING u.email, u.email_verified, u.name, u.picture, u.created_at
),
created_identity AS (
    INSERT INTO identities (id, user_id, provider, subject, email, email_verified, name, picture)
    SELECT identity_id, user_id, $1, $2, $3, $5, $6, $7 FROM decision WHERE outcome IN ('created', 'linked')
),
-- What the provider says of a known identity replaces what it said before. The user's own fields
-- follow as long as they are this identity's; the address only when it is verified and free.
news AS MATERIALIZED (
    SELECT k.id, k.identity_id, k.away,
           CASE
               WHEN $4 IS NULL OR NOT $5 THEN false
               WHEN k.email = $4 THEN NOT k.email_verified
               -- An identity that had no address is not where the user's came from.
               WHEN k.email <> coalesce(lower(k.identity_email COLLATE "C"), '') THEN false
               ELSE NOT EXISTS (SELECT FROM users u WHERE u.email = $4)
           END AS email_follows,
           coalesce(k.name IS NOT DISTINCT FROM k.identity_name AND $6 <> k.name, k.name IS NULL AND $6 IS NOT NULL)
               AS name_follows,
           coalesce(k.picture IS NOT DISTINCT FROM k.identity_picture AND $7 <> k.picture, k.picture IS NULL AND $7 IS NOT NULL)
               AS picture_follows,
           ($3 IS NOT NULL AND ($3, $5) IS DISTINCT FROM (k.identity_email, k.identity_email_verified))
               OR $6 <> coalesce(k.identity_name, '') OR $7 <> coalesce(k.identity_picture, '') AS identity_differs
    FROM known k JOIN decision d ON d.outcome = 'signed_in'
),
changed_user AS (
    UPDATE users u
    SET email = CASE WHEN n.email_follows THEN $4 ELSE u.email END,
        email_verified = u.email_verified OR n.email_follows,
        name = CASE WHEN n.name_follows THEN $6 ELSE u.name END,
        picture = CASE WHEN n.picture_follows THEN $7 ELSE u.picture END,
        last_seen_on = current_date,
        updated_at = now()
    FROM news n
    WHERE u.id = n.id AND (n.email_follows OR n.name_follows OR n.picture_follows)
    RETURNING u.email, u.email_verified, u.name, u.picture, u.created_at
),
-- The first sign-in of the day, where nothing else of the user changes. It is no change that others
-- decide by, so `updated_at` stays; and it waits for nobody, since there will be another one.
came_back AS (
    UPDATE users SET last_seen_on = current_date
    WHERE id = (
        SELECT u.id FROM users u JOIN news n ON n.id = u.id
        WHERE n.away AND NOT (n.email_follows OR n.name_follows OR n.picture_follows)
              AND coalesce(u.last_seen_on < current_date, true)
        FOR NO KEY UPDATE OF u SKIP LOCKED
    )
),
changed_identity AS (
    UPDATE identities i
    SET email = coalesce($3, i.email),
        email_verified = CASE WHEN $3 IS NULL THEN i.email_verified ELSE $5 END,
        name = coalesce($6, i.name),
        picture = coalesce($7, i.picture),
        updated_at = now()
    FROM news n
    WHERE i.id = n.identity_id AND n.identity_differs
),
-- Beyond the limit, the oldest sessions of the identity end.
surplus AS (
    UPDATE sessions SET ended_at = now()
    WHERE id IN (
        SELECT s.id FROM sessions s JOIN decision d ON d.outcome = 'signed_in' AND s.identity_id = d.identity_id
        WHERE s.ended_at IS NULL
        ORDER BY s.id DESC OFFSET $23::bigint - 1
    )
),
opened_session AS (
    INSERT INTO sessions (id, identity_id, client_id, ip, user_agent, device_name, device_platform)
    SELECT $13, identity_id, $17, $18::text::inet, $19, $20, $21
    FROM decision WHERE outcome IN ('signed_in', 'linked', 'created')
),
stored_token AS (
    INSERT INTO refresh_tokens (hash, session_id, generation, expires_at)
    SELECT $15, $13, 1, now() + $16::integer * interval '1 second'
    FROM decision WHERE outcome IN ('signed_in', 'linked', 'created')
),
recorded AS (
    INSERT INTO events (id, kind, reason, provider, email, user_id, session_id, ip, user_agent, request_id)
    SELECT $14,
           CASE outcome
               WHEN 'signed_in' THEN 'signed_in'
               WHEN 'linked' THEN 'identity_linked'
               WHEN 'created' THEN 'user_created'
               ELSE 'sign_in_refused'
           END,
           CASE
               WHEN outcome IN ('signed_in', 'created') THEN NULL
               WHEN outcome <> 'linked' THEN outcome
               WHEN unproven THEN 'unproven_credentials_removed'
               WHEN same_provider THEN 'same_provider'
           END,
           $1,
           CASE WHEN outcome IN ('signed_in', 'linked', 'created') THEN NULL ELSE $4 END,
           CASE WHEN outcome IN ('signed_in', 'linked', 'created', 'user_disabled') THEN user_id END,
           CASE WHEN outcome IN ('signed_in', 'linked', 'created') THEN $13::uuid END,
           $18::text::inet, $19, $22
    FROM decision WHERE outcome <> 'raced'
)
SELECT d.outcome AS "outcome!", d.user_id AS "user_id!", d.identity_id AS "identity_id!",
       coalesce(c.email, l.email, n.email, k.email) AS email,
       coalesce(c.email_verified, l.email_verified, n.email_verified, k.email_verified, false) AS "email_verified!",
       coalesce(c.name, l.name, n.name, k.name) AS name,
       coalesce(c.picture, l.picture, n.picture, k.picture) AS picture,
       coalesce(c.created_at, l.created_at, k.created_at, now()) AS "created_at!",
       coalesce($3, k.identity_email) AS identity_email
FROM decision d
LEFT JOIN known k ON true
LEFT JOIN created_user c ON true
LEFT JOIN linked_user l ON true
LEFT JOIN changed_user n ON true
