-- Merges one user into another: all identities become the other's, and the user is no more. Nothing
-- happens where either has changed since they were looked at.
--
--   $1 from  $2 their updated_at  $3 into  $4 their updated_at
--   $5 from's identities, in order  $6 as many new ids
--   $7 email  $8 email verified  $9 name  $10 picture  $11 disabled at: what the remaining user is like
--   $12 event id  $13 another  $14 actor  $15 reason  $16 ip  $17 user agent  $18 request id
--   $19 the role that the actor needs, or $20 the session of the remaining user, who asks for it
--   $21 true if the remaining user's name is their own word
--   $22 the remaining user's claims, if they change  $23 those of the other, if there are any  $24 the product vouches for the e-mail
--
-- Whatever else changes a user or the set of their identities locks the user's row and sets
-- updated_at, so that rows that are locked and have not changed have the identities of this
-- statement's snapshot. They are locked in the order of their ids, for two merges that meet.
--
-- A moved identity is a new row: a sign-in under way that read the old one as from's cannot open its
-- session (sessions_identity_id_fkey) and runs again, and the sessions of the old one go with it.
WITH permitted AS MATERIALIZED (
    SELECT FROM current_staff WHERE email = $14 AND role = $19 FOR SHARE
),
unchanged AS MATERIALIZED (
    SELECT u.id
    FROM users u JOIN (VALUES ($1::uuid, $2::timestamptz), ($3, $4)) AS seen (id, updated_at)
         ON u.id = seen.id AND u.updated_at = seen.updated_at
    ORDER BY u.id
    FOR UPDATE OF u
),
-- The session may have ended while the provider was called.
asking AS MATERIALIZED (
    SELECT i.id FROM sessions s JOIN identities i ON i.id = s.identity_id
    WHERE s.id = $20 AND s.ended_at IS NULL AND i.suspended_at IS NULL AND i.user_id = $3
          AND (i.tokens_from <= s.created_at OR i.tokens_from IS NULL)
),
allowed AS MATERIALIZED (
    SELECT ($19::text IS NULL OR EXISTS (SELECT FROM permitted))
           AND ($20::uuid IS NULL OR EXISTS (SELECT FROM asking)) AS yes
),
decision AS MATERIALIZED (
    SELECT $1::uuid AS from_id, $3::uuid AS into_id
    WHERE (SELECT count(*) FROM unchanged) = 2 AND (SELECT yes FROM allowed)
          AND ARRAY(SELECT id FROM identities WHERE user_id = $1 ORDER BY id) = $5::uuid[]
),
taken AS (
    DELETE FROM identities i USING decision d WHERE i.user_id = d.from_id
    RETURNING i.*
),
moved AS (
    INSERT INTO identities (id, user_id, provider, subject, email, email_verified, name, picture, created_at,
                            joined_by, reported_at, reported_reason, held_at, suspension_as_of, tokens_from)
    SELECT new.id, d.into_id, t.provider, t.subject, t.email, t.email_verified, t.name, t.picture, t.created_at,
           -- Who was let in by another that moves stays known (`apply.sql`).
           coalesce(host.id, (SELECT id FROM asking)), t.reported_at, t.reported_reason, t.held_at, t.suspension_as_of, t.tokens_from
    FROM decision d CROSS JOIN taken t JOIN unnest($5::uuid[], $6::uuid[]) AS new (old_id, id) ON new.old_id = t.id
    LEFT JOIN unnest($5::uuid[], $6::uuid[]) AS host (old_id, id) ON host.old_id = t.joined_by
),
-- Before the other takes the address, which must be free by then.
gone AS (
    DELETE FROM users u USING decision d WHERE u.id = d.from_id AND move_notes(d.from_id, d.into_id)
    RETURNING u.id, u.email, u.seen_noted_on
),
kept AS (
    UPDATE users u
    SET email = $7, email_verified = $8, email_vouched = $24, name = $9, own_name = $21, picture = $10, disabled_at = $11,
        claims = coalesce($22::text::jsonb, u.claims),
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
-- event's reason, which outlives the users. The identities go first: the sessions that go with them are locked before the
-- trigger on events locks the users, as by whatever ends sessions.
recorded AS (
    INSERT INTO events (id, kind, reason, email, user_id, session_id, actor, detail, ip, user_agent, request_id)
    SELECT e.id, 'users_merged', e.reason, e.email, e.user_id, $20, $14,
           -- A null within claims is one that was set.
           jsonb_strip_nulls(e.detail)
               || CASE WHEN e.reason IS NULL AND $22::text IS NOT NULL THEN jsonb_build_object('claims', $22::text::jsonb) ELSE '{}' END
               || CASE WHEN e.reason IS NULL AND $23::text IS NOT NULL THEN jsonb_build_object('from_claims', $23::text::jsonb)
                       ELSE '{}' END,
           $16::inet, $17, $18
    FROM decision d CROSS JOIN (SELECT count(*) FROM taken) AS first CROSS JOIN LATERAL (VALUES
        ($12::uuid, NULL, NULL, d.into_id, jsonb_build_object('reason', $15::text, 'from', d.from_id)),
        ($13::uuid, 'to_another', (SELECT email FROM gone), d.from_id,
         jsonb_build_object('reason', $15::text, 'into', d.into_id))
    ) AS e (id, reason, email, user_id, detail)
)
SELECT EXISTS (SELECT FROM gone) AS "done!", yes AS "allowed!" FROM allowed
