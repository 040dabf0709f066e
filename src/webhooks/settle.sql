-- Records the end of an attempt to send a message: deletes a delivered one, and lets a failed one wait or parks it.
--
--   $1 message  $2 its number of attempts  $3 the failure, or NULL if it was delivered
--   $4 seconds to the next attempt, or NULL to park the message
--
-- A message that another instance has taken over meanwhile has another number of attempts, and a failure then says
-- nothing. Messages of the same user wait with this one, and the next one is due once it no longer waits. Only messages
-- that nobody has tried to send are moved.
WITH delivered AS (
    DELETE FROM webhook_messages WHERE id = $1 AND $3::text IS NULL
    RETURNING id, webhook, user_id, other_id
),
failed AS (
    UPDATE webhook_messages
    SET failure = $3, parked_at = CASE WHEN $4::float8 IS NULL THEN now() END,
        next_attempt_at = now() + coalesce($4::float8, 0) * (0.9 + 0.2 * random()) * interval '1 second'
    WHERE id = $1 AND attempts = $2 AND parked_at IS NULL AND $3::text IS NOT NULL
    RETURNING id, webhook, user_id, other_id, parked_at, next_attempt_at
),
freed AS (
    SELECT next.id
    FROM (SELECT * FROM delivered
          UNION ALL SELECT id, webhook, user_id, other_id FROM failed WHERE parked_at IS NOT NULL) AS over
    CROSS JOIN LATERAL unnest(ARRAY[over.user_id, over.other_id]) AS person (id)
    CROSS JOIN LATERAL (
        (SELECT m.id FROM webhook_messages m
         WHERE m.user_id = person.id AND m.webhook = over.webhook AND m.parked_at IS NULL AND m.id > over.id
         ORDER BY m.id LIMIT 1)
        UNION ALL
        (SELECT m.id FROM webhook_messages m
         WHERE m.other_id = person.id AND m.webhook = over.webhook AND m.parked_at IS NULL AND m.id > over.id
         ORDER BY m.id LIMIT 1)
    ) AS next
),
moved AS (
    UPDATE webhook_messages SET next_attempt_at = now()
    WHERE id IN (SELECT id FROM freed) AND attempts = 0 AND next_attempt_at > now()
),
delayed AS (
    UPDATE webhook_messages m SET next_attempt_at = f.next_attempt_at
    FROM failed f
    WHERE f.parked_at IS NULL AND m.webhook = f.webhook AND m.parked_at IS NULL AND m.id > f.id
          AND m.attempts = 0 AND m.next_attempt_at < f.next_attempt_at
          AND (m.user_id IN (f.user_id, f.other_id) OR m.other_id IN (f.user_id, f.other_id))
)
SELECT EXISTS (SELECT FROM delivered) OR EXISTS (SELECT FROM failed) AS "settled!"
