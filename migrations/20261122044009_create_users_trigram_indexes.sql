-- For the search for parts of words, if the operator has installed the extension. Each new user
-- costs about twenty index entries, so they are optional; docs/operation.md describes how to create
-- them later.
DO $$
DECLARE
    operators text;
BEGIN
    SELECT quote_ident(n.nspname) || '.gin_trgm_ops' INTO operators
    FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
    WHERE e.extname = 'pg_trgm';
    IF operators IS NOT NULL THEN
        EXECUTE 'CREATE INDEX users_email_trigrams_idx ON users USING gin (email ' || operators || ')';
        EXECUTE 'CREATE INDEX users_name_trigrams_idx ON users USING gin (folded_name ' || operators || ')';
    END IF;
END $$;
