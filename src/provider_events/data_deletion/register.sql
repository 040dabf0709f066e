-- Registers a request to delete what came from an account at a provider, or finds the same request. Returns its code, and
-- the identity and the user that it is about, if there are any. An identity that was linked after the request is not meant:
-- its owner has come back since. Clocks may differ by a minute.
--
--   $1 code for a new request  $2 provider  $3 id of the request  $4 subject  $5 time of the request
WITH registered AS (
    INSERT INTO provider_events AS r (code, provider, message_id) VALUES ($1, $2, 'deletion ' || $3)
    ON CONFLICT ON CONSTRAINT provider_events_pkey DO UPDATE SET provider = r.provider
    RETURNING code, outcome
),
-- The records of the times in which an unlinked account was a user's.
forgotten AS (
    DELETE FROM former_identities WHERE provider = $2 AND subject = $4 AND left_at <= $5::timestamptz + interval '1 minute'
)
SELECT r.code AS "code!", r.outcome, i.id AS "identity?", i.user_id AS "user?", u.updated_at AS "updated_at?",
       u.disabled_at IS NOT NULL AS "disabled!",
       EXISTS (SELECT FROM identities o WHERE o.user_id = u.id AND o.id <> i.id) AS "others!"
FROM registered r
LEFT JOIN identities i ON i.provider = $2 AND i.subject = $4 AND i.created_at <= $5::timestamptz + interval '1 minute'
LEFT JOIN users u ON u.id = i.user_id
