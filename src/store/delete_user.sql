-- Deletes a user with identities, sessions and tokens (by cascade), and keeps of the events only
-- what is not about a person.
--
--   $1 user  $2 event id  $3 request id
WITH deleted AS (
    DELETE FROM users WHERE id = $1 RETURNING id, email
),
forgotten AS (
    UPDATE events e SET email = NULL, ip = NULL, user_agent = NULL, detail = NULL
    FROM deleted d
    WHERE e.user_id = d.id OR e.email = d.email
),
recorded AS (
    INSERT INTO events (id, kind, user_id, request_id)
    SELECT $2, 'user_deleted', id, $3 FROM deleted
)
SELECT count(*) AS "count!" FROM deleted
