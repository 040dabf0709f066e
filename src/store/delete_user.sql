-- Deletes a user with identities, sessions and tokens (by cascade), and keeps of their events only what is not about
-- a person. Events that are not theirs and hold one of their addresses are anybody's to make, and so without number:
-- the addresses are written down for forget.sql.
--
--   $1 user  $2 event id  $3 request id
-- and for staff, who delete whom they have looked at, unchanged:
--   $4 actor  $5 reason  $6 the user's updated_at  $7 ip  $8 user agent
WITH RECURSIVE deleted AS (
    DELETE FROM users WHERE id = $1 AND ($6::timestamptz IS NULL OR updated_at = $6) RETURNING id, email
),
-- Users that were merged into this one were the same person.
ids AS (
    SELECT id FROM deleted
    UNION
    SELECT (e.detail->>'from')::uuid
    FROM ids JOIN events e ON e.user_id = ids.id AND e.kind = 'users_merged' AND e.detail->>'from' IS NOT NULL
),
-- The addresses that were the user's, those of identities included. One that an identity merely claimed is
-- somebody else's, and so are the attempts on it.
addresses AS (
    SELECT email FROM deleted WHERE email IS NOT NULL
    UNION
    SELECT lower(i.email COLLATE "C") FROM identities i JOIN deleted d ON d.id = i.user_id WHERE i.email_verified
    UNION
    -- Those of users that were merged into this one, unless somebody else has them now.
    SELECT e.email FROM ids JOIN events e ON e.user_id = ids.id AND e.kind = 'users_merged'
    WHERE e.email IS NOT NULL AND NOT EXISTS (SELECT FROM users u WHERE u.email = e.email AND u.id <> $1)
),
forgotten AS (
    UPDATE events SET email = NULL, ip = NULL, user_agent = NULL, detail = NULL
    WHERE id IN (SELECT e.id FROM events e JOIN ids ON ids.id = e.user_id)
),
-- By the clock, and not as of the statement's begin: it may have waited for the user's row, and whatever has happened
-- meanwhile was before the deletion, too.
to_forget AS (
    INSERT INTO addresses_to_forget (address, requested_at) SELECT email, clock_timestamp() FROM addresses
    ON CONFLICT ON CONSTRAINT addresses_to_forget_pkey DO NOTHING
),
recorded AS (
    INSERT INTO events (id, kind, user_id, actor, detail, ip, user_agent, request_id)
    SELECT $2, 'user_deleted', id, $4, CASE WHEN $5::text IS NOT NULL THEN jsonb_build_object('reason', $5::text) END,
           $7::text::inet, $8, $3
    FROM deleted
)
SELECT ARRAY(SELECT email FROM addresses) AS "addresses!" FROM deleted
