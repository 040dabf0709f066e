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

-- Whatever deletes an identity, its provider tokens are revoked, and if it goes with its user, it is remembered. A token's `iat` has
-- whole seconds, and one from the second of the deletion may be that of a person who comes back at once, so the time has whole
-- seconds, too.
CREATE FUNCTION follow_deletion() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    UPDATE provider_tokens t
    SET state = 'due', due_at = now(), next_attempt_at = now(), attempts = 0, failure = NULL
    WHERE t.provider = OLD.provider AND t.subject = OLD.subject AND t.state = 'kept';
    INSERT INTO deleted_identities (hash, deleted_at)
    SELECT identity_hash(OLD.provider, OLD.subject), date_trunc('second', clock_timestamp())
    WHERE NOT EXISTS (SELECT FROM users u WHERE u.id = OLD.user_id)
    ON CONFLICT ON CONSTRAINT deleted_identities_pkey DO UPDATE SET deleted_at = excluded.deleted_at;
    RETURN NULL;
END $$;
CREATE TRIGGER identities_follow_deletion AFTER DELETE ON identities
FOR EACH ROW EXECUTE FUNCTION follow_deletion();
