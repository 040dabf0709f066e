-- Applies a report of a provider, once: ends sessions, suspends identities or lifts that, and records its events.
--
--   $1 provider  $2 id of the message  $3 time of the events
--   for each event: $4 id  $5 kind  $6 subject  $7 the subject's e-mail address  $8 the provider's reason
--   $9 an e-mail address that it tells  $10 ends the sessions opened before it
--   $11 suspends (true), or lifts the suspension (false)
--   $12 request id
--
-- The users are locked first, as by every statement that ends sessions. One whose row has changed since the snapshot may
-- have other identities now: then nothing is written, and the caller runs the statement again.
WITH input AS (
    SELECT * FROM unnest($4::uuid[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::boolean[], $11::boolean[])
        WITH ORDINALITY AS t (event_id, kind, subject, subject_email, cause, email, ends, suspends, number)
),
found AS MATERIALIZED (
    SELECT t.number, i.id AS identity_id, i.suspended_at IS NOT NULL AS was_suspended, u.id AS user_id, u.updated_at
    FROM input t
    JOIN LATERAL (
        SELECT i.id FROM identities i WHERE i.provider = $1 AND i.subject = t.subject
        UNION ALL
        -- An address that two accounts had one after the other tells which of them is meant to nobody.
        SELECT (array_agg(i.id))[1] FROM identities i
        WHERE t.subject IS NULL AND i.provider = $1 AND lower(i.email COLLATE "C") = t.subject_email AND i.email_verified
        HAVING count(*) = 1
    ) AS one ON true
    JOIN identities i ON i.id = one.id
    JOIN users u ON u.id = i.user_id
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
told AS MATERIALIZED (
    SELECT t.subject, f.identity_id, f.user_id, coalesce(f.was_suspended, false) AS was_suspended,
           coalesce(bool_or(t.suspends), false) AS suspends, coalesce(bool_or(NOT t.suspends), false) AS lifts,
           bool_or(t.ends) AS ends, min(t.number) AS number,
           (array_agg(coalesce(t.cause, t.kind) ORDER BY t.number) FILTER (WHERE t.suspends))[1] AS why
    FROM fresh CROSS JOIN input t LEFT JOIN found f ON f.number = t.number
    GROUP BY t.subject, f.identity_id, f.user_id, f.was_suspended
),
changed AS (
    UPDATE identities i
    SET suspended_at = CASE WHEN m.suspends THEN coalesce(i.suspended_at, $3::timestamptz) END,
        suspended_reason = m.why,
        suspension_as_of = $3::timestamptz
    FROM told m
    WHERE i.id = m.identity_id AND (m.suspends OR m.lifts) AND coalesce(i.suspension_as_of <= $3::timestamptz, true)
    RETURNING i.id, m.user_id, m.suspends
),
-- Staff do not go on with a preview of the user as it was.
touched AS (
    UPDATE users SET updated_at = now() WHERE id IN (SELECT user_id FROM changed)
),
-- A session may have been opened at the moment of the suspension, so lifting it ends sessions, too.
ended AS (
    UPDATE sessions s SET ended_at = now()
    FROM told m LEFT JOIN changed c ON c.id = m.identity_id
    WHERE s.identity_id = m.identity_id AND s.ended_at IS NULL
          AND (c.suspends OR (c.id IS NOT NULL AND m.was_suspended)
               -- The provider's time is in whole seconds.
               OR (m.ends AND s.created_at < $3::timestamptz + interval '1 second'))
    RETURNING s.identity_id, s.expires_at > now() AS was_open
),
-- Members of staff sign in with an identity at the provider as well.
member AS MATERIALIZED (
    SELECT s.id, s.email, m.* FROM told m JOIN staff s ON s.provider = $1 AND s.subject = m.subject
),
changed_member AS (
    UPDATE staff s
    SET suspended_at = CASE WHEN m.suspends THEN coalesce(s.suspended_at, $3::timestamptz) END,
        suspension_as_of = $3::timestamptz
    FROM member m
    WHERE s.id = m.id AND (m.suspends OR m.lifts) AND coalesce(s.suspension_as_of <= $3::timestamptz, true)
    RETURNING s.id, m.suspends
),
ended_staff_sessions AS (
    DELETE FROM staff_sessions s USING member m LEFT JOIN changed_member c ON c.id = m.id
    WHERE s.staff_id = m.id
          AND (c.suspends OR (m.ends AND s.created_at < $3::timestamptz + interval '1 second'))
),
-- The address and the program that the message came from are the provider's, so they say nothing about the person.
recorded AS (
    INSERT INTO events (id, kind, reason, provider, email, user_id, request_id, detail)
    -- Nobody could have the address of somebody who is no user erased.
    SELECT t.event_id, 'provider_event', t.kind, $1, CASE WHEN f.user_id IS NOT NULL THEN t.email END, f.user_id, $12,
           jsonb_strip_nulls(jsonb_build_object(
               'at', to_char($3::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
               'cause', t.cause,
               'identity_id', f.identity_id,
               'member', (SELECT m.email FROM member m WHERE m.subject = t.subject LIMIT 1),
               'suspended', CASE WHEN t.suspends IS NOT NULL THEN c.suspends END,
               'sessions', CASE WHEN t.number = m.number THEN
                   (SELECT count(*) FROM ended e WHERE e.identity_id = f.identity_id AND e.was_open) END))
    FROM fresh CROSS JOIN input t
    LEFT JOIN found f ON f.number = t.number
    LEFT JOIN told m ON m.identity_id = f.identity_id
    LEFT JOIN changed c ON c.id = f.identity_id
    -- The order in which the trigger locks users: statements that meet must not wait for each other.
    ORDER BY uuid_hash(f.user_id)
)
SELECT raced AS "raced!" FROM decision
