-- Prepares a search: returns the text in the form that names are compared with, and the users whose
-- id, e-mail address, subject or identity's e-mail address it is, the most certain first. The id of
-- a user who was merged leads to the user who remains.
--
--   $1 text  $2 the id that it is, if it is one  $3 text as e-mails are compared with it  $4 providers  $5 number of users
WITH RECURSIVE merged AS (
    SELECT (e.detail->>'into')::uuid AS id
    FROM events e WHERE e.user_id = $2 AND e.kind = 'users_merged' AND e.detail->>'into' IS NOT NULL
    UNION
    SELECT (e.detail->>'into')::uuid
    FROM merged m JOIN events e ON e.user_id = m.id AND e.kind = 'users_merged' AND e.detail->>'into' IS NOT NULL
),
remains AS (
    SELECT u.id FROM merged m JOIN users u ON u.id = m.id
),
named AS (
    SELECT id, 1 AS rank FROM users WHERE id = $2
    UNION ALL SELECT id, 2 FROM remains
    UNION ALL SELECT id, 3 FROM users WHERE email = $3
    UNION ALL SELECT user_id, 4 FROM identities WHERE provider = ANY($4) AND subject = $1
    UNION ALL (SELECT user_id, 5 FROM identities WHERE lower(email COLLATE "C") = $3 LIMIT $5)
)
SELECT search_fold($1) AS "folded!",
       ARRAY(SELECT id FROM named GROUP BY id ORDER BY min(rank), id DESC LIMIT $5) AS "named!",
       (SELECT id FROM remains) AS remains,
       (SELECT count(*) = 2 FROM pg_index
        WHERE indrelid = 'users'::regclass AND indisvalid
        AND indexrelid IN (to_regclass('users_email_trigrams_idx'), to_regclass('users_name_trigrams_idx')))
           AS "has_trigrams!",
       (SELECT datctype IN ('C', 'POSIX') FROM pg_database WHERE datname = current_database()) AS "knows_ascii_only!"
