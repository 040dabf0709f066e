-- Returns users with their identities, in the order of their ids. Each is looked up (OFFSET 0 keeps that from becoming a
-- join), however many users there are.
--
--   $1 ids
SELECT u.id, u.email, u.email_verified, u.name, u.picture, u.created_at, u.updated_at, u.disabled_at,
       greatest(u.seen_noted_on, (
           SELECT max(s.rotated_at)::date FROM identities i JOIN sessions s ON s.identity_id = i.id WHERE i.user_id = u.id
       )) AS last_seen_on,
       u.claims::text AS claims,
       (SELECT coalesce(jsonb_agg(to_jsonb(i) ORDER BY i.id), '[]')
        FROM (SELECT id, provider, subject, email, created_at, suspended_at, suspended_reason FROM identities WHERE user_id = u.id) AS i)
           AS "identities!: Json<Vec<IdentityRow>>"
FROM unnest($1::uuid[]) WITH ORDINALITY AS asked (id, place)
CROSS JOIN LATERAL (SELECT * FROM users WHERE users.id = asked.id OFFSET 0) AS u
ORDER BY asked.place
