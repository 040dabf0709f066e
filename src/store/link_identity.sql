-- Links a verified identity to a user who is signed in.
--
--   $1 user  $2 identity's new id  $3 provider  $4 subject  $5 email  $6 email verified  $7 name  $8 picture
--   $9 event id  $10 session  $11 ip  $12 user agent  $13 request id
--
-- The user's row is locked and changed, so that a concurrent sign-in or unlinking that decides by
-- the user's identities sees that they changed.
WITH owner AS MATERIALIZED (
    SELECT id FROM users WHERE id = $1 AND disabled_at IS NULL FOR NO KEY UPDATE
),
taken AS MATERIALIZED (
    SELECT id, user_id, email, created_at FROM identities WHERE provider = $3 AND subject = $4
),
linked AS (
    INSERT INTO identities (id, user_id, provider, subject, email, email_verified, name, picture)
    SELECT $2, o.id, $3, $4, $5, $6, $7, $8 FROM owner o WHERE NOT EXISTS (SELECT FROM taken)
    RETURNING id, user_id, email, created_at
),
touched AS (
    UPDATE users u SET updated_at = now() FROM linked l WHERE u.id = l.user_id
),
recorded AS (
    INSERT INTO events (id, kind, reason, provider, user_id, session_id, ip, user_agent, request_id)
    SELECT $9::uuid, 'identity_linked', NULL::text, $3, $1, $10::uuid, $11::text::inet, $12::text, $13::text FROM linked
    UNION ALL
    SELECT $9::uuid, 'link_refused', 'identity_already_linked', $3, $1, $10::uuid, $11::text::inet, $12::text, $13::text
    FROM taken WHERE user_id <> $1
)
SELECT id AS "id!", email, created_at AS "created_at!", true AS "new!", true AS "mine!" FROM linked
UNION ALL
SELECT id, email, created_at, false, user_id = $1 FROM taken
