-- Counts the events of the next completed hour, and deletes counts that no page shows any more.
--
-- The lock on the row of `event_counts_until` serialises instances. Event ids grow with time (UUID version 7), so a
-- range of the primary key is counted at a time, and each event counts once, in the hour of its `created_at`. Ids come
-- from the instance's clock, which may be slow, so a range is counted one hour after its end; events that are written
-- into it later are never counted. Until then, the pages count the events themselves.
WITH progress AS MATERIALIZED (
    SELECT until FROM event_counts_until FOR UPDATE
),
span AS MATERIALIZED (
    SELECT until, least(date_trunc('hour', now() - interval '1 hour', 'UTC'), until + interval '1 hour') AS upto
    FROM progress
),
counted AS (
    INSERT INTO event_counts (hour, kind, reason, provider, count)
    SELECT date_trunc('hour', e.created_at, 'UTC'), e.kind, coalesce(e.reason, ''), coalesce(e.provider, ''), count(*)
    FROM span s
    JOIN events e ON e.id >= (lpad(to_hex((extract(epoch FROM s.until) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
                 AND e.id < (lpad(to_hex((extract(epoch FROM s.upto) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
    WHERE e.kind IN ('signed_in', 'user_created', 'identity_linked', 'sign_in_refused')
    GROUP BY 1, 2, 3, 4
    ON CONFLICT ON CONSTRAINT event_counts_pkey DO UPDATE SET count = event_counts.count + excluded.count
),
forgotten AS (
    DELETE FROM event_counts WHERE hour < now() - interval '40 days'
)
UPDATE event_counts_until SET until = s.upto FROM span s WHERE s.upto > s.until
