-- Signs in a batch of known identities, not suspended, of enabled users whose data at the provider
-- is unchanged: opens their sessions and records the events. An element of the arrays without a row
-- in the result is another case, and nothing was written for it; see `sign_in_new.sql` and
-- `sign_in.sql`.
WITH input AS (
    SELECT * FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::boolean[], $5::text[], $6::text[],
        $7::uuid[], $8::bytea[], $9::bytea[],
        $10::text[], $11::inet[], $12::text[], $13::text[], $14::text[], $15::text[],
        $17::timestamptz[], $18::bytea[]
    ) AS t (provider, subject, email, proves, name, picture,
            session_id, family_hash, token_hash,
            client_id, ip, user_agent, device_name, device_platform, request_id, issued_at, jkt)
),
known AS MATERIALIZED (
    SELECT t.*, i.id AS identity_id, i.email AS identity_email, u.id AS user_id, u.email AS user_email,
           u.email_verified AS user_email_verified, u.name AS user_name, u.picture AS user_picture,
           u.created_at AS user_created_at,
           u.claims::text AS claims, coalesce(u.seen_noted_on <= current_date - 35, true) AS away
    FROM input t
    JOIN identities i ON i.provider = t.provider AND i.subject = t.subject
    JOIN users u ON u.id = i.user_id
    WHERE u.disabled_at IS NULL AND i.suspended_at IS NULL
          AND (i.tokens_from <= t.issued_at OR i.tokens_from IS NULL)
          -- Data that the provider omits counts as unchanged.
          AND (t.email IS NULL OR (t.email = i.email AND t.proves = i.email_verified)) IS TRUE
          AND (t.name IS NULL OR (t.name = i.name AND u.name IS NOT NULL)) IS TRUE
          AND (t.picture IS NULL OR (t.picture = i.picture AND u.picture IS NOT NULL)) IS TRUE
          -- The sign-in neither verifies the user's own address nor ends the product's vouching for
          -- it.
          AND (NOT t.proves OR u.email_verified AND NOT u.email_vouched OR lower(t.email COLLATE "C") <> u.email) IS TRUE
),
opened AS (
    INSERT INTO sessions (id, identity_id, family_hash, token_hash, expires_at, client_id, device_name, device_platform,
                          jkt)
    SELECT session_id, identity_id, family_hash, token_hash, now() + $16::integer * interval '1 second', client_id,
           device_name, device_platform, jkt
    FROM known
),
recorded AS (
    INSERT INTO events (id, kind, provider, user_id, ip, user_agent, request_id)
    SELECT session_id, 'signed_in', provider, user_id, ip, user_agent, request_id FROM known
),
-- Notes the day once the noted one is old. It waits for no lock, since a later visit will note it.
visited AS (
    UPDATE users SET seen_noted_on = current_date
    WHERE id IN (
        SELECT u.id FROM users u WHERE u.id IN (SELECT user_id FROM known WHERE away)
        ORDER BY u.id FOR NO KEY UPDATE SKIP LOCKED
    )
)
SELECT session_id AS "session_id!", identity_id AS "identity_id!", identity_email, user_id AS "user_id!",
       user_email, user_email_verified AS "user_email_verified!", user_name, user_picture,
       user_created_at AS "user_created_at!", claims
FROM known
