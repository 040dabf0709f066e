-- Access tokens in PostgREST: docs/verify.md. Replace https://id.example.com by your `public_url`, which is the role of all valid
-- tokens (its name has at most 63 bytes), and run this in PostgREST's database. In PostgREST's configuration:
--
--     jwt-secret = "@/etc/postgrest/jwks.json"
--     jwt-aud = "https://id.example.com"
--     jwt-role-claim-key = ".iss"
--
-- By cron, at least every five minutes (a key is published ten minutes before it signs); SIGUSR2 reloads the configuration:
--
--     curl -fsS https://id.example.com/.well-known/jwks.json -o /etc/postgrest/jwks.new \
--       && ! cmp -s /etc/postgrest/jwks.new /etc/postgrest/jwks.json \
--       && mv /etc/postgrest/jwks.new /etc/postgrest/jwks.json && pkill -USR2 -x postgrest
CREATE ROLE "https://id.example.com" NOLOGIN;
GRANT "https://id.example.com" TO authenticator;
-- A table of which each user sees their own rows.
CREATE TABLE notes (owner uuid NOT NULL, text text NOT NULL);
ALTER TABLE notes ENABLE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON notes TO "https://id.example.com";
CREATE POLICY own ON notes TO "https://id.example.com"
    USING (owner = (current_setting('request.jwt.claims', true)::json->>'sub')::uuid);
