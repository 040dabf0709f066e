-- Users as of one moment, in the order of $1: a row for each identity, or one row for a user
-- without any. Each user is looked up (OFFSET 0 keeps that from becoming a join), however many
-- users there are.
--
--   $1 ids
SELECT u.id AS user_id, u.email AS user_email, u.email_verified AS user_email_verified, u.name AS user_name,
       u.picture AS user_picture, u.created_at AS user_created_at, u.email_vouched, u.own_name, u.updated_at, u.disabled_at,
       u.claims::text AS claims, (SELECT count(*) FROM notes n WHERE n.user_id = u.id) AS "notes!",
       greatest(u.seen_noted_on, (
           SELECT max(s.rotated_at)::date FROM identities o JOIN sessions s ON s.identity_id = o.id WHERE o.user_id = u.id
       )) AS last_seen_on,
       i.id AS "identity_id?", i.provider AS "provider?", i.subject AS "subject?", i.email AS identity_email,
       coalesce(i.email_verified, false) AS "identity_email_verified!", i.created_at AS "linked_at?",
       i.suspended_at, i.suspended_reason, i.held_at IS NOT NULL AS "held!",
       coalesce(i.hijacked, false) AS "hijacked!",
       i.tokens_from AS "tokens_from?",
       (SELECT count(*) FROM sessions s
        WHERE s.identity_id = i.id AND s.ended_at IS NULL AND s.expires_at > now()) AS "sessions!"
FROM unnest($1::uuid[]) WITH ORDINALITY AS asked (id, place)
CROSS JOIN LATERAL (SELECT * FROM users WHERE users.id = asked.id OFFSET 0) AS u
LEFT JOIN LATERAL (SELECT * FROM identities WHERE user_id = u.id OFFSET 0) AS i ON true
ORDER BY asked.place, i.id
