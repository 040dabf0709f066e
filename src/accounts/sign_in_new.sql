-- Creates users for a batch of unknown identities whose e-mail addresses no user has, opens their
-- sessions and records the events. No two elements of the arrays have the same identity or e-mail
-- address. An element without a row in the result is another case, and nothing was written for it;
-- see `sign_in.sql`.
--
-- A concurrent sign-in of the same identity or address causes a unique violation (users_email_key,
-- identities_provider_subject_key); then nothing was written for any element.
WITH input AS (
    SELECT * FROM unnest(
        $1::text[], $2::text[], $3::text[], $4::boolean[], $5::text[], $6::text[],
        $7::uuid[], $8::bytea[], $9::bytea[],
        $10::text[], $11::inet[], $12::text[], $13::text[], $14::text[], $15::text[], $17::uuid[], $18::uuid[],
        $19::text[], $20::timestamptz[], $21::bytea[]
    ) AS t (provider, subject, email, proves, name, picture,
            session_id, family_hash, token_hash,
            client_id, ip, user_agent, device_name, device_platform, request_id, user_id, identity_id,
            -- The name as the provider gave it to the app.
            reported_name,
            issued_at, jkt)
),
new AS MATERIALIZED (
    SELECT * FROM input t
    WHERE NOT EXISTS (SELECT FROM identities i WHERE i.provider = t.provider AND i.subject = t.subject)
          AND NOT EXISTS (SELECT FROM users u WHERE u.email = lower(t.email COLLATE "C"))
          AND unknown_identity_refusal(t.provider, t.subject, t.issued_at) IS NULL
),
created AS (
    INSERT INTO users (id, email, email_verified, name, own_name, picture, seen_noted_on)
    SELECT user_id, lower(email COLLATE "C"), proves, coalesce(name, reported_name), name IS NULL AND reported_name IS NOT NULL,
           picture, current_date
    FROM new
),
linked AS (
    INSERT INTO identities (id, user_id, provider, subject, email, email_verified, name, picture)
    SELECT identity_id, user_id, provider, subject, email, proves, name, picture FROM new
),
opened AS (
    INSERT INTO sessions (id, identity_id, family_hash, token_hash, expires_at, client_id, device_name, device_platform,
                          jkt)
    SELECT session_id, identity_id, family_hash, token_hash, now() + $16::integer * interval '1 second', client_id,
           device_name, device_platform, jkt
    FROM new
),
recorded AS (
    INSERT INTO events (id, kind, provider, user_id, ip, user_agent, request_id)
    SELECT session_id, 'user_created', provider, user_id, ip, user_agent, request_id FROM new
)
SELECT session_id AS "session_id!", identity_id AS "identity_id!", email AS identity_email, user_id AS "user_id!",
       lower(email COLLATE "C") AS user_email, proves AS "user_email_verified!", coalesce(name, reported_name) AS user_name,
       picture AS user_picture, now() AS "user_created_at!", NULL::text AS claims
FROM new
