-- Judges the people of `arriving`, creates those whom nothing speaks against, and links what a user of an
-- earlier batch brings besides: one statement. Answers how many rows met which end, and, of those that were not
-- done, their numbers.
--
--   created              there is a user now
--   linked               a user of an earlier import has one more identity now
--   already              all of it was there
--   id_of_another …      refused, see domain/import.rs
--   later                an earlier row of the batch has the same id, address or identity (`repeats`); once that
--                        one is written, there is something to judge by
--
-- A user is the row's by its id if it has one, else by its address if it has one, else by its identity.
-- Somebody who signs in at the same time shows as a unique violation (users_email_key,
-- identities_provider_subject_key, users_pkey); then nothing is written, and the next run sees them. Each row
-- looks up what it needs by index (OFFSET 0 keeps it from becoming a join), however many users there are.
WITH owned AS MATERIALIZED (
    SELECT n.*, (SELECT i.user_id FROM identities i WHERE i.provider = n.provider AND i.subject = n.subject) AS owner
    FROM arriving_identities n
),
known AS MATERIALIZED (
    SELECT number, array_agg(owner) AS owners, count(*) AS count FROM owned WHERE owner IS NOT NULL GROUP BY number
),
found AS MATERIALIZED (
    SELECT a.*, k.owners, a.identities > coalesce(k.count, 0) AS news,
           (SELECT u.id FROM users u WHERE u.email = a.email) AS holder,
           (SELECT u.id FROM users u WHERE u.id = a.given_id) AS same_id
    FROM arriving a LEFT JOIN known k ON k.number = a.number
),
judged AS MATERIALIZED (
    SELECT f.*, p.id AS person,
           CASE
               WHEN f.given_id IS NOT NULL AND f.same_id IS NULL AND f.holder IS NOT NULL THEN 'email_of_another'
               WHEN f.owners IS NOT NULL AND (p.id = ALL (f.owners)) IS NOT TRUE THEN 'identity_of_another'
               WHEN p.id IS NULL THEN CASE WHEN f.repeats THEN 'later' ELSE 'created' END
               -- Their address may have followed a provider since; an identity tells that it is them.
               WHEN f.owners IS NULL AND f.email IS NOT NULL AND p.email IS DISTINCT FROM f.email THEN 'id_of_another'
               WHEN NOT f.news THEN 'already'
               WHEN NOT p.untouched THEN 'not_ours'
               WHEN f.holder <> p.id THEN 'email_of_another'
               -- By its address alone, a row is only theirs where both are verified.
               WHEN f.given_id IS NULL AND f.email IS NOT NULL AND f.owners IS NULL
                    AND NOT (f.email_verified AND p.email_verified) THEN 'unproven'
               ELSE CASE WHEN f.repeats THEN 'later' ELSE 'linked' END
           END AS verdict
    FROM found f
    LEFT JOIN LATERAL (
        SELECT u.id, u.email, u.email_verified,
               coalesce(u.imported_at = u.updated_at, false) AND u.last_seen_on IS NULL AS untouched
        FROM users u
        WHERE u.id = CASE
                         WHEN f.given_id IS NOT NULL THEN f.same_id
                         WHEN f.email IS NOT NULL THEN f.holder
                         ELSE f.owners[1]
                     END
        OFFSET 0
    ) AS p ON true
),
created_users AS (
    INSERT INTO users (id, email, email_verified, name, picture, created_at, updated_at, disabled_at, imported_at)
    SELECT coalesce(given_id, new_id), email, email_verified, name, picture, coalesce(created_at, now()), now(),
           CASE WHEN disabled THEN now() END, now()
    FROM judged WHERE verdict = 'created'
),
-- Whoever has signed in since the judgement is theirs alone.
extended_users AS (
    UPDATE users u SET updated_at = now(), imported_at = now()
    WHERE u.id = ANY (ARRAY(SELECT person FROM judged WHERE verdict = 'linked'))
          AND u.imported_at = u.updated_at AND u.last_seen_on IS NULL
    RETURNING u.id
),
done AS MATERIALIZED (
    SELECT number, coalesce(person, given_id, new_id) AS user_id, name, picture, created_at,
           CASE
               WHEN verdict = 'linked' AND person NOT IN (SELECT id FROM extended_users) THEN 'later'
               ELSE verdict
           END AS verdict
    FROM judged
),
created_identities AS (
    INSERT INTO identities (id, user_id, provider, subject, email, email_verified, name, picture, created_at, updated_at)
    SELECT o.id, d.user_id, o.provider, o.subject, o.email, o.email_verified, d.name, d.picture,
           coalesce(d.created_at, now()), now()
    FROM done d JOIN owned o ON o.number = d.number
    WHERE d.verdict IN ('created', 'linked') AND o.owner IS NULL
    RETURNING 1
)
SELECT verdict, count(*) AS count,
       coalesce(array_agg(number) FILTER (WHERE verdict NOT IN ('created', 'linked', 'already')), '{}') AS numbers,
       (SELECT count(*) FROM created_identities) AS identities
FROM done GROUP BY verdict
