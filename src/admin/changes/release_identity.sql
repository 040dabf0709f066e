-- Releases an identity that is held because it may be a hijacker's (`apply.sql`), so that it may sign in again, unless its
-- provider has reported it, too.
--
--   $1 identity  $2 user  $3 author
WITH permitted AS MATERIALIZED (
    SELECT author_allowed($3) AS yes
),
owner AS MATERIALIZED (
    SELECT id FROM users WHERE id = $2 AND (SELECT yes FROM permitted) FOR NO KEY UPDATE
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
    INSERT INTO events
    SELECT e.* FROM released r, event_row($3, 'identity_released', r.user_id, r.provider,
                                      detail => jsonb_build_object('identity_id', $1::uuid)) AS e
)
SELECT EXISTS (SELECT FROM released) AS "done!", yes AS "permitted!" FROM permitted
