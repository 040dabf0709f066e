-- Deletes a user with identities, sessions and tokens (by cascade), and keeps of the events only
-- what is not about a person.
--
--   $1 user  $2 event id  $3 request id
WITH deleted AS (
    DELETE FROM users WHERE id = $1 RETURNING id, email
),
-- The addresses that were the user's, those of identities included. One that an identity merely claimed is
-- somebody else's, and so are the attempts on it.
addresses AS (
    SELECT email FROM deleted WHERE email IS NOT NULL
    UNION
    SELECT lower(i.email COLLATE "C") FROM identities i JOIN deleted d ON d.id = i.user_id WHERE i.email_verified
),
forgotten AS (
    UPDATE events SET email = NULL, ip = NULL, user_agent = NULL, detail = NULL
    WHERE id IN (
        SELECT e.id FROM events e JOIN deleted d ON d.id = e.user_id
        UNION
        SELECT e.id FROM events e JOIN addresses a ON a.email = e.email
    )
),
recorded AS (
    INSERT INTO events (id, kind, user_id, request_id)
    SELECT $2, 'user_deleted', id, $3 FROM deleted
)
SELECT count(*) AS "count!" FROM deleted
