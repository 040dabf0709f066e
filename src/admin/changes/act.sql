-- Disables or enables a user, ends all their sessions, or ends one session. Enabling ends sessions,
-- too: one may have been opened at the moment of disabling. Staff cannot disable the user with
-- their own, verified e-mail address. A no-op succeeds and is not recorded.
--
--   $1 user  $2 their updated_at, or NULL for any  $3 the change, as the event's kind  $4 the session to end, or NULL for all
--   $5 author
WITH permitted AS MATERIALIZED (
    SELECT author_allowed($5) AS yes
),
target AS MATERIALIZED (
    SELECT id, disabled_at FROM users
    WHERE id = $1 AND ($2::timestamptz IS NULL OR updated_at = $2)
          AND (SELECT yes FROM permitted)
          AND ($3::text = 'user_disabled' AND email_verified AND email = ($5::author).actor) IS NOT TRUE
          AND ($4::uuid IS NULL OR EXISTS (
              SELECT FROM sessions s JOIN identities i ON i.id = s.identity_id
              WHERE s.id = $4 AND i.user_id = $1 AND s.ended_at IS NULL
          ))
    FOR NO KEY UPDATE
),
ended AS (
    UPDATE sessions s SET ended_at = now()
    FROM target t JOIN identities i ON i.user_id = t.id
    WHERE s.identity_id = i.id AND s.ended_at IS NULL AND ($4::uuid IS NULL OR s.id = $4)
    RETURNING s.id
),
changed AS (
    UPDATE users u
    SET disabled_at = CASE $3::text WHEN 'user_disabled' THEN coalesce(u.disabled_at, now())
                                    WHEN 'user_enabled' THEN NULL ELSE u.disabled_at END,
        updated_at = now()
    FROM target t
    WHERE u.id = t.id
          AND (EXISTS (SELECT FROM ended)
               OR $3::text = CASE WHEN t.disabled_at IS NULL THEN 'user_disabled' ELSE 'user_enabled' END)
    RETURNING u.id
),
recorded AS (
    INSERT INTO events SELECT e.* FROM changed c, event_row($5, $3, c.id, session_id => $4) AS e
)
SELECT EXISTS (SELECT FROM target) AS "done!", yes AS "permitted!" FROM permitted
