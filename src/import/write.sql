-- What to do with each row of a batch of arriving users. Nothing is written: whoever is to be created is copied
-- into the tables next, by the same transaction, and somebody who comes in between shows as a unique violation
-- (users_pkey, users_email_key, identities_provider_subject_key), after which the batch is judged again.
--
--   $1 ids, none where a new one does   $2 addresses, folded     $3 whether verified
--   $4 whether an earlier row of the batch has the same id, address or identity
--   $5 how many identities the row has; these are   $6 whose (the place of the row)  $7 providers  $8 subjects
--   $9 whether the row's address joins whoever has it
--
-- Answers the verdicts with the places of their rows, from 1, and the users that they are about:
--
--   already              all of it is there
--   linked               a user of an earlier import, or one who has proved the row's verified address, as at a
--                        sign-in, gets what the row has besides
--   id_of_another …      refused, see domain/import.rs
--   later                like an earlier row: once that one is written, there is something to judge by
--
-- Rows without a verdict are to be created. `known` are the identities of linked rows, by place, that are there.
--
-- A row is the user's who has its id if it has one, else its address if it has one, else its identity. It looks up
-- what it needs by index (OFFSET 0 keeps it from becoming a join), however many users there are.
WITH arriving AS MATERIALIZED (
    SELECT given_id, email COLLATE "C" AS email, email_verified, repeats, identities, joins, number
    FROM unnest($1::uuid[], $2::text[], $3::boolean[], $4::boolean[], $5::bigint[], $9::boolean[])
         WITH ORDINALITY AS a (given_id, email, email_verified, repeats, identities, joins, number)
),
owned AS MATERIALIZED (
    SELECT n.number, n.place,
           (SELECT i.user_id FROM identities i WHERE i.provider = n.provider AND i.subject = n.subject) AS owner
    FROM unnest($6::bigint[], $7::text[], $8::text[]) WITH ORDINALITY AS n (number, provider, subject, place)
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
    SELECT f.number, p.id AS person,
           CASE
               WHEN f.given_id IS NOT NULL AND f.same_id IS NULL AND f.holder IS NOT NULL THEN 'email_of_another'
               WHEN f.owners IS NOT NULL AND (p.id = ALL (f.owners)) IS NOT TRUE THEN 'identity_of_another'
               WHEN p.id IS NULL THEN CASE WHEN f.repeats THEN 'later' END
               -- Their address may have followed a provider since; an identity tells that it is them.
               WHEN f.owners IS NULL AND f.email IS NOT NULL AND p.email IS DISTINCT FROM f.email THEN 'id_of_another'
               WHEN NOT f.news THEN 'already'
               WHEN NOT p.untouched AND NOT (f.joins AND f.owners IS NULL AND p.email_verified) THEN 'not_ours'
               WHEN f.holder <> p.id THEN 'email_of_another'
               -- By its address alone, a row is only theirs where both are verified.
               WHEN f.given_id IS NULL AND f.email IS NOT NULL AND f.owners IS NULL
                    AND NOT (f.email_verified AND p.email_verified) THEN 'unproven'
               WHEN f.repeats THEN 'later'
               ELSE 'linked'
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
)
SELECT verdict AS "verdict!", array_agg(number ORDER BY number) AS "numbers!",
       coalesce(array_agg(person ORDER BY number) FILTER (WHERE verdict = 'linked'), '{}') AS "people!",
       ARRAY(
           SELECT o.place FROM owned o
           WHERE o.owner IS NOT NULL AND o.number IN (SELECT j.number FROM judged j WHERE j.verdict = 'linked')
       ) AS "known!"
FROM judged WHERE verdict IS NOT NULL GROUP BY verdict
