-- Ends sessions of the user who owns session $1, and records an event if there were any.
--
--   $1 session  $2 end this one  $3 end the user's others
--   $4 reason  $5 author
--
-- A session that has ended cannot end others: it may belong to a stolen phone that was signed out
-- remotely and whose access token is still valid for some minutes.
WITH mine AS MATERIALIZED (
    SELECT i.user_id FROM sessions s JOIN identities i ON i.id = s.identity_id
    WHERE s.id = $1 AND s.ended_at IS NULL AND (i.tokens_from <= s.created_at OR i.tokens_from IS NULL)
),
ended AS (
    UPDATE sessions s SET ended_at = now()
    FROM mine m JOIN identities i ON i.user_id = m.user_id
    WHERE s.identity_id = i.id AND s.ended_at IS NULL AND ((s.id = $1 AND $2) OR (s.id <> $1 AND $3))
    RETURNING s.id
),
recorded AS (
    INSERT INTO events
    SELECT e.* FROM mine m, event_row($5, 'signed_out', m.user_id, session_id => $1, reason => $4) AS e
    WHERE EXISTS (SELECT FROM ended)
)
SELECT count(*) AS "count!" FROM ended
