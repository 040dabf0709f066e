-- Users that came one after the other within the last 20 days.
CREATE FUNCTION pg_temp.made(n integer) RETURNS timestamptz LANGUAGE sql STABLE
    RETURN now() - interval '20 days' * (1 - n::float8 / $users);
-- UUIDs of version 7, the same each time.
CREATE FUNCTION pg_temp.id(what text, n integer) RETURNS uuid LANGUAGE sql STABLE
    RETURN (lpad(to_hex((extract(epoch FROM pg_temp.made(n)) * 1000)::bigint), 12, '0') || '7'
            || substr(md5(what || n), 1, 3) || '8' || substr(md5(what || n), 5, 15))::uuid;
INSERT INTO users (id, email, email_verified, name, picture, created_at, updated_at, seen_noted_on)
    SELECT pg_temp.id('user', n), 'u' || n || '@example.test', true, 'Person u' || n,
           'https://example.test/photo/u' || n, pg_temp.made(n), pg_temp.made(n), current_date
    FROM generate_series(0, $users - 1) n;
INSERT INTO identities (id, user_id, provider, subject, email, email_verified, name, picture, created_at, updated_at)
    SELECT pg_temp.id('identity', n), pg_temp.id('user', n), 'idp', 'u' || n, 'u' || n || '@example.test', true,
           'Person u' || n, 'https://example.test/photo/u' || n, pg_temp.made(n), pg_temp.made(n)
    FROM generate_series(0, $users - 1) n;
INSERT INTO sessions (id, identity_id, family_hash, token_hash, created_at, expires_at, client_id)
    SELECT pg_temp.id('session', n), pg_temp.id('identity', n), decode(md5('family' || n), 'hex'),
           decode(md5('token' || n), 'hex'), pg_temp.made(n), pg_temp.made(n) + interval '30 days', 'client-1.example'
    FROM generate_series(0, $users - 1) n;
