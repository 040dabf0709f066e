-- Releases an identity that is held because a hijacker may have linked it (`apply.sql`), so that it may sign in again, unless its
-- provider has reported it, too.
--
--   $1 identity  $2 user  $3 actor  $4 reason  $5 ip  $6 user agent  $7 request id
--   $8 the role that the actor needs
WITH permitted AS MATERIALIZED (
    SELECT FROM current_staff WHERE email = $3 AND role = $8 FOR SHARE
),
owner AS MATERIALIZED (
    SELECT id FROM users WHERE id = $2 AND ($8::text IS NULL OR EXISTS (SELECT FROM permitted)) FOR NO KEY UPDATE
),
released AS (
    UPDATE identities i SET held_at = NULL
    FROM owner o WHERE i.id = $1 AND i.user_id = o.id AND i.held_at IS NOT NULL
    RETURNING i.provider, i.user_id
),
touched AS (
    UPDATE users u SET updated_at = now() FROM released r WHERE u.id = r.user_id
),
recorded AS (
    INSERT INTO events (kind, provider, user_id, actor, detail, ip, user_agent, request_id)
    SELECT 'identity_released', provider, user_id, $3,
           jsonb_build_object('reason', $4::text, 'identity_id', $1), $5::inet, $6, $7
    FROM released
)
SELECT EXISTS (SELECT FROM released) AS "done!", $8::text IS NULL OR EXISTS (SELECT FROM permitted) AS "permitted!"
