-- Creates a user whom the product's backend knows before the first sign-in. As with an imported
-- user, a sign-in that proves the e-mail address signs in this user (`imported_at`, see
-- `sign_in.sql`). A sign-in that creates the same user meanwhile shows as a unique violation
-- (users_email_key, identities_provider_subject_key); then nothing is written, and the statement is
-- repeated. An address that the backend vouches for is taken from a user who has not verified it,
-- as at a sign-in.
--
--   $1 id  $2 e-mail address, folded  $3 verified  $4 name  $5 picture  $6 claims
-- Identities: $7 ids  $8 providers  $9 subjects  $10 e-mail addresses  $11 verified
--   $12 author
WITH arriving AS MATERIALIZED (
    SELECT * FROM unnest($7::uuid[], $8::text[], $9::text[], $10::text[], $11::boolean[])
        AS n (id, provider, subject, email, email_verified)
),
-- The reasons to create no user: the key is no longer valid, or another user has the address or an
-- identity. If another user gets one of them meanwhile, that shows as a unique violation.
refused AS MATERIALIZED (
    SELECT 'not_permitted' AS outcome WHERE NOT author_allowed($12)
    UNION ALL
    SELECT 'email_taken' FROM users
    WHERE email = $2 AND NOT ($3 AND NOT email_verified AND seen_noted_on IS NOT NULL)
    UNION ALL
    SELECT 'identity_taken' FROM arriving n WHERE EXISTS (
        SELECT FROM identities i WHERE i.provider = n.provider AND i.subject = n.subject
    )
),
-- Clear the address of the user who has not verified it: `users.email` is unique.
displaced_holder AS (
    UPDATE users SET email = NULL, updated_at = now()
    WHERE email = $2 AND NOT email_verified AND NOT EXISTS (SELECT FROM refused)
    RETURNING id
),
created AS (
    INSERT INTO users (id, email, email_verified, email_vouched, name, picture, claims, imported_at)
    SELECT $1, $2, $3, $3, $4, $5, $6::text::jsonb, now()
    FROM (SELECT count(*) FROM displaced_holder) AS first WHERE NOT EXISTS (SELECT FROM refused)
    RETURNING id
),
added AS (
    INSERT INTO identities (id, user_id, provider, subject, email, email_verified, name, picture)
    SELECT a.id, c.id, a.provider, a.subject, a.email, a.email_verified, $4, $5 FROM arriving a, created c
),
recorded AS (
    INSERT INTO events
    SELECT e.* FROM created c LEFT JOIN displaced_holder b ON true,
         event_row($12, 'user_created', c.id, reason => CASE WHEN b.id IS NOT NULL THEN 'email_proven' END,
               detail => jsonb_strip_nulls(jsonb_build_object('from', b.id))) AS e
),
recorded_loss AS (
    INSERT INTO events (kind, reason, user_id, actor, request_id, detail)
    SELECT 'email_lost', 'email_proven', b.id, ($12::author).actor, ($12).request_id, jsonb_build_object('to', $1::uuid)
    FROM displaced_holder b
)
SELECT coalesce((SELECT outcome FROM refused LIMIT 1), 'created') AS "outcome!"
