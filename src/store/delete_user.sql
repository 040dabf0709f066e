-- Deletes a user with identities, sessions and tokens (by cascade). Of their events only what is not about a person is
-- kept, and of others' events that hold one of their addresses, too. Both may be without number: the user is written
-- down for forget_user.sql, and the addresses for forget.sql.
--
--   $1 user  $2 event id  $3 request id
-- and for staff, who delete whom they have looked at, unchanged:
--   $4 actor  $5 reason  $6 the user's updated_at  $7 ip  $8 user agent  $9 the role that the actor needs
WITH RECURSIVE permitted AS MATERIALIZED (
    SELECT FROM staff WHERE email = $4 AND role = $9 FOR SHARE
),
deleted AS (
    DELETE FROM users
    WHERE id = $1 AND ($6::timestamptz IS NULL OR updated_at = $6)
          AND ($9::text IS NULL OR EXISTS (SELECT FROM permitted))
    RETURNING id, email
),
-- Users that were merged into this one were the same person.
ids AS (
    SELECT id FROM deleted
    UNION
    SELECT (e.detail->>'from')::uuid
    FROM ids JOIN events e ON e.user_id = ids.id AND e.kind = 'users_merged' AND e.detail->>'from' IS NOT NULL
),
-- The addresses that were the user's, those of identities and of merged users included. One that an identity merely
-- claimed is somebody else's, and so are the attempts on it.
theirs AS (
    SELECT email FROM deleted WHERE email IS NOT NULL
    UNION
    SELECT lower(i.email COLLATE "C") FROM identities i JOIN deleted d ON d.id = i.user_id WHERE i.email_verified
    UNION
    SELECT e.email FROM ids JOIN events e ON e.user_id = ids.id AND e.kind = 'users_merged' WHERE e.email IS NOT NULL
),
-- Where somebody else has the address, whatever was verified, or an identity of theirs has proved it, it is them whom the
-- attempts were on.
addresses AS (
    SELECT email FROM theirs t
    WHERE NOT EXISTS (SELECT FROM users u WHERE u.email = t.email AND u.id <> $1)
          AND NOT EXISTS (SELECT FROM identities i
                          WHERE lower(i.email COLLATE "C") = t.email AND i.email_verified AND i.user_id <> $1)
),
-- By the clock, and not as of the statement's begin: it may have waited for the user's row, and whatever has happened
-- meanwhile was before the deletion, too.
to_forget AS (
    INSERT INTO addresses_to_forget (address, requested_at) SELECT email, clock_timestamp() FROM addresses
    ON CONFLICT ON CONSTRAINT addresses_to_forget_pkey DO NOTHING
),
person_to_forget AS (
    INSERT INTO users_to_forget (user_id, requested_at) SELECT id, clock_timestamp() FROM ids
    ON CONFLICT ON CONSTRAINT users_to_forget_pkey DO NOTHING
),
recorded AS (
    INSERT INTO events (id, kind, user_id, actor, detail, ip, user_agent, request_id)
    SELECT $2, 'user_deleted', id, $4, CASE WHEN $5::text IS NOT NULL THEN jsonb_build_object('reason', $5::text) END,
           $7::inet, $8, $3
    FROM deleted
)
SELECT EXISTS (SELECT FROM deleted) AS "deleted!",
       $9::text IS NULL OR EXISTS (SELECT FROM permitted) AS "permitted!",
       ARRAY(SELECT id FROM ids) AS "users!", ARRAY(SELECT email FROM addresses) AS "addresses!"
