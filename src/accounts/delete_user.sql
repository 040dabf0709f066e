-- Deletes a user with identities (by cascade) and sessions (by a trigger). The personal data in the
-- user's events, and in other events that contain one of the user's e-mail addresses, is erased
-- later, since their number has no limit: this statement records them as traces for erase.sql.
--
--   $1 user  $2 author
--   $3 the user's updated_at: for staff, the user must be unchanged since the preview
--   $4 the user's session, which may have ended while the provider was asked
--
-- A report of a provider may suspend an identity while this statement waits for the user's row. So
-- it compares the row before and after: if it has changed, nothing is deleted, and the caller runs
-- the statement again.
WITH RECURSIVE permitted AS MATERIALIZED (
    SELECT author_allowed($2) AS yes
),
live AS MATERIALIZED (
    SELECT FROM live_sessions WHERE id = $4 AND user_id = $1
),
seen AS MATERIALIZED (
    SELECT updated_at FROM users
    WHERE id = $1 AND ($3::timestamptz IS NULL OR updated_at = $3) AND (SELECT yes FROM permitted)
),
locked AS MATERIALIZED (
    SELECT updated_at FROM users WHERE id = $1 AND EXISTS (SELECT FROM seen) FOR UPDATE
),
decision AS MATERIALIZED (
    SELECT locked.updated_at <> seen.updated_at AS raced FROM seen JOIN locked ON true
),
-- A hijacker who deletes the user would delete the provider's report as well, and could come back
-- as a new user.
hijacked AS MATERIALIZED (
    SELECT FROM live JOIN identities i ON i.user_id = $1
    WHERE i.hijacked
),
deleted AS (
    DELETE FROM users
    WHERE id = $1 AND (SELECT NOT raced FROM decision)
          AND ($4::uuid IS NULL OR disabled_at IS NULL AND EXISTS (SELECT FROM live) AND NOT EXISTS (SELECT FROM hijacked))
    RETURNING id, email, email_verified
),
-- Includes the users that were merged into this one.
ids AS (
    SELECT id FROM deleted
    UNION
    SELECT (e.detail->>'from')::uuid
    FROM ids JOIN events e ON e.user_id = ids.id AND e.kind = 'users_merged' AND e.detail->>'from' IS NOT NULL
),
-- The e-mail addresses that the user, or a user merged into this one, has proven, now or earlier.
-- An unproven address may belong to another person, whose events a mere claim must not erase.
deleted_rows AS (
    SELECT email FROM deleted WHERE email_verified
    UNION
    SELECT lower(i.email COLLATE "C") FROM identities i JOIN deleted d ON d.id = i.user_id WHERE i.email_verified
    UNION
    SELECT f.email FROM former_addresses f JOIN deleted d ON d.id = f.user_id
),
-- If another user has the address, or an identity of another user has verified it, the events with
-- it are about that user. The addresses of current and former members of staff stay as well.
addresses AS (
    SELECT email FROM deleted_rows t
    WHERE NOT EXISTS (SELECT FROM users u WHERE u.email = t.email AND u.id <> $1)
          AND NOT EXISTS (SELECT FROM identities i
                          WHERE lower(i.email COLLATE "C") = t.email AND i.email_verified AND i.user_id <> $1)
          AND NOT EXISTS (SELECT FROM staff s WHERE s.email = t.email)
          AND NOT EXISTS (SELECT FROM events e WHERE e.kind = 'staff_removed' AND e.detail->>'staff' = t.email)
),
-- Refused sign-ins and searches have an address as their e-mail, and refused sign-ins to the admin
-- pages as their actor. Uses the clock instead of the statement's start, because the statement may
-- have waited for the user's row, and events from that time also precede the deletion.
left_behind AS (
    INSERT INTO pending_erasures (field, value, requested_at)
    SELECT 'user_id', id::text, clock_timestamp() FROM ids
    UNION ALL
    SELECT field, email, clock_timestamp() FROM addresses CROSS JOIN unnest(ARRAY['email', 'actor']) AS field
    RETURNING value
),
-- The counts are for the receipt.
recorded AS (
    INSERT INTO events
    SELECT e.* FROM deleted d, event_row($2, 'user_deleted', d.id, detail => jsonb_build_object(
        'identity_count', (SELECT count(*) FROM identities i WHERE i.user_id = d.id),
        'session_count', (SELECT count(*) FROM identities i JOIN sessions s ON s.identity_id = i.id
                          WHERE i.user_id = d.id AND s.ended_at IS NULL AND s.expires_at > now()))) AS e
)
SELECT coalesce((SELECT raced FROM decision), false) AS "raced!", EXISTS (SELECT FROM deleted) AS "deleted!",
       (SELECT yes FROM permitted) AS "permitted!",
       EXISTS (SELECT FROM hijacked) AS "hijacked!", EXISTS (SELECT FROM users WHERE id = $1) AS "there!",
       ARRAY(SELECT DISTINCT value FROM left_behind) AS "traces!"
