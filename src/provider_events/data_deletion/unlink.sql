-- Unlinks an identity, with its sessions, as its provider has asked, and settles the request. Its
-- user has other identities, and has not changed since the request was registered. The user loses
-- what came from this identity alone: the e-mail address, unless the product brought the user in,
-- and the name and the picture. Another identity's name and picture replace them.
--
--   $1 code of the request  $2 identity  $3 user  $4 their updated_at
--   $5 author
WITH unchanged AS MATERIALIZED (
    SELECT id, email, email_verified, name, own_name, picture, imported_at FROM users WHERE id = $3 AND updated_at = $4 FOR UPDATE
),
others AS MATERIALIZED (
    SELECT array_agg(o.name ORDER BY o.updated_at DESC) FILTER (WHERE o.name IS NOT NULL) AS names,
           array_agg(o.picture ORDER BY o.updated_at DESC) FILTER (WHERE o.picture IS NOT NULL) AS pictures,
           array_agg(lower(o.email COLLATE "C")) FILTER (WHERE o.email IS NOT NULL) AS emails
    FROM identities o JOIN unchanged u ON u.id = o.user_id WHERE o.id <> $2
),
unlinked AS (
    DELETE FROM identities i USING unchanged u WHERE i.id = $2 AND i.user_id = u.id
    RETURNING i.user_id, i.provider, i.subject, i.email, i.name, i.picture
),
-- As for a user who is deleted. With this row, nothing else is kept of the identity (`follow_departure()`).
remembered AS (
    INSERT INTO deleted_identities (hash, deleted_at) SELECT identity_hash(provider, subject), date_trunc('second', clock_timestamp()) FROM unlinked
    ON CONFLICT ON CONSTRAINT deleted_identities_pkey DO UPDATE SET deleted_at = excluded.deleted_at
),
forgotten AS (
    DELETE FROM former_identities f USING unlinked i WHERE f.provider = i.provider AND f.subject = i.subject
),
kept AS MATERIALIZED (
    SELECT u.id,
           CASE WHEN NOT u.own_name AND u.name = i.name AND (u.name = ANY(o.names)) IS NOT TRUE THEN o.names[1]
                ELSE u.name END AS name,
           CASE WHEN u.picture = i.picture AND (u.picture = ANY(o.pictures)) IS NOT TRUE THEN o.pictures[1]
                ELSE u.picture END AS picture,
           CASE WHEN u.imported_at IS NULL AND u.email = lower(i.email COLLATE "C")
                     AND (u.email = ANY(o.emails)) IS NOT TRUE THEN NULL ELSE u.email END AS email
    FROM unchanged u JOIN unlinked i ON i.user_id = u.id CROSS JOIN others o
),
profile AS (
    UPDATE users u
    SET name = k.name, picture = k.picture, email = k.email, updated_at = now(),
        email_verified = u.email_verified AND k.email IS NOT NULL, email_vouched = u.email_vouched AND k.email IS NOT NULL
    FROM kept k WHERE u.id = k.id
    RETURNING u.id, u.email, u.email_verified, u.name, u.picture
),
recorded AS (
    INSERT INTO events
    SELECT e.* FROM unlinked i, event_row($5, 'identity_unlinked', i.user_id, i.provider,
                                      detail => jsonb_build_object('identity_id', $2::uuid)) AS e
    UNION ALL
    SELECT e.* FROM unlinked i JOIN profile p ON p.id = i.user_id JOIN unchanged u ON u.id = p.id,
         changed_fields(to_jsonb(u), to_jsonb(p)) AS c (fields),
         event_row(ROW(($5).actor, NULL, NULL, NULL, ($5).request_id, NULL, NULL)::author, 'user_updated', p.id, i.provider,
               detail => jsonb_build_object('fields', c.fields)) AS e
    WHERE c.fields <> '{}'
),
settled AS (
    UPDATE provider_events SET outcome = 'unlinked' WHERE code = $1 AND EXISTS (SELECT FROM unlinked)
)
SELECT EXISTS (SELECT FROM unlinked) AS "done!"
