-- Links a verified identity to a signed-in user.
--
--   $1 user  $2 identity's new id  $3 provider  $4 subject  $5 email  $6 the provider proves it  $7 name  $8 picture
--   $9 session  $10 `iat` of the token  $11 author  $12 the most identities that a user may have
--
-- The session may have ended while the request's body was read and the provider was called, so it
-- is checked again. The user's row is locked and changed. A concurrent sign-in or unlinking that
-- depends on the user's identities then notices the change; and if this statement had to wait for
-- the lock, it notices that its snapshot is old, and is repeated.
WITH seen AS MATERIALIZED (
    SELECT u.id, u.updated_at FROM live_sessions s JOIN users u ON u.id = s.user_id
    WHERE s.id = $9 AND u.id = $1 AND u.disabled_at IS NULL
),
owner AS MATERIALIZED (
    SELECT u.id, u.updated_at, u.email, u.email_verified FROM users u
    WHERE u.id = (SELECT id FROM seen) AND u.disabled_at IS NULL
    FOR NO KEY UPDATE
),
taken AS MATERIALIZED (
    SELECT id, user_id, email, created_at, suspended_at, tokens_from FROM identities WHERE provider = $3 AND subject = $4
),
decision AS MATERIALIZED (
    SELECT owner.id AS user_id,
           CASE
               WHEN owner.updated_at <> seen.updated_at THEN 'raced'
               WHEN taken.id IS NULL AND unknown_identity_refusal($3, $4, $10::timestamptz) IS NOT NULL
                   THEN unknown_identity_refusal($3, $4, $10::timestamptz)
               WHEN taken.id IS NULL AND (SELECT count(*) FROM identities WHERE user_id = owner.id) >= $12::integer
                   THEN 'too_many_identities'
               WHEN taken.id IS NULL THEN 'linked'
               WHEN taken.suspended_at IS NOT NULL THEN 'identity_suspended'
               WHEN taken.tokens_from > $10::timestamptz THEN 'token_expired'
               WHEN taken.user_id = owner.id THEN 'before'
               ELSE 'identity_already_linked'
           END AS outcome
    FROM owner JOIN seen ON true LEFT JOIN taken ON true
),
linked AS (
    INSERT INTO identities (id, user_id, provider, subject, email, email_verified, name, picture)
    SELECT $2, user_id, $3, $4, $5, $6, $7, $8 FROM decision WHERE outcome = 'linked'
    RETURNING id, user_id, email, created_at
),
-- If the identity's e-mail address is verified and equals the user's own, it verifies the user's; a
-- backend or an import then no longer vouches for it. A verified address replaces the user's
-- unverified one, unless another user has it.
touched AS (
    UPDATE users u
    SET email = CASE WHEN p.counts THEN lower($5::text COLLATE "C") ELSE u.email END,
        email_verified = u.email_verified OR p.counts,
        email_vouched = u.email_vouched AND ($6 AND u.email = lower($5::text COLLATE "C")) IS NOT TRUE,
        updated_at = now()
    FROM linked l JOIN owner o ON o.id = l.user_id CROSS JOIN LATERAL (
        SELECT $6 AND NOT o.email_verified
               AND NOT EXISTS (SELECT FROM users v WHERE v.email = lower($5::text COLLATE "C") AND v.id <> o.id) AS counts
    ) AS p
    WHERE u.id = l.user_id
    RETURNING u.id, u.email, u.email_verified
),
recorded AS (
    INSERT INTO events
    SELECT e.* FROM decision d, event_row(
        $11, CASE outcome WHEN 'linked' THEN 'identity_linked' ELSE 'link_refused' END, d.user_id, $3, $9, nullif(outcome, 'linked'),
        detail => CASE outcome WHEN 'linked' THEN jsonb_build_object('identity_id', $2::uuid) ELSE '{}' END) AS e
    WHERE outcome NOT IN ('before', 'raced')
    UNION ALL
    SELECT e.* FROM touched t JOIN owner o ON (o.email, o.email_verified) IS DISTINCT FROM (t.email, t.email_verified),
         event_row($11, 'user_updated', t.id, $3, $9,
               detail => jsonb_build_object('fields', changed_fields(to_jsonb(o), to_jsonb(t)))) AS e
)
SELECT d.outcome AS "outcome!", coalesce(l.id, t.id, $2) AS "id!", coalesce(l.email, t.email) AS email,
       coalesce(l.created_at, t.created_at, now()) AS "created_at!"
FROM decision d LEFT JOIN linked l ON true LEFT JOIN taken t ON true
