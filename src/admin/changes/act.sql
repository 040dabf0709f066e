-- Disables or enables a user, or only ends their sessions. Enabling ends sessions, too: one may have been opened at the
-- moment of disabling. Nobody disables the user with their own, verified e-mail address.
--
--   $1 user  $2 the change, as the event's kind
--   $3 event id  $4 actor  $5 reason  $6 ip  $7 user agent  $8 request id
--   $9 the role that the actor needs
WITH permitted AS MATERIALIZED (
    SELECT FROM current_staff WHERE email = $4 AND (role = $9 OR $9 = 'support') FOR SHARE
),
target AS (
    UPDATE users
    SET disabled_at = CASE $2::text WHEN 'user_disabled' THEN coalesce(disabled_at, now())
                                    WHEN 'user_enabled' THEN NULL ELSE disabled_at END,
        updated_at = now()
    WHERE id = $1 AND ($9::text IS NULL OR EXISTS (SELECT FROM permitted))
          AND ($2::text = 'user_disabled' AND email_verified AND email = $4) IS NOT TRUE
    RETURNING id
),
ended AS (
    UPDATE sessions s SET ended_at = now()
    FROM target t JOIN identities i ON i.user_id = t.id
    WHERE s.identity_id = i.id AND s.ended_at IS NULL
),
recorded AS (
    INSERT INTO events (id, kind, user_id, actor, detail, ip, user_agent, request_id)
    SELECT $3, $2::text, id, $4, jsonb_build_object('reason', $5::text), $6::inet, $7, $8 FROM target
)
SELECT EXISTS (SELECT FROM target) AS "done!", $9::text IS NULL OR EXISTS (SELECT FROM permitted) AS "permitted!"
