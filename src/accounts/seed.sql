-- Made-up users, who have signed up at a growing pace over three years, at providers that came and
-- went. Half were seen in the last 30 days, which is also the age of the oldest sessions and
-- events. No real person can have their e-mail addresses (RFC 2606) and IP addresses (RFC 5737).

CREATE FUNCTION pg_temp.one_of(list text) RETURNS text LANGUAGE sql
    RETURN (string_to_array(list, ','))[1 + floor(random() * cardinality(string_to_array(list, ',')))::integer];
CREATE FUNCTION pg_temp.hex(length integer) RETURNS text LANGUAGE sql RETURN left(md5(random()::text), length);
-- Returns a UUID of version 7 (RFC 9562 §5.7).
CREATE FUNCTION pg_temp.uuid(at timestamptz) RETURNS uuid LANGUAGE sql
    RETURN overlay(overlay(md5(random()::text)
        PLACING lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' FROM 1) PLACING '8' FROM 17)::uuid;
CREATE FUNCTION pg_temp.moment(since timestamptz, until timestamptz) RETURNS timestamptz LANGUAGE sql
    RETURN date_trunc('milliseconds', since + random() * (until - since));

-- Adds the users with these numbers, of `total`. `run` is a part of all e-mail addresses, so that
-- they differ from the addresses of other runs.
CREATE FUNCTION pg_temp.add_users(first integer, last integer, total integer, run text, reasons text)
RETURNS TABLE (users bigint, identities bigint, sessions bigint, events bigint) LANGUAGE sql AS $$
WITH signed_up AS MATERIALIZED (
    SELECT number, created_at, greatest(created_at, now() - interval '30 days') AS recent, random() * 100 AS die,
           pg_temp.one_of('Ada,Aisha,Amir,Björn,Chloé,Daniel,Elena,Emma,Fatima,Grace,Haruto,Ivan,João,Julia,Kofi,Lars,Léa,Li,'
                          'Łukasz,María,Mohammed,Ngozi,Noah,Olga,Priya,Samuel,Søren,Wei,Zoë,美咲,지훈,Ольга,Νίκος') AS given,
           pg_temp.one_of('Abebe,Ali,Bauer,Brown,Chen,Cohen,Costa,da Silva,Díaz,Dubois,Evans,Ferrari,Garcia,Gupta,Haddad,Hopper,'
                          'Horvat,Ito,Ivanov,Jones,Kaya,Khan,Kim,Kovács,Lee,López,Lovelace,Martin,Müller,Nakamura,Nguyễn,'
                          'Novák,O''Brien,Okafor,Patel,Rossi,Sato,Smith,van den Berg,Wang,Yılmaz,Zhang,佐藤,김,Иванова') AS family
    FROM (
        -- Half have signed up in the last third of the time.
        SELECT number, date_trunc('milliseconds', now() - interval '1095 days'
                                  * (1 - sqrt((number + 0.5) / total))) AS created_at
        FROM generate_series(first, last) AS number
    ) AS numbered
), person AS MATERIALIZED (
    SELECT number, created_at, recent, die, pg_temp.uuid(created_at) AS id, pg_temp.uuid(created_at) AS identity_id,
           CASE WHEN random() < 0.96 THEN concat(
               regexp_replace(search_fold(given || family), '[^a-z]', '', 'g'), run, to_hex(number), '@', pg_temp.one_of(
                   'example.com,example.com,example.org,mail.example,students.university.example,old-company.example')
           ) END AS email,
           CASE WHEN random() < 0.95 THEN given || ' ' || family END AS name,
           CASE WHEN random() < 0.4 THEN 'https://pictures.example/' || pg_temp.hex(24) || '.jpg' END AS picture,
           CASE WHEN random() < 0.01 THEN pg_temp.moment(created_at, now()) END AS disabled_at,
           CASE WHEN created_at = recent OR die < 47 THEN pg_temp.moment(recent, now())
                -- The others were imported and have never signed in.
                WHEN die < 97 THEN pg_temp.moment(created_at, now()) END AS seen_at
    FROM signed_up
), identity AS MATERIALIZED (
    SELECT number, id, created_at, CASE
               -- One provider was switched off long ago, and one is new.
               WHEN created_at < now() - interval '700 days' AND random() < 0.2 THEN 'facebook'
               WHEN created_at > now() - interval '120 days' AND random() < 0.15 THEN 'line'
               ELSE pg_temp.one_of('google,google,google,google,apple,apple,microsoft,idp') END AS provider
    FROM (
        SELECT number, identity_id AS id, created_at FROM person
        UNION ALL
        SELECT number, pg_temp.uuid(linked_at), linked_at
        FROM (SELECT number, pg_temp.moment(created_at, now()) AS linked_at FROM person WHERE random() < 0.3) AS further
    ) AS linked
), session AS MATERIALIZED (
    -- Of each new user, and of some others. Some of them have two devices.
    SELECT p.id AS user_id, identity_id, provider, pg_temp.uuid(opened_at) AS id, opened_at, seen_at AS used_at,
           CASE WHEN random() < 0.1 THEN pg_temp.moment(seen_at, now()) END AS ended_at,
           pg_temp.one_of('iPhone,Pixel 9,Galaxy S25') AS device,
           CASE WHEN opened_at = p.created_at THEN 'user_created' ELSE 'signed_in' END AS kind
    FROM person p JOIN identity i ON i.id = identity_id CROSS JOIN LATERAL (
        SELECT p.created_at AS opened_at WHERE p.created_at = recent
        UNION ALL
        SELECT pg_temp.moment(recent, seen_at)
        FROM generate_series(1, CASE WHEN die < 3 THEN 2 WHEN die < 10 THEN 1 ELSE 0 END)
    ) AS sign_in
), new_users AS (
    INSERT INTO users (id, email, email_verified, name, picture, created_at, updated_at, disabled_at, seen_noted_on)
    SELECT id, email, email IS NOT NULL AND random() < 0.95, name, picture, created_at, created_at, disabled_at, seen_at::date
    FROM person ORDER BY number
    RETURNING id, email_verified
), new_identities AS (
    INSERT INTO identities (id, user_id, provider, subject, email, email_verified, name, picture, created_at, updated_at)
    SELECT i.id, p.id, provider, pg_temp.hex(24), email, email_verified, name, picture, i.created_at, i.created_at
    FROM identity i JOIN person p USING (number) JOIN new_users u ON u.id = p.id ORDER BY number
), new_sessions AS (
    INSERT INTO sessions (id, identity_id, family_hash, token_hash, created_at, rotated_at, expires_at, ended_at, client_id,
                          device_name, device_platform)
    SELECT id, identity_id, decode(pg_temp.hex(32), 'hex'), decode(pg_temp.hex(32), 'hex'), opened_at, used_at,
           used_at + interval '30 days', ended_at, 'made-up', device, CASE device WHEN 'iPhone' THEN 'iOS' ELSE 'Android' END
    FROM session ORDER BY id
), new_events AS (
    INSERT INTO events (id, created_at, kind, reason, provider, email, user_id, session_id, ip, user_agent, request_id)
    SELECT id, at, kind, reason, provider, email, user_id, session_id, concat('203.0.113.', floor(random() * 256))::inet,
           'Example/4.2 (' || device || ')', pg_temp.hex(32)
    FROM (
        SELECT id, opened_at AS at, kind, NULL AS reason, provider, NULL AS email, user_id, NULL::uuid AS session_id, device
        FROM session
        UNION ALL
        SELECT pg_temp.uuid(ended_at), ended_at, 'signed_out', 'local', NULL, NULL, user_id, id, device
        FROM session WHERE ended_at IS NOT NULL
        UNION ALL
        SELECT pg_temp.uuid(at), at, 'sign_in_refused', pg_temp.one_of(reasons), provider, email, NULL, NULL, 'Pixel 9'
        FROM (SELECT email, identity_id, pg_temp.moment(now() - interval '30 days', now()) AS at
              FROM person WHERE random() < 0.1) AS refused JOIN identity ON identity.id = identity_id
    ) AS event
    RETURNING 1
)
SELECT (SELECT count(*) FROM person), (SELECT count(*) FROM identity), (SELECT count(*) FROM session),
       (SELECT count(*) FROM new_events)
$$;
