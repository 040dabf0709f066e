-- Erases the e-mail address of a deleted user from up to a thousand events of each kind that may contain one: refused
-- sign-ins, refused sign-ins to the admin pages, and searches of staff. The address itself is deleted after the last
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
    WHERE $1::text[] IS NULL OR address = ANY($1)
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
-- The address as it is written in a query (WHATWG URL, "application/x-www-form-urlencoded serializing"), in lower case.
encoded AS MATERIALIZED (
    SELECT string_agg(
               CASE WHEN c COLLATE "C" ~ '[a-zA-Z0-9*._-]' THEN c
                    ELSE regexp_replace(encode(convert_to(c, 'UTF8'), 'hex'), '(..)', '%\1', 'g') END,
               '' ORDER BY n) AS address
    FROM task t CROSS JOIN LATERAL regexp_split_to_table(t.address, '') WITH ORDINALITY AS parts (c, n)
),
searched AS MATERIALIZED (
    SELECT e.id, e.created_at <= t.requested_at
                 AND (strpos(e.search, t.address) > 0 OR strpos(e.search, encoded.address) > 0) AS due
    FROM task t CROSS JOIN encoded CROSS JOIN LATERAL (
        SELECT id, created_at, lower(detail->>'search' COLLATE "C") AS search FROM events
        WHERE detail->>'search' ~ '@|%40' AND id > t.searched
        ORDER BY id LIMIT 1000
    ) AS e
),
forgotten AS (
    UPDATE events
    SET email = NULL,
        ip = CASE kind WHEN 'users_merged' THEN ip END,
        user_agent = CASE kind WHEN 'users_merged' THEN user_agent END,
        detail = CASE kind WHEN 'users_merged' THEN detail END,
        actor = CASE kind WHEN 'users_merged' THEN actor END
    WHERE id = ANY(ARRAY(SELECT id FROM claimed WHERE due UNION ALL SELECT id FROM refused WHERE due))
    RETURNING id
),
-- The member of staff, the time and the IP address are kept: they are about staff.
unsearched AS (
    UPDATE events SET detail = detail - 'search' WHERE id = ANY(ARRAY(SELECT id FROM searched WHERE due)) RETURNING id
),
progress AS MATERIALIZED (
    SELECT greatest((SELECT count(*) FROM claimed), (SELECT count(*) FROM refused), (SELECT count(*) FROM searched)) < 1000
           AS done
),
went_on AS (
    UPDATE addresses_to_forget a
    SET claimed = coalesce((SELECT id FROM claimed ORDER BY id DESC LIMIT 1), a.claimed),
        refused = coalesce((SELECT id FROM refused ORDER BY id DESC LIMIT 1), a.refused),
        searched = coalesce((SELECT id FROM searched ORDER BY id DESC LIMIT 1), a.searched)
    FROM task t, progress p
    WHERE (a.address, a.requested_at) = (t.address, t.requested_at) AND NOT p.done
),
ended AS (
    DELETE FROM addresses_to_forget a USING task t, progress p
    WHERE (a.address, a.requested_at) = (t.address, t.requested_at) AND p.done
)
SELECT (SELECT count(*) FROM forgotten) + (SELECT count(*) FROM unsearched) AS "forgotten!" FROM task
