-- Writes a batch of imported users. A user or identity that a sign-in creates meanwhile shows as a
-- unique violation (users_pkey, users_email_key, identities_provider_subject_key). Then nothing is
-- written, and the batch is repeated.
--
-- Rows:       $1 ids, NULL without one   $2 ids for new users   $3 e-mail addresses, folded   $4 verified   $5 names
--             $6 pictures   $7 times of creation   $8 disabled
--             $9 whether an earlier row of the batch has the same id, e-mail address or identity
-- Identities: $10 numbers of their rows, from 1   $11 ids for new ones   $12 providers   $13 subjects
--             $14 e-mail addresses   $15 the subjects that they had until now, NULL without one
-- Event:      $16 id   $17 actor
-- Limits:     $18 the most identities of a user
--
-- Returns the number of identities created, and an outcome for each row, in their order:
--
--   created              the user is new
--   linked               a user of an earlier import, one who has proved the row's verified e-mail address, as at a
--                        sign-in, or the one with the identity's earlier subject gets the row's other identities
--   already              all of the row's data exists
--   deferred             the row has something in common with an earlier one, or its user has changed meanwhile; it is
--                        written by the next statement
--   deleted …            refused, see row.rs
--
-- A row's user is found by the row's id if it has one, else by its e-mail address if it has one,
-- else by its identity, or by that identity's earlier subject. A user who has not verified an
-- address loses it to a row that vouches for it, as at a sign-in. An imported identity proves no
-- address: no token of its provider has done so here, and the import vouches for new users only.
-- Users are looked up by index (OFFSET 0 keeps that from becoming a join), however many there are.
WITH arriving AS MATERIALIZED (
    SELECT *, given_id IS NULL AND email IS NOT NULL AND email_verified AND NOT disabled AS joins
    FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::boolean[], $5::text[], $6::text[], $7::timestamptz[],
                $8::boolean[], $9::boolean[])
         WITH ORDINALITY AS a (given_id, new_id, email, email_verified, name, picture, created_at, disabled, repeats,
                               number)
),
arriving_identities AS MATERIALIZED (
    SELECT n.*,
           (SELECT i.user_id FROM identities i WHERE i.provider = n.provider AND i.subject = n.subject) AS owner,
           (SELECT i.id FROM identities i WHERE i.provider = n.provider AND i.subject = n.old_subject) AS old_id
    FROM unnest($10::bigint[], $11::uuid[], $12::text[], $13::text[], $14::text[], $15::text[])
         AS n (number, new_id, provider, subject, email, old_subject)
),
owners AS MATERIALIZED (
    SELECT number, array_agg(owner) FILTER (WHERE owner IS NOT NULL) AS owners, count(*) FILTER (WHERE owner IS NULL) AS new,
           bool_or(old_subject IS NOT NULL) AS moves, (array_agg(old_id))[1] AS old_id,
           bool_or(owner IS NULL AND EXISTS (
               SELECT FROM deleted_identities g WHERE g.hash = identity_hash(n.provider, n.subject)
           )) AS deleted
    FROM arriving_identities n GROUP BY number
),
-- The ids of users who were deleted, or merged into another one. Their events outlive them.
former AS MATERIALIZED (
    SELECT a.given_id AS id, bool_or(e.kind = 'user_deleted') AS deleted
    FROM arriving a JOIN events e ON e.user_id = a.given_id
    WHERE e.kind = 'user_deleted' OR e.kind = 'users_merged' AND e.reason = 'to_another'
    GROUP BY a.given_id
),
found AS MATERIALIZED (
    SELECT a.*, o.owners, coalesce(o.new, 0) AS new, coalesce(o.moves, false) AS moves, o.old_id,
           coalesce(o.deleted, false) AS deleted, f.deleted AS was_deleted,
           CASE WHEN h.claims THEN NULL ELSE h.id END AS holder, CASE WHEN h.claims THEN h.id END AS claimant,
           (SELECT u.id FROM users u WHERE u.id = a.given_id) AS same_id
    FROM arriving a LEFT JOIN owners o ON o.number = a.number LEFT JOIN former f ON f.id = a.given_id
    LEFT JOIN LATERAL (
        -- True for a user who has signed in without proving the address, which the row vouches for,
        -- and who is not the row's own user.
        SELECT u.id, a.email_verified AND u.id IS DISTINCT FROM a.given_id AND (u.id = ANY (o.owners)) IS NOT TRUE
                     AND NOT u.email_verified AND u.seen_noted_on IS NOT NULL AS claims
        FROM users u WHERE u.email = a.email
        OFFSET 0
    ) AS h ON true
),
classified AS MATERIALIZED (
    SELECT f.*, coalesce(p.id, f.new_id) AS user_id, p.updated_at, p.seen_noted_on, p.untouched,
           CASE
               WHEN f.deleted OR f.was_deleted AND f.same_id IS NULL THEN 'deleted'
               WHEN NOT f.was_deleted AND f.same_id IS NULL THEN 'merged'
               WHEN f.given_id IS NOT NULL AND f.same_id IS NULL AND f.holder IS NOT NULL THEN 'email_of_another'
               WHEN p.id IS NULL AND f.moves AND NOT f.repeats THEN 'no_user'
               WHEN f.owners IS NOT NULL AND (p.id = ALL (f.owners)) IS NOT TRUE THEN 'identity_of_another'
               WHEN p.id IS NULL THEN CASE WHEN f.repeats THEN 'deferred' ELSE 'created' END
               -- The user's e-mail address may have followed a provider since; an identity shows
               -- that it is the user.
               WHEN f.owners IS NULL AND f.email IS NOT NULL AND p.email IS DISTINCT FROM f.email THEN 'id_of_another'
               WHEN f.new = 0 THEN 'already'
               WHEN NOT p.untouched AND NOT f.moves
                    AND NOT (f.joins AND f.owners IS NULL AND p.email_verified AND p.disabled_at IS NULL) THEN 'not_ours'
               WHEN f.holder <> p.id THEN 'email_of_another'
               -- An e-mail address alone links only if both have verified it.
               WHEN f.given_id IS NULL AND f.email IS NOT NULL AND f.owners IS NULL
                    AND NOT (f.email_verified AND p.email_verified) THEN 'unproven'
               WHEN p.suspended THEN 'suspended'
               WHEN p.identities + f.new > $18 THEN 'too_many'
               WHEN f.repeats THEN 'deferred'
               ELSE 'linked'
           END AS verdict
    FROM found f
    LEFT JOIN LATERAL (
        SELECT u.id, u.email, u.email_verified, u.disabled_at, u.updated_at, u.seen_noted_on,
               coalesce(u.imported_at = u.updated_at, false) AND u.seen_noted_on IS NULL AS untouched,
               i.identities, i.suspended
        FROM users u CROSS JOIN LATERAL (
            -- A hijacker's mailbox proves nothing, and a new subject must not evade the report
            -- about the old one.
            SELECT count(*) AS identities, coalesce(bool_or(i.hijacked OR i.id = f.old_id AND i.suspended_at IS NOT NULL), false)
                   AS suspended
            FROM identities i WHERE i.user_id = u.id
        ) AS i
        WHERE u.id = CASE
                         WHEN f.given_id IS NOT NULL THEN f.same_id
                         WHEN f.email IS NOT NULL THEN f.holder
                         WHEN f.moves THEN (SELECT i.user_id FROM identities i WHERE i.id = f.old_id)
                         ELSE f.owners[1]
                     END
        OFFSET 0
    ) AS p ON true
),
-- A row is deferred if its user has changed since the snapshot, or if an earlier row has the same
-- user.
linked AS (
    UPDATE users u
    SET updated_at = now(), imported_at = CASE WHEN j.untouched THEN now() ELSE u.imported_at END
    FROM classified j
    WHERE j.verdict = 'linked' AND u.id = j.user_id AND u.updated_at = j.updated_at
          AND u.seen_noted_on IS NOT DISTINCT FROM j.seen_noted_on
    RETURNING u.id
),
outcome AS MATERIALIZED (
    SELECT j.*,
           CASE WHEN j.verdict = 'linked'
                     AND (j.user_id NOT IN (SELECT id FROM linked)
                          OR row_number() OVER (PARTITION BY j.verdict, j.user_id ORDER BY j.number) > 1) THEN 'deferred'
                ELSE j.verdict END AS outcome
    FROM classified j
),
-- This comes before the new users get the addresses: `users.email` is unique.
displaced_holder AS (
    UPDATE users u SET email = NULL, updated_at = now()
    FROM outcome o WHERE u.id = o.claimant AND o.outcome = 'created' AND u.email = o.email AND NOT u.email_verified
    RETURNING u.id, o.user_id AS to_id
),
created AS (
    INSERT INTO users (id, email, email_verified, email_vouched, name, picture, created_at, updated_at, disabled_at,
                       imported_at)
    SELECT user_id, email, email_verified, email_verified, name, picture, coalesce(created_at, now()), now(),
           CASE WHEN disabled THEN now() END, now()
    FROM outcome CROSS JOIN (SELECT count(*) FROM displaced_holder) AS first WHERE outcome = 'created'
    RETURNING id
),
-- A new subject takes over the old one's data. With the old address, the user's own address still
-- follows the provider.
added AS (
    INSERT INTO identities (id, user_id, provider, subject, email, name, picture, created_at, updated_at)
    SELECT i.new_id, o.user_id, i.provider, i.subject, coalesce(i.email, old.email), coalesce(o.name, old.name),
           coalesce(o.picture, old.picture), coalesce(o.created_at, now()), now()
    FROM arriving_identities i JOIN outcome o ON o.number = i.number
    LEFT JOIN identities old ON old.id = i.old_id
    WHERE i.owner IS NULL AND o.outcome IN ('created', 'linked')
    RETURNING id, user_id, provider
),
-- The order in which webhooks lock users, so that concurrent imports cannot deadlock. New users,
-- and users unchanged since an import, are only in the event of the import.
recorded_changes AS (
    INSERT INTO events (kind, reason, provider, user_id, actor, detail)
    SELECT kind, reason, provider, user_id, $17, detail
    FROM (
        SELECT 'email_lost' AS kind, 'email_proven' AS reason, NULL AS provider, id AS user_id,
               jsonb_build_object('to', to_id) AS detail
        FROM displaced_holder
        UNION ALL
        SELECT 'identity_linked', 'imported', a.provider, a.user_id, jsonb_build_object('identity_id', a.id)
        FROM added a
        WHERE a.user_id = ANY (ARRAY(SELECT user_id FROM outcome WHERE outcome = 'linked' AND NOT untouched))
    ) AS changes
    ORDER BY uuid_hash(user_id)
),
counts AS (
    SELECT (SELECT count(*) FROM created) AS users, (SELECT count(*) FROM added) AS identities
),
recorded AS (
    INSERT INTO events (id, kind, actor, detail)
    SELECT $16, 'users_imported', $17, jsonb_build_object('users', users, 'identities', identities)
    FROM counts WHERE users + identities > 0
    ON CONFLICT ON CONSTRAINT events_pkey DO UPDATE
    SET detail = jsonb_build_object(
        'users', (events.detail->>'users')::bigint + (excluded.detail->>'users')::bigint,
        'identities', (events.detail->>'identities')::bigint + (excluded.detail->>'identities')::bigint)
)
SELECT array_agg(outcome ORDER BY number) AS "outcomes!", (SELECT identities FROM counts) AS "identities!"
FROM outcome
