-- Counts the next events, and deletes counts that no page shows any more.
--
-- A step is a number of events and not a time, so that no hour has too many for one statement. Each
-- event counts once, in the hour of its `created_at`. Its id comes from an instance's clock, which
-- may be slow. So an event is counted once its id is ten minutes older than $2, the time up to
-- which all events are visible. An event that is written behind the place is never counted. The
-- overview itself counts the events that are not counted yet.
WITH place AS MATERIALIZED (
    SELECT place FROM cursors WHERE walk = 'events' FOR UPDATE SKIP LOCKED
),
step AS MATERIALIZED (
    SELECT e.* FROM place p CROSS JOIN LATERAL (
        SELECT id, created_at, kind, reason, provider FROM events
        WHERE id > p.place AND id < first_id($2::timestamptz - interval '10 minutes')
        ORDER BY id LIMIT $1
    ) AS e
),
counted AS (
    INSERT INTO event_counts (hour, kind, reason, provider, count)
    SELECT date_bin('1 hour', created_at, 'epoch'), kind, coalesce(reason, ''), coalesce(provider, ''), count(*)
    FROM step
    WHERE kind IN ('signed_in', 'user_created', 'identity_linked', 'sign_in_refused')
    GROUP BY 1, 2, 3, 4
    ON CONFLICT ON CONSTRAINT event_counts_pkey DO UPDATE SET count = event_counts.count + excluded.count
),
forgotten AS (
    DELETE FROM event_counts WHERE hour < now() - interval '40 days'
)
UPDATE cursors SET place = last.id FROM (SELECT id FROM step ORDER BY id DESC LIMIT 1) AS last WHERE walk = 'events'
