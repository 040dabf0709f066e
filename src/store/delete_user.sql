-- Deletes a user with identities (by cascade) and sessions (by a trigger). The personal data in the user's events, and in
-- other events that contain one of the user's e-mail addresses, is erased later, since their number has no limit: this
-- statement records the user for erase_user.sql and the addresses for erase_addresses.sql.
--
--   $1 user  $2 event id  $3 request id
-- and for staff, only if the user is unchanged since the preview:
--   $4 actor  $5 reason  $6 the user's updated_at  $7 ip  $8 user agent  $9 the role that the actor needs
-- and for the user:
--   $10 session, which may have ended while the provider was asked
WITH RECURSIVE permitted AS MATERIALIZED (
    SELECT FROM current_staff WHERE email = $4 AND role = $9 FOR SHARE
),
live AS MATERIALIZED (
    SELECT FROM sessions s JOIN identities i ON i.id = s.identity_id
    WHERE s.id = $10 AND s.ended_at IS NULL AND i.suspended_at IS NULL AND i.user_id = $1
          AND (i.tokens_from <= s.created_at OR i.tokens_from IS NULL)
),
-- A hijacker would delete the report with the user, and come back as somebody new.
hijacked AS MATERIALIZED (
    SELECT FROM live JOIN identities i ON i.user_id = $1
    WHERE i.hijacked
),
deleted AS (
    DELETE FROM users
    WHERE id = $1 AND ($6::timestamptz IS NULL OR updated_at = $6)
          AND ($9::text IS NULL OR EXISTS (SELECT FROM permitted))
          AND ($10::uuid IS NULL OR disabled_at IS NULL AND EXISTS (SELECT FROM live) AND NOT EXISTS (SELECT FROM hijacked))
    RETURNING id, email
),
-- Includes the users that were merged into this one.
ids AS (
    SELECT id FROM deleted
    UNION
    SELECT (e.detail->>'from')::uuid
    FROM ids JOIN events e ON e.user_id = ids.id AND e.kind = 'users_merged' AND e.detail->>'from' IS NOT NULL
),
-- The user's e-mail addresses, including those of identities and of merged users. An unverified address of an identity
-- may belong to another user, so it is not included.
theirs AS (
    SELECT email FROM deleted WHERE email IS NOT NULL
    UNION
    SELECT lower(i.email COLLATE "C") FROM identities i JOIN deleted d ON d.id = i.user_id WHERE i.email_verified
    UNION
    SELECT e.email FROM ids JOIN events e ON e.user_id = ids.id AND e.kind = 'users_merged' WHERE e.email IS NOT NULL
),
-- If another user has the address, or an identity of another user has verified it, the events with it are about that
-- user.
addresses AS (
    SELECT email FROM theirs t
    WHERE NOT EXISTS (SELECT FROM users u WHERE u.email = t.email AND u.id <> $1)
          AND NOT EXISTS (SELECT FROM identities i
                          WHERE lower(i.email COLLATE "C") = t.email AND i.email_verified AND i.user_id <> $1)
),
-- Uses the clock instead of the statement's start, because the statement may have waited for the user's row, and events
-- from that time also precede the deletion.
to_forget AS (
    INSERT INTO addresses_to_forget (address, requested_at) SELECT email, clock_timestamp() FROM addresses
    ON CONFLICT ON CONSTRAINT addresses_to_forget_pkey DO NOTHING
),
person_to_forget AS (
    INSERT INTO users_to_forget (user_id, requested_at) SELECT id, clock_timestamp() FROM ids
    ON CONFLICT ON CONSTRAINT users_to_forget_pkey DO NOTHING
),
-- The counts are for the receipt.
recorded AS (
    INSERT INTO events (id, kind, user_id, actor, detail, ip, user_agent, request_id)
    SELECT $2, 'user_deleted', id, $4,
           jsonb_strip_nulls(jsonb_build_object(
               'reason', $5::text,
               'identity_count', (SELECT count(*) FROM identities i WHERE i.user_id = deleted.id),
               'session_count', (SELECT count(*) FROM identities i JOIN sessions s ON s.identity_id = i.id
                                 WHERE i.user_id = deleted.id AND s.ended_at IS NULL AND s.expires_at > now()))),
           $7::inet, $8, $3
    FROM deleted
)
SELECT EXISTS (SELECT FROM deleted) AS "deleted!",
       $9::text IS NULL OR EXISTS (SELECT FROM permitted) AS "permitted!",
       EXISTS (SELECT FROM hijacked) AS "hijacked!",
       EXISTS (SELECT FROM users WHERE id = $1) AS "there!",
       ARRAY(SELECT id FROM ids) AS "users!", ARRAY(SELECT email FROM addresses) AS "addresses!"
