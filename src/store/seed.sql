-- Made-up users; a million of them look like the users of some years.
--
-- They have signed up at a growing pace over three years, at providers that came and went. Half were seen in the last 30
-- days, which is also the age of the oldest sessions and events: more by day than by night, and one afternoon of refusals.
-- No real person can have their e-mail addresses (RFC 2606) and IP addresses (RFC 3849, RFC 5737).

-- Given names. After `=` stands the form in an e-mail address, if it differs in more than case.
CREATE FUNCTION pg_temp.given_names() RETURNS text[] LANGUAGE sql IMMUTABLE RETURN string_to_array(
    'Ada,Aisha,Alejandro,Alice,Amir,Ana,Andrea,Anna,Antonio,Arjun,Astrid,Ayumi,Beatriz,Björn=bjoern,Carlos,Chiara,'
    'Chloé=chloe,Claudia,Daniel,David,Deepa,Dmitri,Elena,Emma,Erik,Fatima,Felix,François=francois,Freya,Gabriel,Grace,'
    'Hana,Hannah,Haruto,Hassan,Ingrid,Isabel,Ivan,Jack,Jakub,James,Jana,Jens,Jin,João=joao,José=jose,Julia,Kaito,Karin,'
    'Kofi,Lars,Laura,Leila,Léa=lea,Liam,Linh,Lucas,Łukasz=lukasz,Luca,Maja,María=maria,Marie,Marta,Mateo,Mei,Mia,'
    'Michael,Mohammed,Nadia,Ngozi,Nikolai,Noah,Olga,Oliver,Olivia,Pablo,Paul,Petra,Priya,Rahul,Rosa,Ruth,Samuel,Sara,'
    'Sofia,Søren=soren,Sven,Tariq,Thomas,Tomás=tomas,Ulrike,Viktor,Wei,Yara,Yusuf,Zoë=zoe,美咲=misaki,陽翔=haruto,'
    '지훈=jihun,伟=wei,Ольга=olga,Νίκος=nikos', ',');
-- Family names, in the same format.
CREATE FUNCTION pg_temp.family_names() RETURNS text[] LANGUAGE sql IMMUTABLE RETURN string_to_array(
    'Abebe,Adeyemi,Ahmed,Ali,Almeida,Andersson,Baker,Bauer,Becker,Bernard,Bianchi,Brown,Carter,Castro,Chen,Clark,Cohen,'
    'Costa,Cruz,da Silva=dasilva,Davies,de Jong=dejong,Diallo,Díaz=diaz,Dubois,Eriksen,Evans,Fernández=fernandez,'
    'Ferrari,Fischer,Garcia,González=gonzalez,Green,Gupta,Haddad,Hall,Hansen,Hoffmann,Hopper,Horvat,Hughes,Ito,Ivanov,'
    'Jansen,Johansson,Johnson,Jones,Kaya,Keller,Khan,Kim,King,Kovács=kovacs,Kowalski,Kumar,Larsen,Lee,Lefebvre,Lewis,'
    'Li,López=lopez,Lovelace,Martin,Martínez=martinez,Mendes,Meyer,Miller,Moore,Moreau,Müller=mueller,Murphy,Nakamura,'
    'Nguyễn=nguyen,Nielsen,Novák=novak,O''Brien=obrien,Okafor,Olsen,Park,Patel,Pereira,Pérez=perez,Petrov,Popescu,'
    'Ramos,Reyes,Ricci,Robinson,Rodríguez=rodriguez,Rossi,Sánchez=sanchez,Santos,Sato,Schmidt,Schneider,Sharma,Singh,'
    'Smith,Sørensen=sorensen,Suzuki,Svensson,Takahashi,Tanaka,Taylor,Torres,Tran,van den Berg=vandenberg,Virtanen,'
    'Wagner,Walker,Wang,Weber,White,Williams,Wilson,Wójcik=wojcik,Yamamoto,Yang,Yılmaz=yilmaz,Zhang,Zimmermann,'
    '佐藤=sato,김=kim,王=wang,Иванова=ivanova,Παππάς=pappas', ',');

CREATE FUNCTION pg_temp.one_of(list text[]) RETURNS text LANGUAGE sql
    RETURN list[1 + floor(random() * cardinality(list))::integer];
CREATE FUNCTION pg_temp.hex(length integer) RETURNS text LANGUAGE sql RETURN left(md5(random()::text), length);
CREATE FUNCTION pg_temp.digits(length integer) RETURNS text LANGUAGE sql
    RETURN left(translate(md5(random()::text), 'abcdef', '012345'), length);
-- Returns a UUID of version 7 (RFC 9562 §5.7).
CREATE FUNCTION pg_temp.uuid(at timestamptz) RETURNS uuid LANGUAGE sql
    RETURN overlay(overlay(md5(random()::text)
        PLACING lpad(to_hex(floor(extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' FROM 1) PLACING '8' FROM 17)::uuid;
CREATE FUNCTION pg_temp.ip() RETURNS inet LANGUAGE sql RETURN CASE floor(random() * 3)
    WHEN 0 THEN concat('2001:db8:', pg_temp.hex(4), ':', pg_temp.hex(4), '::', pg_temp.hex(4))
    WHEN 1 THEN concat('198.51.100.', floor(random() * 256))
    ELSE concat('203.0.113.', floor(random() * 256)) END::inet;
CREATE FUNCTION pg_temp.moment(since timestamptz, until timestamptz) RETURNS timestamptz LANGUAGE sql
    RETURN date_trunc('milliseconds', since + random() * (until - since));
-- Returns a moment at which people use apps: more by day than by night (UTC), and less at the weekend.
CREATE FUNCTION pg_temp.active(since timestamptz, until timestamptz) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
    -- The share of people who are awake, in percent, by hour of the day.
    awake CONSTANT integer[] := '{30,20,15,12,15,25,40,60,75,80,80,78,82,80,76,75,78,85,95,100,98,85,65,45}';
    at timestamptz;
BEGIN
    FOR attempt IN 1..20 LOOP
        at := pg_temp.moment(since, until);
        EXIT WHEN random() * 100 < awake[1 + extract(hour FROM at)] * CASE WHEN extract(isodow FROM at) < 6 THEN 1 ELSE 0.7 END;
    END LOOP;
    RETURN at;
END $$;

-- Adds the users with these numbers, of `total`. `run` is a part of all e-mail addresses, which makes them differ from
-- those of other runs.
CREATE FUNCTION pg_temp.add_users(first integer, last integer, total integer, run text, reasons text[])
RETURNS TABLE (users bigint, identities bigint, sessions bigint, events bigint) LANGUAGE sql AS $$
WITH device (number, platform, name, agent) AS (VALUES
    (0, 'iOS', 'iPhone', 'Example/4.2 (iPhone; iOS 19.1)'),
    (1, 'iOS', 'iPad', 'Example/4.2 (iPad; iPadOS 19.0)'),
    (2, 'Android', 'Pixel 9', 'Example/4.1 (Android 16; Pixel 9)'),
    (3, 'Android', 'Galaxy S25', 'Example/4.2 (Android 16; SM-S931B)'),
    (4, 'Android', 'Redmi Note 14', 'Example/3.9 (Android 15; Redmi Note 14)'),
    (5, 'web', 'Firefox', 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0')
), signed_up AS MATERIALIZED (
    SELECT number, created_at, greatest(created_at, now() - interval '30 days') AS recent,
           pg_temp.uuid(created_at) AS id, pg_temp.uuid(created_at) AS identity_id,
           pg_temp.one_of(pg_temp.given_names()) AS given, pg_temp.one_of(pg_temp.given_names()) AS second,
           pg_temp.one_of(pg_temp.family_names()) AS family, random() * 100 AS devices, random() * 100 AS returned
    FROM (
        -- Half have signed up in the last third of the time.
        SELECT number, date_trunc('milliseconds', now() - interval '1095 days'
                                  * (1 - sqrt((number + 0.5) / total))) AS created_at
        FROM generate_series(first, last) AS number
    ) AS numbered
), opened AS MATERIALIZED (
    -- Of each new user, and of some others. Some of them have two devices.
    SELECT number, opened_at, CASE WHEN random() < 0.8 THEN pg_temp.active(opened_at, now()) ELSE opened_at END AS used_at
    FROM signed_up, LATERAL (
        SELECT created_at AS opened_at WHERE created_at = recent
        UNION ALL
        SELECT pg_temp.active(recent, now())
        FROM generate_series(1, CASE WHEN devices < 3 THEN 2 WHEN devices < 10 THEN 1 ELSE 0 END)
    ) AS sign_in
), person AS MATERIALIZED (
    SELECT number, id, identity_id, created_at, devices, email, email IS NOT NULL AND random() < 0.95 AS email_verified,
           CASE floor(random() * 20)
               WHEN 0 THEN NULL
               WHEN 1 THEN given
               WHEN 2 THEN concat_ws(' ', given, second, family)
               ELSE given || ' ' || family
           END AS name,
           CASE WHEN random() < 0.4 THEN 'https://pictures.example/' || pg_temp.hex(24) || '.jpg' END AS picture,
           CASE WHEN random() < 0.01 THEN pg_temp.moment(created_at, now()) END AS disabled_at,
           CASE WHEN used_at IS NOT NULL THEN used_at
                -- The user was imported and has never signed in.
                WHEN returned < 3 THEN NULL
                WHEN returned < 40 THEN pg_temp.active(recent, now())
                ELSE pg_temp.moment(created_at, now()) END::date AS seen_noted_on
    FROM (
        SELECT number, id, identity_id, created_at, recent, devices, returned,
               split_part(given, '=', 1) AS given, split_part(second, '=', 1) AS second, split_part(family, '=', 1) AS family,
               CASE WHEN random() < 0.96 THEN concat(
                   CASE floor(random() * 4)
                       WHEN 0 THEN given_mailbox || '.' || family_mailbox
                       WHEN 1 THEN left(given_mailbox, 1) || family_mailbox
                       WHEN 2 THEN family_mailbox || '_' || left(given_mailbox, 1)
                       ELSE given_mailbox
                   END,
                   '.', run, to_hex(number), '@',
                   pg_temp.one_of('{example.com,example.com,example.com,example.org,example.net,mail.example,post.example,'
                                  'students.university.example,city-hospital.example,old-company.example}')
               ) END AS email
        FROM signed_up, LATERAL (
            SELECT lower(split_part(given || '=' || given, '=', 2)) AS given_mailbox,
                   lower(split_part(family || '=' || family, '=', 2)) AS family_mailbox
        ) AS mailbox
    ) AS named
    LEFT JOIN (SELECT number, max(used_at) AS used_at FROM opened GROUP BY number) AS last_use USING (number)
), linked AS MATERIALIZED (
    SELECT number, identity_id AS id, created_at, random() * 100 AS die FROM person
    UNION ALL
    SELECT number, pg_temp.uuid(linked_at), linked_at, random() * 100
    FROM (SELECT number, pg_temp.moment(created_at, now()) AS linked_at FROM person WHERE random() < 0.3) AS further
), identity AS MATERIALIZED (
    SELECT number, id, created_at, CASE
               -- One provider was switched off long ago, and one is new.
               WHEN die < 20 AND created_at < now() - interval '700 days' THEN 'facebook'
               WHEN die < 15 AND created_at > now() - interval '120 days' THEN 'line'
               WHEN die < 60 THEN 'google'
               WHEN die < 85 THEN 'apple'
               WHEN die < 95 THEN 'microsoft'
               ELSE 'idp' END AS provider
    FROM linked
), session AS MATERIALIZED (
    SELECT person.id AS user_id, identity.id AS identity_id, identity.provider, pg_temp.uuid(opened_at) AS id, opened_at, used_at,
           CASE WHEN random() < 0.1 THEN pg_temp.moment(used_at, now()) END AS ended_at,
           CASE WHEN opened_at = person.created_at THEN 'user_created' ELSE 'signed_in' END AS kind,
           pg_temp.ip() AS ip, floor(random() * 6) AS device
    FROM opened JOIN person USING (number) JOIN identity ON identity.id = person.identity_id
), refused AS MATERIALIZED (
    SELECT person.id AS user_id, person.email, identity.provider, pg_temp.ip() AS ip, floor(random() * 6) AS device,
           -- One afternoon, an app was released with a client id that was not in the settings.
           CASE WHEN in_incident THEN pg_temp.moment(now() - interval '9 days', now() - interval '9 days' + interval '6 hours')
                ELSE pg_temp.active(now() - interval '30 days', now()) END AS at,
           CASE WHEN in_incident THEN 'audience_mismatch'
                WHEN die < 30 THEN 'token_expired'
                WHEN die < 45 THEN 'invalid_token'
                WHEN die < 55 THEN 'nonce_mismatch'
                WHEN die < 65 THEN 'link_required'
                WHEN die < 70 THEN 'email_not_verified'
                ELSE pg_temp.one_of(reasons) END AS reason
    FROM (SELECT number, random() < 0.15 AS in_incident, random() * 100 AS die FROM person WHERE random() < 0.1) AS drawn
    JOIN person USING (number) JOIN identity ON identity.id = person.identity_id
), new_users AS (
    INSERT INTO users (id, email, email_verified, name, picture, created_at, updated_at, disabled_at, seen_noted_on)
    SELECT id, email, email_verified, name, picture, created_at, created_at, disabled_at, seen_noted_on
    FROM person ORDER BY number
), new_identities AS (
    INSERT INTO identities (id, user_id, provider, subject, email, email_verified, name, picture, created_at, updated_at)
    SELECT identity.id, person.id, provider,
           CASE provider
               WHEN 'google' THEN '1' || pg_temp.digits(20)
               WHEN 'apple' THEN concat('00', pg_temp.digits(4), '.', pg_temp.hex(32), '.', pg_temp.digits(4))
               WHEN 'facebook' THEN '1' || pg_temp.digits(16)
               WHEN 'line' THEN 'U' || pg_temp.hex(32)
               ELSE pg_temp.hex(24)
           END,
           email, email_verified, name, picture, identity.created_at, identity.created_at
    FROM identity JOIN person USING (number) ORDER BY number
), new_sessions AS (
    INSERT INTO sessions (id, identity_id, family_hash, token_hash, created_at, rotated_at, expires_at, ended_at, client_id,
                          device_name, device_platform)
    SELECT id, identity_id, decode(pg_temp.hex(32), 'hex'), decode(pg_temp.hex(32), 'hex'), opened_at, used_at,
           used_at + interval '30 days', ended_at, 'made-up', device.name, platform
    FROM session JOIN device ON device.number = session.device ORDER BY id
), new_events AS (
    INSERT INTO events (id, created_at, kind, reason, provider, email, user_id, session_id, ip, user_agent, request_id, detail)
    SELECT id, at, kind, reason, provider, email, user_id, session_id, ip, agent, pg_temp.hex(32), detail
    FROM (
        SELECT id, opened_at AS at, kind, NULL AS reason, provider, NULL AS email, user_id, NULL::uuid AS session_id, ip,
               device, NULL::jsonb AS detail
        FROM session
        UNION ALL
        SELECT pg_temp.uuid(ended_at), ended_at, 'signed_out', NULL, NULL, NULL, user_id, id, ip, device, NULL
        FROM session WHERE ended_at IS NOT NULL
        UNION ALL
        SELECT pg_temp.uuid(at), at, 'sign_in_refused', reason, provider, email,
               CASE reason WHEN 'user_disabled' THEN user_id END, NULL, ip, device,
               CASE reason
                   WHEN 'issuer_mismatch' THEN jsonb_build_object('claimed_issuer', 'https://login.other.example')
                   WHEN 'audience_mismatch'
                   THEN jsonb_build_object('claimed_audience', pg_temp.digits(12) || '.apps.other.example')
               END
        FROM refused
    ) AS event JOIN device ON device.number = event.device
    RETURNING 1
)
SELECT (SELECT count(*) FROM person), (SELECT count(*) FROM identity), (SELECT count(*) FROM session),
       (SELECT count(*) FROM new_events)
$$;
