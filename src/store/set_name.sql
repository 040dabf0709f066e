-- Sets the name that a signed-in user wants to be shown under. Without one, the name is again what the oldest identity with
-- a name says.
--
--   $1 user  $2 session  $3 name, or NULL  $4 event id  $5 ip  $6 user agent  $7 request id
WITH owner AS MATERIALIZED (
    SELECT u.id, u.email, u.email_verified, u.name, u.own_name, u.picture, u.created_at
    FROM sessions s JOIN identities i ON i.id = s.identity_id JOIN users u ON u.id = i.user_id
    WHERE s.id = $2 AND s.ended_at IS NULL AND i.suspended_at IS NULL AND u.id = $1 AND u.disabled_at IS NULL
          AND (i.tokens_from <= s.created_at OR i.tokens_from IS NULL)
    FOR NO KEY UPDATE OF u
),
-- A name that is not the user's own word stays if none is sent: it may have been imported.
changed AS (
    UPDATE users u SET name = new.name, own_name = $3::text IS NOT NULL, updated_at = now()
    FROM owner o CROSS JOIN LATERAL (
        SELECT coalesce($3, (SELECT i.name FROM identities i
                             WHERE i.user_id = o.id AND i.name IS NOT NULL ORDER BY i.id LIMIT 1)) AS name
    ) AS new
    WHERE u.id = o.id AND CASE WHEN $3 IS NULL THEN o.own_name ELSE NOT o.own_name OR o.name <> $3 END
    RETURNING u.id, u.name
),
recorded AS (
    INSERT INTO events (id, kind, user_id, session_id, ip, user_agent, request_id, detail)
    SELECT $4, 'user_updated', id, $2, $5::inet, $6, $7, jsonb_build_object('fields', ARRAY['name']) FROM changed
)
SELECT o.id, o.email, o.email_verified, CASE WHEN c.id IS NULL THEN o.name ELSE c.name END AS name, o.picture, o.created_at
FROM owner o LEFT JOIN changed c ON true
