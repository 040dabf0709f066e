-- Unlinks one of a user's identities, with its sessions. Users must keep an identity to sign in
-- with. For staff, the user must be unchanged since staff looked at them.
--
-- A user cannot unlink a suspended identity: the suspension would be forgotten with it, and its
-- address could link the hijacker's account again. An identity whose account is gone at the
-- provider may go, and so may an identity that is only held.
--
--   $1 user  $2 identity  $3 author  $4 the user's session, or  $5 for staff, the user's updated_at
--
-- The session may have ended while the provider was asked, so it is checked again; if it has, there
-- is no outcome. Two concurrent statements could together unlink the last two identities. So the
-- user's row is locked and changed, and a statement that waited for the lock notices that its
-- snapshot is old, and is repeated.
WITH permitted AS MATERIALIZED (
    SELECT author_allowed($3) AS yes
),
seen AS MATERIALIZED (
    SELECT id, updated_at FROM users
    WHERE id = $1 AND (SELECT yes FROM permitted) AND ($5::timestamptz IS NULL OR updated_at = $5)
          AND ($4::uuid IS NULL OR disabled_at IS NULL AND EXISTS (SELECT FROM live_sessions WHERE id = $4 AND user_id = $1))
),
owner AS MATERIALIZED (
    SELECT id, updated_at FROM users WHERE id = (SELECT id FROM seen) FOR NO KEY UPDATE
),
decision AS MATERIALIZED (
    SELECT CASE
               WHEN NOT EXISTS (SELECT FROM identities WHERE id = $2 AND user_id = $1) THEN 'not_found'
               WHEN owner.updated_at <> seen.updated_at THEN 'raced'
               WHEN $4::uuid IS NULL THEN 'unlinked'
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
    INSERT INTO events
    SELECT e.* FROM unlinked u, event_row($3, 'identity_unlinked', u.user_id, u.provider, $4,
                                      detail => jsonb_build_object('identity_id', $2::uuid)) AS e
)
SELECT (SELECT outcome FROM decision) AS outcome, yes AS "permitted!",
       EXISTS (SELECT FROM identities WHERE id = $2 AND user_id = $1) AS "linked!"
FROM permitted
