-- Identities that went with their user, for as long as a token from before may be shown: it creates no user anew, nor is it
-- linked. A hash and a time are all that is kept, for 25 hours (`src/store/prune.rs`), since no token is accepted that is
-- older than a day.
CREATE TABLE deleted_identities (
    hash       bytea       CONSTRAINT deleted_identities_pkey PRIMARY KEY,
    deleted_at timestamptz NOT NULL
);
CREATE INDEX deleted_identities_deleted_at_idx ON deleted_identities (deleted_at);

-- Neither a provider's name nor a subject contains a blank.
CREATE FUNCTION identity_hash(provider text, subject text) RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE
RETURN sha256(convert_to(provider || ' ' || subject, 'UTF8'));

-- Whatever deletes the user. A token's `iat` has whole seconds, and one from the second of the deletion may be that of a
-- person who comes back at once, so the time has whole seconds, too. It runs at the end of the statement, and finds the identity if that was only moved.
CREATE FUNCTION remember_deleted_identity() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    INSERT INTO deleted_identities (hash, deleted_at)
    SELECT identity_hash(OLD.provider, OLD.subject), date_trunc('second', clock_timestamp())
    WHERE NOT EXISTS (SELECT FROM users u WHERE u.id = OLD.user_id)
          AND NOT EXISTS (SELECT FROM identities i WHERE i.provider = OLD.provider AND i.subject = OLD.subject)
    ON CONFLICT ON CONSTRAINT deleted_identities_pkey DO UPDATE SET deleted_at = excluded.deleted_at;
    RETURN NULL;
END $$;
CREATE TRIGGER identities_remember_deleted AFTER DELETE ON identities
FOR EACH ROW EXECUTE FUNCTION remember_deleted_identity();
