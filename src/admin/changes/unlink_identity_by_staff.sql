-- Unlinks an identity of a user who has not changed since they were looked at; its sessions go with it.
--
--   $1 identity  $2 user  $3 their updated_at
--   $4 event id  $5 actor  $6 reason  $7 ip  $8 user agent  $9 request id
--   $10 the role that the actor needs
WITH permitted AS MATERIALIZED (
    SELECT FROM current_staff WHERE email = $5 AND role = $10 FOR SHARE
),
unchanged AS MATERIALIZED (
    SELECT id FROM users
    WHERE id = $2 AND updated_at = $3 AND ($10::text IS NULL OR EXISTS (SELECT FROM permitted))
    FOR NO KEY UPDATE
),
unlinked AS (
    DELETE FROM identities i USING unchanged u WHERE i.id = $1 AND i.user_id = u.id
    RETURNING i.provider, i.user_id
),
touched AS (
    UPDATE users u SET updated_at = now() FROM unlinked WHERE u.id = unlinked.user_id
),
recorded AS (
    INSERT INTO events (id, kind, provider, user_id, actor, detail, ip, user_agent, request_id)
    SELECT $4, 'identity_unlinked', provider, user_id, $5,
           jsonb_build_object('reason', $6::text, 'identity_id', $1), $7::inet, $8, $9
    FROM unlinked
)
SELECT EXISTS (SELECT FROM unlinked) AS "done!", $10::text IS NULL OR EXISTS (SELECT FROM permitted) AS "permitted!"
