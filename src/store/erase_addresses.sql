-- Erases the e-mail address of a deleted user from up to a thousand events of each kind that may contain one: refused
-- sign-ins and searches of staff, and refused sign-ins to the admin pages. The address itself is deleted after the last
-- event. The event of a merge keeps the address that a merged user had before.
--
--   $1 addresses, or NULL for any
--
-- The lock on the row of `addresses_to_forget` serialises instances, and the row stores the progress. Only events before
-- the deletion are erased, because another user may have the address since.
--
-- Events are read in the order of exactly one index, from a stored position on, so that no statement reads more than a
-- thousand of them, whatever the planner estimates.
WITH task AS MATERIALIZED (
    SELECT * FROM addresses_to_forget
    WHERE address = ANY(coalesce($1::text[], ARRAY(
        SELECT address FROM addresses_to_forget ORDER BY requested_at, address LIMIT 1 FOR UPDATE SKIP LOCKED)))
    ORDER BY requested_at, address
    LIMIT 1
    FOR UPDATE SKIP LOCKED
),
claimed AS MATERIALIZED (
    SELECT e.id, e.created_at <= t.requested_at AS due
    FROM task t CROSS JOIN LATERAL (
        SELECT id, created_at FROM events
        WHERE (email, id) > (t.address, t.claimed) AND email <= t.address
        ORDER BY email, id LIMIT 1000
    ) AS e
),
refused AS MATERIALIZED (
    SELECT e.id, e.created_at <= t.requested_at AND e.kind = 'staff_refused' AS due
    FROM task t CROSS JOIN LATERAL (
        SELECT id, created_at, kind FROM events
        WHERE (actor, id) > (t.address, t.refused) AND actor <= t.address
        ORDER BY actor, id LIMIT 1000
    ) AS e
),
-- Of a search, the member of staff, the time and the IP address are kept: they are about staff.
forgotten AS (
    UPDATE events
    SET email = NULL,
        ip = CASE WHEN kind = 'users_merged' OR detail ? 'search' THEN ip END,
        user_agent = CASE WHEN kind = 'users_merged' OR detail ? 'search' THEN user_agent END,
        actor = CASE WHEN kind = 'users_merged' OR detail ? 'search' THEN actor END,
        detail = CASE WHEN kind = 'users_merged' THEN detail WHEN detail ? 'search' THEN detail - 'search' END
    WHERE id = ANY(ARRAY(SELECT id FROM claimed WHERE due UNION ALL SELECT id FROM refused WHERE due))
    RETURNING id
),
progress AS MATERIALIZED (
    SELECT greatest((SELECT count(*) FROM claimed), (SELECT count(*) FROM refused)) < 1000 AS done
),
went_on AS (
    UPDATE addresses_to_forget a
    SET claimed = coalesce((SELECT id FROM claimed ORDER BY id DESC LIMIT 1), a.claimed),
        refused = coalesce((SELECT id FROM refused ORDER BY id DESC LIMIT 1), a.refused)
    FROM task t, progress p
    WHERE (a.address, a.requested_at) = (t.address, t.requested_at) AND NOT p.done
),
ended AS (
    DELETE FROM addresses_to_forget a USING task t, progress p
    WHERE (a.address, a.requested_at) = (t.address, t.requested_at) AND p.done
)
SELECT (SELECT count(*) FROM forgotten) AS "forgotten!" FROM task
