-- Merges one user into another: all identities become the other's, and the user is no more. Nothing
-- happens where either has changed since they were looked at.
--
--   $1 from  $2 their updated_at  $3 into  $4 their updated_at
--   $5 from's identities, in order  $6 as many new ids
--   $7 email  $8 email verified  $9 name  $10 picture  $11 disabled at: what the remaining user is like
--   $12 author  $13 the session of the remaining user, if they ask for it
--   $14 true if the remaining user's name is their own word
--   $15 the remaining user's claims, if they change  $16 those of the other, if there are any  $17 the product vouches for the e-mail
--
-- Whatever else changes a user or the set of their identities locks the user's row and sets
-- updated_at, so that rows that are locked and have not changed have the identities of this
-- statement's snapshot. They are locked in the order of their ids, for two merges that meet.
--
-- A moved identity gets a new id: a sign-in under way that read it as from's cannot open its session
-- (sessions_identity_id_fkey) and runs again, and the sessions that it has go.
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
-- Before the other takes the address, which must be free by then.
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
-- Who is disabled by it is signed out, as by any disabling.
ended AS (
    UPDATE sessions s SET ended_at = now()
    FROM decision d JOIN identities i ON i.user_id = d.into_id
    WHERE s.identity_id = i.id AND s.ended_at IS NULL AND $11::timestamptz IS NOT NULL
),
-- By the address of whoever goes, which no user may have any more, the merge is still found. The direction is the
-- event's reason, which outlives the users. The identities go first: the sessions that go with their ids are locked before the
-- trigger on events locks the users, as by whatever ends sessions.
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
