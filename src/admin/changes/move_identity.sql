-- Moves an identity from one user to another, neither of whom has changed since they were looked at.
-- Its sessions end. The users' addresses stay as they are, but whether they are verified goes with the identity that proves it.
--
--   $1 identity  $2 from  $3 their updated_at  $4 to  $5 their updated_at  $6 identity's new id
--   $7 event id  $8 another  $9 actor  $10 reason  $11 ip  $12 user agent  $13 request id
--   $14 the role that the actor needs
--
-- Locks, and why the identity is a new row: merge_users.sql.
WITH permitted AS MATERIALIZED (
    SELECT FROM current_staff WHERE email = $9 AND role = $14 FOR SHARE
),
unchanged AS MATERIALIZED (
    SELECT u.id
    FROM users u JOIN (VALUES ($2::uuid, $3::timestamptz), ($4, $5)) AS seen (id, updated_at)
         ON u.id = seen.id AND u.updated_at = seen.updated_at
    ORDER BY u.id
    FOR NO KEY UPDATE OF u
),
taken AS (
    DELETE FROM identities
    WHERE id = $1 AND user_id = $2 AND (SELECT count(*) FROM unchanged) = 2
          AND ($14::text IS NULL OR EXISTS (SELECT FROM permitted))
    RETURNING provider, subject, email, email_verified, name, picture, created_at,
              reported_at, reported_reason, held_at, suspension_as_of, tokens_from
),
moved AS (
    INSERT INTO identities (id, user_id, provider, subject, email, email_verified, name, picture, created_at,
                            reported_at, reported_reason, held_at, suspension_as_of, tokens_from)
    SELECT $6, $4, provider, subject, email, email_verified, name, picture, created_at,
           reported_at, reported_reason, held_at, suspension_as_of, tokens_from FROM taken
    RETURNING id, provider, email, email_verified
),
-- What the first user loses by it, `withdraw_proof()` takes back.
touched AS (
    UPDATE users u
    SET updated_at = now(),
        email_verified = u.email_verified OR (u.id = $4 AND m.email_verified AND u.email = lower(m.email COLLATE "C")) IS TRUE
    FROM moved m WHERE u.id IN ($2, $4)
),
recorded AS (
    INSERT INTO events (id, kind, reason, provider, user_id, actor, detail, ip, user_agent, request_id)
    SELECT e.id, 'identity_moved', e.reason, m.provider, e.user_id, $9, e.detail, $11::inet, $12, $13
    FROM moved m CROSS JOIN LATERAL (VALUES
        ($7::uuid, 'to_another', $2::uuid, jsonb_build_object('reason', $10::text, 'to', $4::uuid, 'identity_id', m.id)),
        ($8::uuid, NULL, $4::uuid, jsonb_build_object('reason', $10::text, 'from', $2::uuid, 'identity_id', m.id))
    ) AS e (id, reason, user_id, detail)
)
SELECT EXISTS (SELECT FROM moved) AS "done!", $14::text IS NULL OR EXISTS (SELECT FROM permitted) AS "permitted!"
