-- Erases a trace of a deleted user from up to a thousand events. The user's own events keep their
-- kind and time, and the event of the deletion is kept whole. Other events contain the user's
-- e-mail address: refused sign-ins, searches by staff, and refused sign-ins to the admin pages. The
-- event of a merge contains the address that a merged user had before. The trace itself is deleted
-- after the last event.
--
--   $1 values of traces, or NULL for any
--
-- The lock on the trace's row serialises instances, and the row stores the progress. An event of
-- others changes only if it precedes the deletion, because another user may have the address since.
-- A trace is looked up by its key, so that a deletion does not read the traces of other deletions.
--
-- Events are read in the order of exactly one index, from a stored position on, so that no
-- statement reads more than a thousand of them, whatever the planner estimates.
WITH task AS MATERIALIZED (
    SELECT *, CASE field WHEN 'user_id' THEN value::uuid END AS user_id, CASE field WHEN 'email' THEN value END AS email,
           CASE field WHEN 'actor' THEN value END AS actor
    FROM pending_erasures
    WHERE value = ANY(coalesce($1::text[], ARRAY(
        SELECT value FROM pending_erasures ORDER BY requested_at, value LIMIT 1 FOR UPDATE SKIP LOCKED)))
    ORDER BY requested_at, field DESC, value
    LIMIT 1
    FOR UPDATE SKIP LOCKED
),
found AS MATERIALIZED (
    SELECT e.id, CASE t.field WHEN 'user_id' THEN e.kind <> 'user_deleted' WHEN 'email' THEN e.created_at <= t.requested_at
                              ELSE e.created_at <= t.requested_at AND e.kind = 'staff_refused' END AS due
    FROM task t CROSS JOIN LATERAL (
        (SELECT id, kind, created_at FROM events
         WHERE (user_id, id) > (t.user_id, t.seen) AND user_id <= t.user_id ORDER BY user_id, id LIMIT 1000)
        UNION ALL
        (SELECT id, kind, created_at FROM events
         WHERE (email, id) > (t.email, t.seen) AND email <= t.email ORDER BY email, id LIMIT 1000)
        UNION ALL
        (SELECT id, kind, created_at FROM events
         WHERE (actor, id) > (t.actor, t.seen) AND actor <= t.actor ORDER BY actor, id LIMIT 1000)
    ) AS e
),
-- The event of a search keeps the member of staff, the time and the IP address: they are about
-- staff.
erased AS (
    UPDATE events e
    SET (email, ip, user_agent, actor, detail) = (
        SELECT NULL, CASE WHEN kept THEN e.ip END, CASE WHEN kept THEN e.user_agent END,
               CASE WHEN kept OR t.user_id IS NOT NULL THEN e.actor END,
               CASE WHEN kept AND e.kind = 'users_merged' THEN e.detail WHEN kept THEN e.detail - 'search' END
        FROM (SELECT t.user_id IS NULL AND (e.kind = 'users_merged' OR e.detail ? 'search') AS kept) AS k
    )
    FROM task t
    WHERE e.id = ANY(ARRAY(SELECT id FROM found WHERE due))
    RETURNING e.id
),
went_on AS (
    UPDATE pending_erasures r SET seen = (SELECT id FROM found ORDER BY id DESC LIMIT 1)
    FROM task t
    WHERE (r.value, r.field, r.requested_at) = (t.value, t.field, t.requested_at) AND (SELECT count(*) FROM found) = 1000
),
ended AS (
    DELETE FROM pending_erasures r USING task t
    WHERE (r.value, r.field, r.requested_at) = (t.value, t.field, t.requested_at) AND (SELECT count(*) FROM found) < 1000
)
SELECT (SELECT count(*) FROM erased) AS "erased!" FROM task
