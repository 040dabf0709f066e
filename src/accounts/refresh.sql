-- Exchanges refresh tokens for their successors. Each element of the arrays is a token of another
-- session. The rows of the sessions are locked in the order of their ids and contain all data for
-- the decision.
--
--   $1 sessions  $2 hashes of the family secrets  $3 hashes of the presented tokens
--   $4 hashes of their successors
--   $5 hashes of their reissued successors of this period  $6 of the period before
--   $7 ips  $8 user agents  $9 request ids
--   $10 lifetime of a new token in seconds  $11 maximum lifetime of a session in seconds
--   $12 seconds for which a repeat gets the same successor  $13 seconds for which the parent gets another,
--   the setting `refresh_grace`, which src/accounts/lanes.rs passes
--   $14, $15, $16 as $4, $5, $6, but derived from the secret_key before the current one, or NULL
--   $17 thumbprints of the keys that the requests prove, or NULL
--
-- The live token is exchanged for its successor. Its parent is the token whose successor is live; a
-- parent's hash is stored only if it got a second successor. A parent that is repeated at once gets
-- the same successor, and the row does not change. A parent that is repeated later gets another
-- successor if the live token was never used, because then the response was lost; the live token
-- becomes invalid, and a repeat at once again gets the same successor. Any other token of the
-- family is a copy, and the session ends. A token of another family is unknown. A session that is
-- bound to a key stays as it is unless the request proves that key.
--
-- A phone that repeats a refresh may have another address meanwhile, but not another user agent. If
-- both differ, one of the two may be a thief: the first such repeat after a rotation is recorded,
-- and the row notes that it was.
WITH input AS (
    SELECT * FROM unnest($1::uuid[], $2::bytea[], $3::bytea[], $4::bytea[], $5::bytea[], $6::bytea[], $7::inet[],
                         $8::text[], $9::text[], $14::bytea[], $15::bytea[], $16::bytea[], $17::bytea[])
        AS t (session_id, family_hash, presented_hash, successor_hash, reissue_hash, reissued_hash, ip, user_agent,
              request_id, old_successor_hash, old_reissue_hash, old_reissued_hash, key)
),
presented AS MATERIALIZED (
    SELECT t.*, s.token_hash, s.parent_hash, s.rotated_at,
           s.token_hash IN (t.successor_hash, t.old_successor_hash) OR s.parent_hash = t.presented_hash AS is_parent,
           s.created_at, s.expires_at, s.ended_at, s.client_id, s.rotated_from, s.jkt,
           (coalesce(hashinet(t.ip), 0) << 16) | (coalesce(hashtext(t.user_agent), 0) & 65535) AS asked_from,
           i.user_id, i.provider, i.suspended_at, i.tokens_from, u.disabled_at,
           u.claims::text AS claims,
           coalesce(u.seen_noted_on <= current_date - 35, true) AS away
    FROM input t
    JOIN sessions s ON s.id = t.session_id AND s.family_hash = t.family_hash
    JOIN identities i ON i.id = s.identity_id
    JOIN users u ON u.id = i.user_id
    ORDER BY s.id
    FOR NO KEY UPDATE OF s
),
classified AS (
    SELECT *,
           least(now() + $10::integer * interval '1 second', created_at + $11::integer * interval '1 second') AS good_until,
           CASE
               WHEN disabled_at IS NOT NULL THEN 'user_disabled'
               -- The session may have been opened at the moment at which a provider's report ended
               -- the sessions.
               WHEN ended_at IS NOT NULL OR suspended_at IS NOT NULL OR tokens_from > created_at THEN 'ended'
               WHEN expires_at <= now() OR created_at <= now() - $11::integer * interval '1 second' THEN 'expired'
               WHEN jkt IS NOT NULL AND jkt IS DISTINCT FROM key THEN 'unproven'
               WHEN presented_hash = token_hash THEN 'rotated'
               WHEN is_parent
                    AND (token_hash IN (reissue_hash, reissued_hash, old_reissue_hash, old_reissued_hash)
                         OR (token_hash IN (successor_hash, old_successor_hash) AND rotated_at > now() - $12::integer * interval '1 second'))
                   THEN 'repeated'
               WHEN is_parent AND rotated_at > now() - $13::integer * interval '1 second'
                   THEN 'reissued'
               ELSE 'replayed'
           END AS outcome
    FROM presented
),
decision AS MATERIALIZED (
    SELECT *,
           outcome = 'repeated' AND rotated_from <> 0 AND (rotated_from # asked_from) >> 16 <> 0
               AND (rotated_from # asked_from) & 65535 <> 0 AS elsewhere,
           CASE outcome WHEN 'rotated' THEN successor_hash WHEN 'reissued' THEN reissue_hash ELSE token_hash END AS live_hash
    FROM classified
),
changed AS (
    UPDATE sessions s
    SET token_hash = d.live_hash,
        parent_hash = CASE d.outcome WHEN 'rotated' THEN NULL WHEN 'reissued' THEN d.presented_hash ELSE s.parent_hash END,
        rotated_at = CASE d.outcome WHEN 'rotated' THEN now() ELSE d.rotated_at END,
        used_before = CASE WHEN d.outcome = 'rotated'
                                AND date_bin('1 hour', d.rotated_at, 'epoch') < date_bin('1 hour', now(), 'epoch')
                           THEN d.rotated_at ELSE s.used_before END,
        rotated_from = CASE WHEN d.outcome IN ('rotated', 'reissued') THEN d.asked_from ELSE 0 END,
        expires_at = CASE WHEN d.outcome IN ('rotated', 'reissued') THEN d.good_until ELSE s.expires_at END,
        ended_at = CASE d.outcome WHEN 'replayed' THEN now() END
    FROM decision d
    WHERE s.id = d.session_id AND (d.outcome IN ('rotated', 'reissued', 'replayed') OR d.elsewhere)
),
recorded AS (
    INSERT INTO events (kind, reason, provider, user_id, session_id, ip, user_agent, request_id)
    SELECT 'refresh_token_' || outcome, CASE WHEN elsewhere THEN 'another_client' END, provider, user_id, session_id,
           ip, user_agent, request_id
    FROM decision WHERE outcome IN ('reissued', 'replayed') OR elsewhere
    -- The trigger on events locks a user for each row. In one order, concurrent statements cannot
    -- deadlock.
    ORDER BY uuid_hash(user_id)
),
-- Notes the day once the noted one is old. Statements that end sessions lock the user first, so
-- this one must not wait for the user while it holds the session.
visited AS (
    UPDATE users SET seen_noted_on = current_date
    WHERE id IN (
        SELECT u.id FROM users u
        WHERE u.id IN (SELECT user_id FROM decision WHERE away AND outcome IN ('rotated', 'reissued'))
        ORDER BY u.id FOR NO KEY UPDATE SKIP LOCKED
    )
)
SELECT session_id AS "session_id!", outcome AS "outcome!", user_id AS "user_id!", client_id AS "client_id!",
       live_hash AS "live_hash!",
       floor(extract(epoch FROM CASE outcome WHEN 'repeated' THEN expires_at ELSE good_until END - now()))::bigint
           AS "expires_in!",
       claims, jkt IS NOT NULL AS "bound!"
FROM decision
