-- Creates a user whom the product's backend knows before the first sign-in. Like an imported one, the user waits for whoever
-- proves the e-mail address (`imported_at`, see `sign_in.sql`). A sign-in that creates the same user meanwhile shows as a
-- unique violation (users_email_key, identities_provider_subject_key); then nothing is written, and the statement is
-- repeated.
--
--   $1 id  $2 e-mail address, folded  $3 verified  $4 name  $5 picture  $6 claims
-- Identities: $7 ids  $8 providers  $9 subjects  $10 e-mail addresses  $11 verified
-- Event:      $12 id  $13 actor  $14 ip  $15 user agent  $16 request id
WITH arriving AS MATERIALIZED (
    SELECT n.*,
           (SELECT i.user_id FROM identities i WHERE i.provider = n.provider AND i.subject = n.subject) AS owner
    FROM unnest($7::uuid[], $8::text[], $9::text[], $10::text[], $11::boolean[])
         AS n (id, provider, subject, email, email_verified)
),
verdict AS MATERIALIZED (
    SELECT CASE
               WHEN EXISTS (SELECT FROM users u WHERE u.email = $2) THEN 'email_taken'
               WHEN EXISTS (SELECT FROM arriving WHERE owner IS NOT NULL) THEN 'identity_taken'
               ELSE 'created'
           END AS outcome
),
created AS (
    INSERT INTO users (id, email, email_verified, name, picture, claims, imported_at)
    SELECT $1, $2, $3, $4, $5, $6::text::jsonb, now() FROM verdict WHERE outcome = 'created'
    RETURNING id
),
added AS (
    INSERT INTO identities (id, user_id, provider, subject, email, email_verified, name, picture)
    SELECT a.id, c.id, a.provider, a.subject, a.email, a.email_verified, $4, $5 FROM arriving a, created c
),
recorded AS (
    INSERT INTO events (id, kind, user_id, actor, ip, user_agent, request_id)
    SELECT $12, 'user_created', c.id, $13, $14::inet, $15, $16 FROM created c
)
SELECT outcome AS "outcome!" FROM verdict
