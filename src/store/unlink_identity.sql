-- Unlinks one of a user's identities, with its sessions, unless it is the last with which the user can sign in.
--
-- A suspended identity stays: the suspension would be forgotten with it, and whoever hijacked the account could be linked
-- again by its address. One whose account is gone at the provider may go, and one that a hijacker may have linked.
--
--   $1 user  $2 identity  $3 event id  $4 session  $5 ip  $6 user agent  $7 request id
--
-- The session may have ended while the provider was asked, so it is checked again: then there is no outcome. Two
-- concurrent statements could together unlink the last two identities. So the user's row is locked and changed, and a
-- statement that waited for the lock notices that its snapshot is old, and is repeated.
WITH seen AS MATERIALIZED (
    SELECT u.id, u.updated_at
    FROM sessions s JOIN identities i ON i.id = s.identity_id JOIN users u ON u.id = i.user_id
    WHERE s.id = $4 AND s.ended_at IS NULL AND i.suspended_at IS NULL AND u.id = $1 AND u.disabled_at IS NULL
          AND (i.tokens_from <= s.created_at OR i.tokens_from IS NULL)
),
owner AS MATERIALIZED (
    SELECT id, updated_at FROM users WHERE id = (SELECT id FROM seen) AND disabled_at IS NULL FOR NO KEY UPDATE
),
decision AS MATERIALIZED (
    SELECT CASE
               WHEN NOT EXISTS (SELECT FROM identities WHERE id = $2 AND user_id = $1) THEN 'not_found'
               WHEN owner.updated_at <> seen.updated_at THEN 'raced'
               WHEN EXISTS (SELECT FROM identities WHERE id = $2 AND hijacked AND reported_at IS NOT NULL) THEN 'suspended'
               WHEN NOT EXISTS (SELECT FROM identities WHERE id <> $2 AND user_id = $1 AND suspended_at IS NULL)
                   THEN 'last_identity'
               ELSE 'unlinked'
           END AS outcome
    FROM owner JOIN seen ON true
),
unlinked AS (
    DELETE FROM identities i USING decision d
    WHERE d.outcome = 'unlinked' AND i.id = $2 AND i.user_id = $1
    RETURNING i.provider, i.user_id
),
touched AS (
    UPDATE users u SET updated_at = now() FROM unlinked WHERE u.id = unlinked.user_id
),
recorded AS (
    INSERT INTO events (id, kind, provider, user_id, session_id, ip, user_agent, request_id, detail)
    SELECT $3, 'identity_unlinked', provider, user_id, $4, $5::inet, $6, $7, jsonb_build_object('identity_id', $2)
    FROM unlinked
)
SELECT (SELECT outcome FROM decision) AS outcome,
       EXISTS (SELECT FROM identities WHERE id = $2 AND user_id = $1) AS "linked!"
