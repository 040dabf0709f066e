-- Applies a report of a provider, once: ends sessions, suspends identities or lifts that, and records its events.
--
-- An attacker may have had a hijacked account since its last sign-in, and at least for the last
-- seven days. Every identity that came to its user in that time is held until staff release it, and
-- all sessions of the user end.
--
--   $1 provider  $2 id of the message  $3 time of the events
--   for each event: $4 kind  $5 subject  $6 the subject's e-mail address  $7 the provider's reason
--   $8 an e-mail address in the event  $9 ends the sessions opened before it
--   $10 suspends (true), or lifts the suspension (false)  $11 the address belongs to another person
--   $12 request id
--
-- The users are locked first, as by every statement that ends sessions. A user whose row has
-- changed since the snapshot may have other identities now: then nothing is written, and the caller
-- runs the statement again.
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
               -- An address that two accounts had, one after the other, does not show which of them
               -- is meant.
               HAVING count(*) = 1
           )) AS subject
    FROM unnest($4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::boolean[], $10::boolean[], $11::boolean[])
        WITH ORDINALITY AS t (kind, subject, subject_email, cause, email, ends, suspends, recycles, number)
),
-- Each account, with its identity if a user has it.
found AS MATERIALIZED (
    SELECT n.subject, i.id AS identity_id, i.reported_at IS NOT NULL AS was_suspended, i.held_at IS NOT NULL AS held,
           coalesce(greatest(i.suspension_as_of, (
               SELECT max(f.suspension_as_of) FROM former_identities f WHERE f.provider = $1 AND f.subject = n.subject
           )) <= $3::timestamptz, true) AS is_latest,
           u.id AS user_id, u.email_verified AND u.email = lower(i.email COLLATE "C") AS has_address
    FROM (SELECT DISTINCT subject FROM named WHERE subject IS NOT NULL) AS n
    LEFT JOIN (identities i JOIN users u ON u.id = i.user_id) ON i.provider = $1 AND i.subject = n.subject
),
-- The times in which an account was a user's.
stays AS MATERIALIZED (
    SELECT i.subject, i.user_id, i.joined_at, 'infinity'::timestamptz AS left_at, i.signed_in_at
    FROM found f JOIN identities i ON i.id = f.identity_id
    UNION ALL
    SELECT s.subject, s.user_id, s.joined_at, s.left_at, s.signed_in_at
    FROM found f JOIN former_identities s ON s.provider = $1 AND s.subject = f.subject
),
-- The time from which on an attacker may have had the account.
windows AS MATERIALIZED (
    SELECT subject, least($3::timestamptz - interval '7 days',
                          -- The provider's time is in whole seconds.
                          max(at) FILTER (WHERE at < $3::timestamptz + interval '1 second')) AS since
    FROM (
        SELECT subject, signed_in_at AS at FROM stays
        UNION ALL
        SELECT f.subject, s.created_at FROM found f JOIN sessions s ON s.identity_id = f.identity_id
    ) AS sign_ins
    GROUP BY subject
),
-- The users who had the account since then, each from the moment on at which its holder could let
-- others in. A user who got the account by a merge in that time is not a root: `family` reaches
-- them from the merged user.
roots AS MATERIALIZED (
    SELECT s.subject, s.user_id, greatest(w.since, min(s.joined_at)) AS since
    FROM stays s JOIN windows w ON w.subject = s.subject
    WHERE NOT EXISTS (
        SELECT FROM merged_users m
        WHERE m.into_id = s.user_id AND m.merged_at = s.joined_at AND m.merged_at >= w.since
    )
    GROUP BY s.subject, s.user_id, w.since
    HAVING max(s.left_at) >= w.since
),
-- With the users into whom they were merged.
family AS (
    SELECT subject, user_id AS root_id, since, user_id FROM roots
    UNION
    SELECT f.subject, f.root_id, f.since, m.into_id FROM family f JOIN merged_users m ON m.id = f.user_id
),
-- The identities that these users have, and that the root user did not have at that moment.
gained AS MATERIALIZED (
    SELECT f.subject, i.id AS identity_id
    FROM family f JOIN identities i ON i.user_id = f.user_id
    WHERE (i.provider, i.subject) <> ($1, f.subject)
          AND NOT (i.user_id = f.root_id AND i.joined_at <= f.since)
          AND NOT EXISTS (
              SELECT FROM former_identities s
              WHERE s.provider = i.provider AND s.subject = i.subject AND s.user_id = f.root_id
                    AND s.joined_at <= f.since AND s.left_at > f.since
          )
),
seen AS MATERIALIZED (
    SELECT id, updated_at FROM users WHERE id IN (SELECT user_id FROM found UNION SELECT user_id FROM family)
),
locked AS MATERIALIZED (
    SELECT u.id, u.updated_at FROM users u WHERE u.id IN (SELECT id FROM seen) ORDER BY u.id FOR NO KEY UPDATE
),
decision AS MATERIALIZED (
    SELECT EXISTS (
        SELECT FROM seen s LEFT JOIN locked l ON l.id = s.id WHERE l.updated_at IS DISTINCT FROM s.updated_at
    ) AS raced
),
-- The same message that arrives at the same time waits here.
fresh AS (
    INSERT INTO provider_events (provider, message_id) SELECT $1, $2 FROM decision WHERE NOT raced
    ON CONFLICT ON CONSTRAINT provider_events_pkey DO NOTHING
    RETURNING provider
),
-- The message's statements about each account.
reported AS MATERIALIZED (
    SELECT *, decides AND suspends AND why NOT IN ('account_purged', 'account_deleted') AS hijacked
    FROM (
        SELECT t.subject, f.identity_id, f.user_id, f.was_suspended, f.held,
               coalesce(bool_or(t.suspends), false) AS suspends, coalesce(bool_or(NOT t.suspends), false) AS lifts,
               -- True if it decides on the account's suspension.
               bool_or(t.suspends IS NOT NULL) AND coalesce(f.is_latest, false) AS decides,
               bool_or(t.ends) AS ends, bool_or(t.recycles) AS recycles,
               bool_or(t.recycles) AND coalesce(f.has_address, false) AS takes_address,
               min(t.number) AS number,
               -- Only the event's kind says that the account is gone: such an identity can be
               -- unlinked (`unlink_identity.sql`).
               (array_agg(CASE WHEN 'account_purged' IN (t.kind, t.cause) OR 'account_deleted' IN (t.kind, t.cause) THEN t.kind
                               ELSE coalesce(t.cause, t.kind) END ORDER BY t.number) FILTER (WHERE t.suspends))[1] AS why
        FROM fresh CROSS JOIN named t LEFT JOIN found f ON f.subject = t.subject
        GROUP BY t.subject, f.identity_id, f.user_id, f.was_suspended, f.held, f.is_latest, f.has_address
    ) AS m
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
    FROM reported m
    WHERE i.id = m.identity_id AND (m.decides OR m.ends OR m.recycles)
),
-- An account that was unlinked, or whose user is deleted, cannot sign in before the provider has
-- lifted the suspension. Until then, no identity is linked by its address to the user who had the
-- account in that time.
changed_former AS (
    UPDATE former_identities f
    SET suspended_at = CASE WHEN m.hijacked THEN coalesce(f.suspended_at, $3::timestamptz) END,
        suspension_as_of = $3::timestamptz
    FROM reported m JOIN windows w ON w.subject = m.subject
    WHERE f.provider = $1 AND f.subject = m.subject AND m.decides AND (f.left_at >= w.since OR NOT m.hijacked)
),
changed_deleted AS (
    UPDATE deleted_identities d SET suspended_at = CASE WHEN m.hijacked THEN $3::timestamptz END
    FROM reported m WHERE d.hash = identity_hash($1, m.subject) AND m.decides
),
held AS (
    UPDATE identities i SET held_at = $3::timestamptz
    FROM reported m JOIN gained g ON g.subject = m.subject
    WHERE m.hijacked AND i.id = g.identity_id AND i.held_at IS NULL
          AND NOT EXISTS (SELECT FROM found f WHERE f.identity_id = i.id)
    RETURNING i.id, i.user_id, i.provider, m.subject, m.identity_id AS by_id
),
-- The users of hijacked accounts.
victims AS MATERIALIZED (
    SELECT DISTINCT f.subject, u.id AS user_id
    FROM reported m JOIN family f ON f.subject = m.subject JOIN users u ON u.id = f.user_id
    WHERE m.hijacked
),
-- Staff do not go on with a preview of the user as it was, and a sign-in that would link the user notices the suspension.
touched AS (
    UPDATE users u
    SET updated_at = now(), email_verified = u.email_verified AND NOT m.takes_address,
        email_vouched = u.email_vouched AND NOT m.takes_address
    FROM (
        SELECT user_id, bool_or(takes_address) AS takes_address
        FROM (
            SELECT user_id, takes_address FROM reported WHERE decides OR recycles
            UNION ALL
            SELECT user_id, false FROM victims
        ) AS changes
        GROUP BY user_id
    ) AS m
    WHERE u.id = m.user_id
),
-- A session may have been opened at the moment of the suspension, so lifting it ends sessions, too.
ended AS (
    UPDATE sessions s SET ended_at = now()
    FROM (
        SELECT subject, identity_id, decides AND (suspends OR was_suspended) AS all_end, ends FROM reported
        UNION ALL
        SELECT v.subject, i.id, true, true
        FROM victims v JOIN identities i ON i.user_id = v.user_id AND (i.provider, i.subject) <> ($1, v.subject)
    ) AS m
    WHERE s.identity_id = m.identity_id AND s.ended_at IS NULL
          AND (m.all_end OR (m.ends AND s.created_at < $3::timestamptz + interval '1 second'))
    RETURNING m.subject, s.expires_at > now() AS was_open
),
-- Members of staff sign in with an identity at the provider as well.
member AS MATERIALIZED (
    SELECT s.id, s.email, m.subject, m.suspends, m.lifts, m.ends
    FROM reported m JOIN staff s ON s.provider = $1 AND s.subject = m.subject
),
changed_member AS (
    UPDATE staff s
    SET suspended_at = CASE WHEN m.suspends THEN coalesce(s.suspended_at, $3::timestamptz) END,
        suspension_as_of = $3::timestamptz
    FROM member m
    WHERE s.id = m.id AND (m.suspends OR m.lifts) AND coalesce(s.suspension_as_of <= $3::timestamptz, true)
    RETURNING s.id
),
-- A member's reset bars the suspended account and admits another one. The suspended account is
-- admitted again only now.
admitted AS (
    UPDATE staff s SET barred_provider = NULL, barred_subject = NULL, barred_at = NULL
    FROM reported m
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
    SELECT e.kind, e.reason, e.provider, e.email, e.user_id, $12, e.detail
    FROM (
        SELECT 'provider_event' AS kind, t.kind AS reason, $1 AS provider,
               -- Without a user, the address could never be erased.
               CASE WHEN m.user_id IS NOT NULL THEN t.email END AS email,
               coalesce(m.user_id, (SELECT v.user_id FROM victims v WHERE v.subject = m.subject LIMIT 1)) AS user_id,
               jsonb_strip_nulls(jsonb_build_object(
                   'at', to_char($3::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
                   'cause', t.cause,
                   'identity_id', m.identity_id,
                   'member', (SELECT s.email FROM member s WHERE s.subject = t.subject LIMIT 1),
                   'suspended', CASE WHEN t.suspends IS NOT NULL AND m.decides AND m.identity_id IS NOT NULL
                                     THEN m.suspends OR m.held END,
                   'held', CASE WHEN t.number = m.number THEN
                       (SELECT jsonb_agg(h.id) FROM held h WHERE h.subject = m.subject) END,
                   'sessions', CASE WHEN t.number = m.number AND (m.identity_id IS NOT NULL OR m.hijacked) THEN
                       (SELECT count(*) FROM ended e WHERE e.subject = m.subject AND e.was_open) END)) AS detail,
               t.number
        FROM fresh CROSS JOIN named t LEFT JOIN reported m ON m.subject = t.subject
        UNION ALL
        SELECT 'identity_held', NULL, provider, NULL, user_id,
               jsonb_strip_nulls(jsonb_build_object('identity_id', id, 'by', by_id)), NULL
        FROM held
    ) AS e
    -- The order in which the trigger locks users: statements that meet must not wait for each other. The report comes before
    -- what it holds.
    ORDER BY uuid_hash(e.user_id), e.number
    RETURNING 1
),
recorded_update AS (
    INSERT INTO events (kind, provider, user_id, request_id, detail)
    SELECT 'user_updated', $1, m.user_id, $12, jsonb_build_object('fields', ARRAY['email_verified'])
    FROM reported m CROSS JOIN (SELECT count(*) FROM recorded) AS first WHERE m.takes_address
    ORDER BY uuid_hash(m.user_id)
)
SELECT raced AS "raced!" FROM decision
