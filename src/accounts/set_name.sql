-- Sets the name that a signed-in user wants to be shown under. Without one, the user gets the name
-- of their oldest identity with a name.
--
--   $1 user  $2 session  $3 name, or NULL  $4 author
WITH owner AS MATERIALIZED (
    SELECT u.id, u.email, u.email_verified, u.name, u.own_name, u.picture, u.created_at
    FROM live_sessions s JOIN users u ON u.id = s.user_id
    WHERE s.id = $2 AND u.id = $1 AND u.disabled_at IS NULL
    FOR NO KEY UPDATE OF u
),
-- Without a new name, a name that the user has not chosen stays: it may have been imported.
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
    INSERT INTO events
    SELECT e.* FROM changed c, event_row($4, 'user_updated', c.id, session_id => $2,
                                     detail => jsonb_build_object('fields', ARRAY['name'])) AS e
)
SELECT o.id, o.email, o.email_verified, CASE WHEN c.id IS NULL THEN o.name ELSE c.name END AS name, o.picture, o.created_at
FROM owner o LEFT JOIN changed c ON true
