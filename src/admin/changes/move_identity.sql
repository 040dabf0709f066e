-- Moves an identity from one user to another, neither of whom has changed since they were looked at.
-- Its sessions end. The users' addresses stay as they are, but whether they are verified goes with the identity that proves it.
--
-- Locks, and why the identity gets a new id: merge_users.sql.
WITH input AS (
    SELECT $1::uuid AS identity_id, $2::uuid AS from_id, $3::timestamptz AS from_updated_at,
           $4::uuid AS to_id, $5::timestamptz AS to_updated_at, $6::uuid AS new_identity_id, $7::author AS author
),
permitted AS MATERIALIZED (
    SELECT author_allowed(author) AS yes FROM input
),
unchanged AS MATERIALIZED (
    SELECT u.id
    FROM users u JOIN (SELECT from_id, from_updated_at FROM input UNION ALL SELECT to_id, to_updated_at FROM input)
                      AS seen (id, updated_at)
         ON u.id = seen.id AND u.updated_at = seen.updated_at
    WHERE (SELECT yes FROM permitted)
    ORDER BY u.id
    FOR NO KEY UPDATE OF u
),
moved AS (
    UPDATE identities i SET id = t.new_identity_id, user_id = t.to_id, joined_at = now(), updated_at = now()
    FROM input t
    WHERE i.id = t.identity_id AND i.user_id = t.from_id AND (SELECT count(*) FROM unchanged) = 2
    RETURNING i.id, i.provider, i.email, i.email_verified
),
-- The trigger `withdraw_proof()` clears the first user's `email_verified` if nothing else proves
-- it.
touched AS (
    UPDATE users u
    SET updated_at = now(),
        email_verified = u.email_verified
            OR (u.id = t.to_id AND m.email_verified AND u.email = lower(m.email COLLATE "C")) IS TRUE,
        email_vouched = u.email_vouched
            AND (u.id = t.to_id AND m.email_verified AND u.email = lower(m.email COLLATE "C")) IS NOT TRUE
    FROM moved m CROSS JOIN input t WHERE u.id IN (t.from_id, t.to_id)
),
recorded AS (
    INSERT INTO events
    SELECT e.* FROM moved m CROSS JOIN input t
         CROSS JOIN LATERAL (VALUES (t.from_id, 'to_another', 'to', t.to_id), (t.to_id, NULL, 'from', t.from_id))
                            AS side (user_id, reason, towards, other_id),
         event_row(t.author, 'identity_moved', side.user_id, m.provider, reason => side.reason,
               detail => jsonb_build_object(side.towards, side.other_id, 'identity_id', m.id)) AS e
)
SELECT EXISTS (SELECT FROM moved) AS "done!", yes AS "permitted!" FROM permitted
