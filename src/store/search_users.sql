-- Users that a text may mean: the address or its beginning, the beginning of the name, the id, or a
-- subject at one of the providers. Each way goes by an index and gives no more than a page.
--
--   $1 text, lower case  $2 text as given  $3 id, if the text is one  $4 providers  $5 limit
WITH found AS (
    (SELECT id FROM users WHERE id = $3)
    UNION
    (SELECT user_id FROM identities WHERE provider = ANY($4) AND subject = $2)
    UNION
    (SELECT id FROM users WHERE email >= $1 AND email < $1 || chr(1114111) ORDER BY email LIMIT $5)
    UNION
    (SELECT id FROM users
     WHERE name IS NOT NULL AND lower(name) COLLATE "C" >= $1 AND lower(name) COLLATE "C" < $1 || chr(1114111)
     ORDER BY lower(name) COLLATE "C" LIMIT $5)
)
SELECT u.id AS "id!", u.email, u.email_verified AS "email_verified!", u.name, u.created_at AS "created_at!", u.disabled_at,
       ARRAY(SELECT i.provider FROM identities i WHERE i.user_id = u.id ORDER BY i.id) AS "providers!"
FROM users u JOIN found f ON f.id = u.id
ORDER BY u.email = $1 DESC NULLS LAST, u.id DESC
LIMIT $5
