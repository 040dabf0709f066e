-- Creates a user whom the product's backend knows before the first sign-in. As with an imported
-- user, a sign-in that proves the e-mail address signs in this user (`imported_at`, see
-- `sign_in.sql`). A sign-in that creates the same user meanwhile shows as a unique violation
-- (users_email_key, identities_provider_subject_key); then nothing is written, and the statement is
-- repeated. An address that the backend vouches for is taken from a user who has not verified it,
-- as at a sign-in.
WITH input AS (
    -- The address is folded.
    SELECT $1::uuid AS id, $2::text AS email, $3::boolean AS email_verified, $4::text AS name, $5::text AS picture,
           $6::text::jsonb AS claims, $12::author AS author
),
arriving AS MATERIALIZED (
    SELECT * FROM unnest($7::uuid[], $8::text[], $9::text[], $10::text[], $11::boolean[])
        AS n (id, provider, subject, email, email_verified)
),
-- The reasons to create no user: the key is no longer valid, or another user has the address or an
-- identity. If another user gets one of them meanwhile, that shows as a unique violation.
refused AS MATERIALIZED (
    SELECT 'not_permitted' AS outcome FROM input WHERE NOT author_allowed(author)
    UNION ALL
    SELECT 'email_taken' FROM input t JOIN users u ON u.email = t.email
    WHERE NOT (t.email_verified AND NOT u.email_verified AND u.seen_noted_on IS NOT NULL)
    UNION ALL
    SELECT 'identity_taken' FROM arriving n WHERE EXISTS (
        SELECT FROM identities i WHERE i.provider = n.provider AND i.subject = n.subject
    )
),
-- Clear the address of the user who has not verified it: `users.email` is unique.
displaced_holder AS (
    UPDATE users u SET email = NULL, updated_at = now()
    FROM input t
    WHERE u.email = t.email AND NOT u.email_verified AND NOT EXISTS (SELECT FROM refused)
    RETURNING u.id
),
created AS (
    INSERT INTO users (id, email, email_verified, email_vouched, name, picture, claims, imported_at)
    SELECT t.id, t.email, t.email_verified, t.email_verified, t.name, t.picture, t.claims, now()
    FROM input t, (SELECT count(*) FROM displaced_holder) AS first WHERE NOT EXISTS (SELECT FROM refused)
    RETURNING id
),
added AS (
    INSERT INTO identities (id, user_id, provider, subject, email, email_verified, name, picture)
    SELECT a.id, c.id, a.provider, a.subject, a.email, a.email_verified, t.name, t.picture
    FROM arriving a, created c, input t
),
recorded AS (
    INSERT INTO events
    SELECT e.* FROM input t CROSS JOIN created c LEFT JOIN displaced_holder b ON true,
         event_row(t.author, 'user_created', c.id, reason => CASE WHEN b.id IS NOT NULL THEN 'email_proven' END,
               detail => jsonb_strip_nulls(jsonb_build_object('from', b.id))) AS e
),
recorded_loss AS (
    INSERT INTO events (kind, reason, user_id, actor, request_id, detail)
    SELECT 'email_lost', 'email_proven', b.id, (t.author).actor, (t.author).request_id, jsonb_build_object('to', t.id)
    FROM displaced_holder b, input t
)
SELECT coalesce((SELECT outcome FROM refused LIMIT 1), 'created') AS "outcome!"
