-- Creates a user whom the product's backend knows before the first sign-in. Like an imported one, the user waits for whoever
-- proves the e-mail address (`imported_at`, see `sign_in.sql`). A sign-in that creates the same user meanwhile shows as a
-- unique violation (users_email_key, identities_provider_subject_key); then nothing is written, and the statement is
-- repeated. Somebody who merely claims an address that the backend vouches for loses it, as at a sign-in.
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
holder AS MATERIALIZED (
    SELECT u.id, $3 AND NOT u.email_verified AND u.seen_noted_on IS NOT NULL AS loses FROM users u WHERE u.email = $2
    FOR NO KEY UPDATE
),
verdict AS MATERIALIZED (
    SELECT CASE
               WHEN EXISTS (SELECT FROM holder WHERE NOT loses) THEN 'email_taken'
               WHEN EXISTS (SELECT FROM arriving WHERE owner IS NOT NULL) THEN 'identity_taken'
               ELSE 'created'
           END AS outcome
),
-- Before the new user gets the address, which must be free by then.
bereft AS (
    UPDATE users u SET email = NULL, updated_at = now()
    FROM holder h, verdict v WHERE u.id = h.id AND v.outcome = 'created'
    RETURNING u.id
),
created AS (
    INSERT INTO users (id, email, email_verified, email_vouched, name, picture, claims, imported_at)
    SELECT $1, $2, $3, $3, $4, $5, $6::text::jsonb, now()
    FROM verdict LEFT JOIN bereft ON true WHERE outcome = 'created'
    RETURNING id
),
added AS (
    INSERT INTO identities (id, user_id, provider, subject, email, email_verified, name, picture)
    SELECT a.id, c.id, a.provider, a.subject, a.email, a.email_verified, $4, $5 FROM arriving a, created c
),
recorded AS (
    INSERT INTO events (id, kind, reason, user_id, actor, ip, user_agent, request_id, detail)
    SELECT $12, 'user_created', CASE WHEN b.id IS NOT NULL THEN 'email_proven' END, c.id, $13, $14::inet, $15, $16,
           CASE WHEN b.id IS NOT NULL THEN jsonb_build_object('from', b.id) END
    FROM created c LEFT JOIN bereft b ON true
),
recorded_loss AS (
    INSERT INTO events (kind, reason, user_id, actor, request_id, detail)
    SELECT 'email_lost', 'email_proven', b.id, $13, $16, jsonb_build_object('to', $1::uuid) FROM bereft b
)
SELECT outcome AS "outcome!" FROM verdict
