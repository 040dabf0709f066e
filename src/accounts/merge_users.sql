-- Merges one user into another: the remaining user gets all identities, and the other user is
-- deleted. Changes nothing if either has changed since the caller read them.
--
--   $1 from  $2 their updated_at  $3 into  $4 their updated_at
--   $5 from's identities, in order  $6 as many new ids
--   $7 email  $8 email verified  $9 name  $10 picture  $11 disabled at: remaining user afterwards
--   $12 author  $13 the session of the remaining user, if they ask for it
--   $14 true if the remaining user's name is their own word
--   $15 the remaining user's claims, if they change  $16 the other user's claims, if any
--   $17 true if the product vouches for the e-mail
--
-- Every statement that changes a user or the set of their identities locks the user's row and sets
-- updated_at. So if the locked rows have not changed, their identities are the ones in this
-- statement's snapshot. The rows are locked in the order of their ids, so that two concurrent
-- merges cannot deadlock.
--
-- A moved identity gets a new id: a concurrent sign-in that has read it as from's identity cannot
-- open its session (sessions_identity_id_fkey) and runs again. The identity's sessions are deleted.
WITH unchanged AS MATERIALIZED (
    SELECT u.id
    FROM users u JOIN (VALUES ($1::uuid, $2::timestamptz), ($3, $4)) AS seen (id, updated_at)
         ON u.id = seen.id AND u.updated_at = seen.updated_at
    ORDER BY u.id
    FOR UPDATE OF u
),
-- The session may have ended while the provider was called.
asking AS MATERIALIZED (
    SELECT FROM live_sessions WHERE id = $13 AND user_id = $3
),
allowed AS MATERIALIZED (
    SELECT author_allowed($12) AND ($13::uuid IS NULL OR EXISTS (SELECT FROM asking)) AS yes
),
decision AS MATERIALIZED (
    SELECT $1::uuid AS from_id, $3::uuid AS into_id
    WHERE (SELECT count(*) FROM unchanged) = 2 AND (SELECT yes FROM allowed)
          AND ARRAY(SELECT id FROM identities WHERE user_id = $1 ORDER BY id) = $5::uuid[]
),
renamed AS (
    SELECT * FROM unnest($5::uuid[], $6::uuid[]) AS r (old_id, id)
),
moved AS (
    UPDATE identities i
    SET id = r.id, user_id = d.into_id, joined_at = now(), updated_at = now()
    FROM decision d CROSS JOIN renamed r WHERE i.id = r.old_id AND i.user_id = d.from_id
    RETURNING i.id
),
-- This comes before the remaining user takes the address: `users.email` is unique.
gone AS (
    DELETE FROM users u USING decision d WHERE u.id = d.from_id AND move_notes(d.from_id, d.into_id)
    RETURNING u.id, u.email, u.seen_noted_on
),
remembered AS (
    INSERT INTO merged_users (id, into_id) SELECT g.id, d.into_id FROM gone g, decision d
),
kept AS (
    UPDATE users u
    SET email = $7, email_verified = $8, email_vouched = $17, name = $9, own_name = $14, picture = $10, disabled_at = $11,
        claims = coalesce($15::text::jsonb, u.claims),
        seen_noted_on = greatest(u.seen_noted_on, g.seen_noted_on, (
            SELECT max(s.rotated_at)::date FROM identities i JOIN sessions s ON s.identity_id = i.id WHERE i.user_id = g.id
        )),
        updated_at = now()
    FROM gone g, decision d
    WHERE u.id = d.into_id
),
-- If the merge disables the remaining user, their sessions end, as with any disabling.
ended AS (
    UPDATE sessions s SET ended_at = now()
    FROM decision d JOIN identities i ON i.user_id = d.into_id
    WHERE s.identity_id = i.id AND s.ended_at IS NULL AND $11::timestamptz IS NOT NULL
),
-- The event of the deleted user contains their e-mail address, which no user may have any more, so
-- that a search for the address finds the merge. The event's reason is the direction of the merge,
-- and outlives the users. The identities move first: the sessions that are deleted with their ids
-- must be locked before the trigger on events locks the users, as in every statement that ends
-- sessions.
recorded AS (
    INSERT INTO events
    SELECT e.* FROM decision d CROSS JOIN (SELECT count(*) FROM moved) AS first CROSS JOIN LATERAL (VALUES
        (d.into_id, NULL, NULL, jsonb_build_object('from', d.from_id)
            || CASE WHEN $15::text IS NULL THEN '{}' ELSE jsonb_build_object('claims', $15::text::jsonb) END
            || CASE WHEN $16::text IS NULL THEN '{}' ELSE jsonb_build_object('from_claims', $16::text::jsonb) END),
        (d.from_id, 'to_another', (SELECT email FROM gone), jsonb_build_object('into', d.into_id))
    ) AS side (user_id, reason, email, detail),
    event_row($12, 'users_merged', side.user_id, session_id => $13, reason => side.reason, email => side.email,
          detail => side.detail) AS e
)
SELECT EXISTS (SELECT FROM gone) AS "done!", yes AS "allowed!" FROM allowed
