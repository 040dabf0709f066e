-- Exchanges refresh tokens for their successors, for as many as the arrays have elements, each of another session. The
-- session's row is the referee: it is locked, in the order of ids, and what decides is in it.
--
--   $1 sessions  $2 hashes of the family secrets  $3 hashes of the presented tokens
--   $4 hashes of the derived successors  $5 hashes of random ones  $6 event ids
--   $7 seconds that a new token is good for  $8 longest life of a session in seconds
--   $9 seconds for which a repeat gets the same successor  $10 seconds for which the parent gets another
--   $11 ips  $12 user agents  $13 request ids
--
-- The live token is exchanged for the derived successor. Its parent, shown again at once, gets the same one: the row stays
-- as it is. Shown later, it gets another one as long as the live token was never used, since then the answer was lost; the
-- live one dies. Any other token of the family was copied, and the session ends. A token of another family is unknown.
WITH input AS (
    SELECT * FROM unnest($1::uuid[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[], $6::uuid[], $11::text[],
                         $12::text[], $13::text[])
        AS t (session_id, family_hash, presented_hash, derived_hash, random_hash, event_id, ip, user_agent, request_id)
),
presented AS MATERIALIZED (
    SELECT t.*, s.token_hash, s.parent_hash, s.rotated_at, s.created_at, s.expires_at, s.ended_at, s.client_id,
           i.user_id, i.provider, u.disabled_at, coalesce(u.last_seen_on < current_date, true) AS away
    FROM input t
    JOIN sessions s ON s.id = t.session_id AND s.family_hash = t.family_hash
    JOIN identities i ON i.id = s.identity_id
    JOIN users u ON u.id = i.user_id
    ORDER BY s.id
    FOR NO KEY UPDATE OF s
),
decision AS MATERIALIZED (
    SELECT *,
           least(now() + $7::integer * interval '1 second', created_at + $8::integer * interval '1 second') AS good_until,
           CASE
               WHEN ended_at IS NOT NULL THEN 'ended'
               WHEN disabled_at IS NOT NULL THEN 'user_disabled'
               WHEN expires_at <= now() OR created_at <= now() - $8::integer * interval '1 second' THEN 'expired'
               WHEN presented_hash = token_hash THEN 'rotated'
               WHEN presented_hash = parent_hash AND token_hash = derived_hash
                    AND rotated_at > now() - $9::integer * interval '1 second' THEN 'repeated'
               WHEN presented_hash = parent_hash AND rotated_at > now() - $10::integer * interval '1 second'
                   THEN 'reissued'
               ELSE 'replayed'
           END AS outcome
    FROM presented
),
changed AS (
    UPDATE sessions s
    SET token_hash = CASE d.outcome WHEN 'rotated' THEN d.derived_hash WHEN 'reissued' THEN d.random_hash
                                    ELSE d.token_hash END,
        parent_hash = CASE d.outcome WHEN 'rotated' THEN d.presented_hash ELSE d.parent_hash END,
        rotated_at = CASE d.outcome WHEN 'rotated' THEN now() ELSE d.rotated_at END,
        last_used_at = CASE d.outcome WHEN 'replayed' THEN s.last_used_at ELSE now() END,
        expires_at = CASE d.outcome WHEN 'replayed' THEN s.expires_at ELSE d.good_until END,
        ended_at = CASE d.outcome WHEN 'replayed' THEN now() END
    FROM decision d
    WHERE s.id = d.session_id AND d.outcome IN ('rotated', 'reissued', 'replayed')
),
recorded AS (
    INSERT INTO events (id, kind, provider, user_id, session_id, ip, user_agent, request_id)
    SELECT event_id, 'refresh_token_' || outcome, provider, user_id, session_id, ip::inet, user_agent, request_id
    FROM decision WHERE outcome IN ('reissued', 'replayed')
),
-- The first refresh of the day. Whoever ends sessions has locked the user before, so this one must not wait for the user
-- while it holds the session.
came_back AS (
    UPDATE users SET last_seen_on = current_date
    WHERE id IN (
        SELECT u.id FROM users u
        WHERE u.id IN (SELECT user_id FROM decision WHERE away AND outcome IN ('rotated', 'reissued'))
        ORDER BY u.id FOR NO KEY UPDATE SKIP LOCKED
    )
)
SELECT session_id AS "session_id!", outcome AS "outcome!", user_id AS "user_id!", client_id AS "client_id!",
       floor(extract(epoch FROM CASE outcome WHEN 'repeated' THEN expires_at ELSE good_until END - now()))::bigint
           AS "expires_in!"
FROM decision
