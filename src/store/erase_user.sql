-- Erases the personal data from up to a thousand events of a deleted user. The kind and the time of an event are kept,
-- and the event of the deletion is kept whole. The task is deleted after the last event.
--
--   $1 users, or NULL for any
--
-- As in erase_addresses.sql, the lock on the task's row serialises instances, the row stores the progress, and events
-- are read in the order of exactly one index. The task of a user is looked up by its key, so that a deletion does not read
-- what is left of the tasks of others.
WITH task AS MATERIALIZED (
    SELECT * FROM users_to_forget
    WHERE user_id = ANY(coalesce($1::uuid[], ARRAY(
        SELECT user_id FROM users_to_forget ORDER BY requested_at, user_id LIMIT 1 FOR UPDATE SKIP LOCKED)))
    ORDER BY requested_at, user_id
    LIMIT 1
    FOR UPDATE SKIP LOCKED
),
theirs AS MATERIALIZED (
    SELECT e.id, e.kind
    FROM task t CROSS JOIN LATERAL (
        SELECT id, kind FROM events
        WHERE (user_id, id) > (t.user_id, t.seen) AND user_id <= t.user_id
        ORDER BY user_id, id LIMIT 1000
    ) AS e
),
forgotten AS (
    UPDATE events SET email = NULL, ip = NULL, user_agent = NULL, detail = NULL
    WHERE id = ANY(ARRAY(SELECT id FROM theirs WHERE kind <> 'user_deleted'))
    RETURNING id
),
went_on AS (
    UPDATE users_to_forget u SET seen = (SELECT id FROM theirs ORDER BY id DESC LIMIT 1)
    FROM task t WHERE u.user_id = t.user_id AND (SELECT count(*) FROM theirs) = 1000
),
ended AS (
    DELETE FROM users_to_forget u USING task t
    WHERE u.user_id = t.user_id AND (SELECT count(*) FROM theirs) < 1000
)
SELECT (SELECT count(*) FROM forgotten) AS "forgotten!" FROM task
