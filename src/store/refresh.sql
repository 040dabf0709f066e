-- Exchanges a refresh token for its successor: one statement, serialised by the session's row.
--
--   $1 hash of the token    $2 hash of the successor
--   $3 successor's lifetime in seconds, which ends with the session's at the latest
--   $4 seconds for which a consumed token is good for another successor
--   $5 longest life of a session in seconds
--   $6 event id  $7 ip  $8 user agent  $9 request id
--
-- What decides is in the session's row, which is locked and therefore current, and in the token's
-- number, which never changes. A token's number is that of the live one: it is consumed. It is the
-- live one's parent's, lately: the answer was lost, so it gets another successor, and the one that
-- was lost is no longer live. It is any other: the token was stolen or copied, and the session ends.
WITH presented AS MATERIALIZED (
    SELECT t.generation AS presented_generation, t.expires_at, s.id, s.generation, s.parent_generation,
           s.parent_consumed_at, s.created_at, s.ended_at, s.client_id, i.user_id, i.provider, u.disabled_at,
           coalesce(u.last_seen_on < current_date, true) AS away
    FROM refresh_tokens t
    JOIN sessions s ON s.id = t.session_id
    JOIN identities i ON i.id = s.identity_id
    JOIN users u ON u.id = i.user_id
    WHERE t.hash = $1
    FOR NO KEY UPDATE OF s
),
decision AS MATERIALIZED (
    SELECT id, user_id, provider, client_id, generation, presented_generation, parent_consumed_at, away,
           least(now() + $3::integer * interval '1 second', created_at + $5::integer * interval '1 second') AS expires_at,
           CASE
               WHEN ended_at IS NOT NULL THEN 'ended'
               WHEN disabled_at IS NOT NULL THEN 'user_disabled'
               WHEN created_at <= now() - $5::integer * interval '1 second' THEN 'expired'
               WHEN presented_generation = generation AND expires_at <= now() THEN 'expired'
               WHEN presented_generation = generation THEN 'rotated'
               WHEN presented_generation = parent_generation
                    AND parent_consumed_at > now() - $4::integer * interval '1 second' THEN 'reissued'
               ELSE 'replayed'
           END AS outcome
    FROM presented
),
rotated_session AS (
    UPDATE sessions s
    SET generation = d.generation + 1,
        parent_generation = d.presented_generation,
        -- As the lock found it: the row that is updated is the one of the statement's snapshot.
        parent_consumed_at = CASE d.outcome WHEN 'rotated' THEN now() ELSE d.parent_consumed_at END,
        last_used_at = now()
    FROM decision d
    WHERE s.id = d.id AND d.outcome IN ('rotated', 'reissued')
),
consumed AS (
    UPDATE refresh_tokens t SET consumed_at = now()
    FROM decision d
    WHERE t.hash = $1 AND d.outcome = 'rotated'
),
successor AS (
    INSERT INTO refresh_tokens (hash, session_id, generation, expires_at)
    SELECT $2, id, generation + 1, expires_at
    FROM decision WHERE outcome IN ('rotated', 'reissued')
),
-- The first refresh of the day. Whoever ends sessions has locked the user before, so this one must not
-- wait for the user while it holds the session.
came_back AS (
    UPDATE users SET last_seen_on = current_date
    WHERE id = (
        SELECT u.id FROM users u JOIN decision d ON d.user_id = u.id
        WHERE d.away AND d.outcome IN ('rotated', 'reissued') AND coalesce(u.last_seen_on < current_date, true)
        FOR NO KEY UPDATE OF u SKIP LOCKED
    )
),
ended_session AS (
    UPDATE sessions s SET ended_at = now()
    FROM decision d
    WHERE s.id = d.id AND d.outcome = 'replayed'
),
recorded AS (
    INSERT INTO events (id, kind, provider, user_id, session_id, ip, user_agent, request_id)
    SELECT $6, 'refresh_token_replayed', provider, user_id, id, $7::text::inet, $8, $9
    FROM decision WHERE outcome = 'replayed'
)
SELECT outcome AS "outcome!", id AS "session_id!", user_id AS "user_id!", client_id AS "client_id!",
       floor(extract(epoch FROM expires_at - now()))::bigint AS "expires_in!"
FROM decision
