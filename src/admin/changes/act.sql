-- Disables or enables a user, or only ends their sessions, or one of them. Enabling ends sessions, too: one may have been
-- opened at the moment of disabling. Nobody disables the user with their own, verified e-mail address.
--
--   $1 user  $2 the change, as the event's kind  $3 the session to end, or NULL for all
--   $4 event id  $5 actor  $6 reason  $7 ip  $8 user agent  $9 request id
--   $10 the role that the actor needs
WITH permitted AS MATERIALIZED (
    SELECT FROM current_staff WHERE email = $5 AND (role = $10 OR $10 = 'support') FOR SHARE
),
target AS (
    UPDATE users
    SET disabled_at = CASE $2::text WHEN 'user_disabled' THEN coalesce(disabled_at, now())
                                    WHEN 'user_enabled' THEN NULL ELSE disabled_at END,
        updated_at = now()
    WHERE id = $1 AND ($10::text IS NULL OR EXISTS (SELECT FROM permitted))
          AND ($2::text = 'user_disabled' AND email_verified AND email = $5) IS NOT TRUE
          AND ($3::uuid IS NULL OR EXISTS (
              SELECT FROM sessions s JOIN identities i ON i.id = s.identity_id
              WHERE s.id = $3 AND i.user_id = $1 AND s.ended_at IS NULL
          ))
    RETURNING id
),
ended AS (
    UPDATE sessions s SET ended_at = now()
    FROM target t JOIN identities i ON i.user_id = t.id
    WHERE s.identity_id = i.id AND s.ended_at IS NULL AND ($3::uuid IS NULL OR s.id = $3)
),
recorded AS (
    INSERT INTO events (id, kind, user_id, session_id, actor, detail, ip, user_agent, request_id)
    SELECT $4, $2::text, id, $3, $5, jsonb_build_object('reason', $6::text), $7::inet, $8, $9 FROM target
)
SELECT EXISTS (SELECT FROM target) AS "done!", $10::text IS NULL OR EXISTS (SELECT FROM permitted) AS "permitted!"
