-- Applies a report of a provider, once: ends sessions, suspends identities or lifts that, and records its events.
--
-- An account that was hijacked may have let its hijacker link identities of their own: those are held until staff release
-- them, and all sessions of the user end.
--
--   $1 provider  $2 id of the message  $3 time of the events
--   for each event: $4 kind  $5 subject  $6 the subject's e-mail address  $7 the provider's reason
--   $8 an e-mail address that it tells  $9 ends the sessions opened before it
--   $10 suspends (true), or lifts the suspension (false)  $11 the account's address is somebody else's now
--   $12 request id
--
-- The users are locked first, as by every statement that ends sessions. One whose row has changed since the snapshot may
-- have other identities now: then nothing is written, and the caller runs the statement again.
--
-- Two events of a message may name one account in two ways.
WITH RECURSIVE named AS MATERIALIZED (
    SELECT t.kind, t.cause, t.email, t.ends, t.suspends, t.recycles, t.number,
           coalesce(t.subject, (
               SELECT min(a.subject) FROM (
                   SELECT i.subject FROM identities i
                   WHERE i.provider = $1 AND lower(i.email COLLATE "C") = t.subject_email AND i.email_verified
                   UNION ALL
                   -- Members of staff need not be users.
                   SELECT s.subject FROM staff s
                   WHERE s.provider = $1 AND s.email = t.subject_email
                         AND NOT EXISTS (SELECT FROM identities i WHERE i.provider = $1 AND i.subject = s.subject)
               ) AS a
               -- An address that two accounts had one after the other tells which of them is meant to nobody.
               HAVING count(*) = 1
           )) AS subject
    FROM unnest($4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::boolean[], $10::boolean[], $11::boolean[])
        WITH ORDINALITY AS t (kind, subject, subject_email, cause, email, ends, suspends, recycles, number)
),
found AS MATERIALIZED (
    SELECT i.id AS identity_id, i.subject, i.reported_at IS NOT NULL AS was_suspended, i.held_at IS NOT NULL AS held,
           coalesce(i.suspension_as_of <= $3::timestamptz, true) AS is_latest,
           u.id AS user_id, u.updated_at,
           u.email_verified AND u.email = lower(i.email COLLATE "C") AS has_address
    FROM identities i JOIN users u ON u.id = i.user_id
    WHERE i.provider = $1 AND i.subject IN (SELECT subject FROM named)
),
locked AS MATERIALIZED (
    SELECT u.id, u.updated_at FROM users u WHERE u.id IN (SELECT user_id FROM found) ORDER BY u.id FOR NO KEY UPDATE
),
decision AS MATERIALIZED (
    SELECT EXISTS (
        SELECT FROM found f LEFT JOIN locked l ON l.id = f.user_id WHERE l.updated_at IS DISTINCT FROM f.updated_at
    ) AS raced
),
-- The same message that arrives at the same time waits here.
fresh AS (
    INSERT INTO provider_events (provider, message_id) SELECT $1, $2 FROM decision WHERE NOT raced
    ON CONFLICT ON CONSTRAINT provider_events_pkey DO NOTHING
    RETURNING provider
),
-- What the message says of each account.
told AS MATERIALIZED (
    SELECT t.subject, f.identity_id, f.user_id, f.was_suspended, f.held,
           coalesce(bool_or(t.suspends), false) AS suspends, coalesce(bool_or(NOT t.suspends), false) AS lifts,
           -- True if it decides on the identity's suspension.
           bool_or(t.suspends IS NOT NULL) AND coalesce(f.is_latest, false) AS decides,
           bool_or(t.ends) AS ends, bool_or(t.recycles) AS recycles,
           bool_or(t.recycles) AND coalesce(f.has_address, false) AS takes_address,
           min(t.number) AS number,
           -- That the account is gone is the kind's word alone: such an identity can be unlinked (`unlink_identity.sql`).
           (array_agg(CASE WHEN 'account_purged' IN (t.kind, t.cause) OR 'account_deleted' IN (t.kind, t.cause) THEN t.kind
                           ELSE coalesce(t.cause, t.kind) END ORDER BY t.number) FILTER (WHERE t.suspends))[1] AS why
    FROM fresh CROSS JOIN named t LEFT JOIN found f ON f.subject = t.subject
    GROUP BY t.subject, f.identity_id, f.user_id, f.was_suspended, f.held, f.is_latest, f.has_address
),
changed AS (
    UPDATE identities i
    SET reported_at = CASE WHEN NOT m.decides THEN i.reported_at
                           WHEN m.suspends THEN coalesce(i.reported_at, $3::timestamptz) END,
        reported_reason = CASE WHEN m.decides THEN m.why ELSE i.reported_reason END,
        suspension_as_of = CASE WHEN m.decides THEN $3::timestamptz ELSE i.suspension_as_of END,
        tokens_from = CASE WHEN m.ends THEN greatest(i.tokens_from, $3::timestamptz) ELSE i.tokens_from END,
        email_verified = i.email_verified AND NOT m.recycles
                         AND (m.decides AND m.why IN ('account_purged', 'account_deleted')) IS NOT TRUE
    FROM told m
    WHERE i.id = m.identity_id AND (m.decides OR m.ends OR m.recycles)
),
-- The accounts that somebody else may have had, and since when: the last sign-in before the report, or a day.
hijacked AS MATERIALIZED (
    SELECT i.id, i.user_id, lower(i.email COLLATE "C") AS email, i.created_at, i.joined_at, i.joined_by,
           least($3::timestamptz - interval '1 day',
                 (SELECT max(s.created_at) FROM sessions s
                  WHERE s.identity_id = i.id AND s.created_at < $3::timestamptz + interval '1 second')) AS since
    FROM told m JOIN identities i ON i.id = m.identity_id
    WHERE m.decides AND m.suspends AND m.why NOT IN ('account_purged', 'account_deleted')
),
-- What came to the user by such an account since, and by that in turn.
tainted AS (
    SELECT id, user_id, since, id AS hijacked_id FROM hijacked
    UNION
    SELECT i.id, i.user_id, t.since, t.hijacked_id
    FROM tainted t JOIN identities i ON i.user_id = t.user_id AND i.joined_by = t.id AND i.joined_at >= t.since
),
held AS (
    UPDATE identities i SET held_at = $3::timestamptz
    FROM (
        SELECT id, hijacked_id FROM tainted
        UNION
        -- The account's own user was merged into another since: who was there before had the account.
        SELECT o.id, h.id FROM hijacked h JOIN identities o ON o.user_id = h.user_id AND o.joined_at <> h.joined_at
        WHERE h.joined_by IS NOT NULL AND h.created_at < h.joined_at AND h.joined_at >= h.since
        UNION
        -- Linked by its address at a sign-in: who has the account may have its mailbox.
        SELECT o.id, h.id FROM hijacked h JOIN identities o ON o.user_id = h.user_id AND o.joined_at > h.joined_at
        WHERE o.joined_by IS NULL AND o.joined_at >= h.since AND lower(o.email COLLATE "C") = h.email
    ) AS t
    WHERE i.id = t.id AND i.held_at IS NULL AND i.id NOT IN (SELECT identity_id FROM found)
    RETURNING i.id, t.hijacked_id
),
-- Staff do not go on with a preview of the user as it was, and a sign-in that would link the user notices the suspension.
touched AS (
    UPDATE users u
    SET updated_at = now(), email_verified = u.email_verified AND NOT m.takes_address,
        email_vouched = u.email_vouched AND NOT m.takes_address
    FROM (SELECT user_id, bool_or(takes_address) AS takes_address FROM told WHERE decides OR recycles GROUP BY user_id) AS m
    WHERE u.id = m.user_id
),
-- A session may have been opened at the moment of the suspension, so lifting it ends sessions, too.
ended AS (
    UPDATE sessions s SET ended_at = now()
    FROM (
        SELECT identity_id, identity_id AS told_id, decides AND (suspends OR was_suspended) AS all_end, ends FROM told
        UNION ALL
        SELECT i.id, h.id, true, true FROM hijacked h JOIN identities i ON i.user_id = h.user_id AND i.id <> h.id
    ) AS m
    WHERE s.identity_id = m.identity_id AND s.ended_at IS NULL
          -- The provider's time is in whole seconds.
          AND (m.all_end OR (m.ends AND s.created_at < $3::timestamptz + interval '1 second'))
    RETURNING m.told_id AS identity_id, s.expires_at > now() AS was_open
),
-- Members of staff sign in with an identity at the provider as well.
member AS MATERIALIZED (
    SELECT s.id, s.email, m.subject, m.suspends, m.lifts, m.ends
    FROM told m JOIN staff s ON s.provider = $1 AND s.subject = m.subject
),
changed_member AS (
    UPDATE staff s
    SET suspended_at = CASE WHEN m.suspends THEN coalesce(s.suspended_at, $3::timestamptz) END,
        suspension_as_of = $3::timestamptz
    FROM member m
    WHERE s.id = m.id AND (m.suspends OR m.lifts) AND coalesce(s.suspension_as_of <= $3::timestamptz, true)
    RETURNING s.id
),
-- A reset lets another account in, and this one only now.
admitted AS (
    UPDATE staff s SET barred_provider = NULL, barred_subject = NULL, barred_at = NULL
    FROM told m
    WHERE m.lifts AND NOT m.suspends AND s.barred_provider = $1 AND s.barred_subject = m.subject
          AND s.barred_at <= $3::timestamptz
),
ended_staff_sessions AS (
    DELETE FROM staff_sessions s USING member m LEFT JOIN changed_member c ON c.id = m.id
    WHERE s.staff_id = m.id
          AND (c.id IS NOT NULL OR (m.ends AND s.created_at < $3::timestamptz + interval '1 second'))
),
-- The address and the program that the message came from are the provider's, so they say nothing about the person.
recorded AS (
    INSERT INTO events (kind, reason, provider, email, user_id, request_id, detail)
    -- Nobody could have the address of somebody who is no user erased.
    SELECT 'provider_event', t.kind, $1, CASE WHEN m.user_id IS NOT NULL THEN t.email END, m.user_id, $12,
           jsonb_strip_nulls(jsonb_build_object(
               'at', to_char($3::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
               'cause', t.cause,
               'identity_id', m.identity_id,
               'member', (SELECT s.email FROM member s WHERE s.subject = t.subject LIMIT 1),
               'suspended', CASE WHEN t.suspends IS NOT NULL AND m.decides THEN m.suspends OR m.held END,
               'held', CASE WHEN t.number = m.number THEN
                   (SELECT jsonb_agg(id) FROM held WHERE hijacked_id = m.identity_id) END,
               'sessions', CASE WHEN t.number = m.number AND m.identity_id IS NOT NULL THEN
                   (SELECT count(*) FROM ended e WHERE e.identity_id = m.identity_id AND e.was_open) END))
    FROM fresh CROSS JOIN named t
    LEFT JOIN told m ON m.subject = t.subject
    -- The order in which the trigger locks users: statements that meet must not wait for each other.
    ORDER BY uuid_hash(m.user_id), t.number
    RETURNING 1
),
recorded_update AS (
    INSERT INTO events (kind, provider, user_id, request_id, detail)
    SELECT 'user_updated', $1, m.user_id, $12, jsonb_build_object('fields', ARRAY['email_verified'])
    FROM told m CROSS JOIN (SELECT count(*) FROM recorded) AS first WHERE m.takes_address
    ORDER BY uuid_hash(m.user_id)
)
SELECT raced AS "raced!" FROM decision
