-- Moves an identity from one user to another, neither of whom has changed since they were looked at.
-- Its sessions end. The users' addresses stay as they are, but whether they are verified goes with the identity that proves it.
--
--   $1 identity  $2 from  $3 their updated_at  $4 to  $5 their updated_at  $6 identity's new id  $7 author
--
-- Locks, and why the identity gets a new id: merge_users.sql.
WITH permitted AS MATERIALIZED (
    SELECT author_allowed($7) AS yes
),
unchanged AS MATERIALIZED (
    SELECT u.id
    FROM users u JOIN (VALUES ($2::uuid, $3::timestamptz), ($4, $5)) AS seen (id, updated_at)
         ON u.id = seen.id AND u.updated_at = seen.updated_at
    WHERE (SELECT yes FROM permitted)
    ORDER BY u.id
    FOR NO KEY UPDATE OF u
),
moved AS (
    UPDATE identities SET id = $6, user_id = $4, joined_at = now(), updated_at = now()
    WHERE id = $1 AND user_id = $2 AND (SELECT count(*) FROM unchanged) = 2
    RETURNING id, provider, email, email_verified
),
-- The trigger `withdraw_proof()` clears the first user's `email_verified` if nothing else proves
-- it.
touched AS (
    UPDATE users u
    SET updated_at = now(),
        email_verified = u.email_verified OR (u.id = $4 AND m.email_verified AND u.email = lower(m.email COLLATE "C")) IS TRUE,
        email_vouched = u.email_vouched
            AND (u.id = $4 AND m.email_verified AND u.email = lower(m.email COLLATE "C")) IS NOT TRUE
    FROM moved m WHERE u.id IN ($2, $4)
),
recorded AS (
    INSERT INTO events
    SELECT e.* FROM moved m CROSS JOIN (VALUES ($2::uuid, 'to_another', 'to', $4::uuid), ($4, NULL, 'from', $2))
                               AS side (user_id, reason, towards, other_id),
         event_row($7, 'identity_moved', side.user_id, m.provider, reason => side.reason,
               detail => jsonb_build_object(side.towards, side.other_id, 'identity_id', m.id)) AS e
)
SELECT EXISTS (SELECT FROM moved) AS "done!", yes AS "permitted!" FROM permitted
