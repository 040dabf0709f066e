-- Sessions: one row for each sign-in on a device. A session belongs to the identity it was opened
-- with and through it to the user, so the session is deleted when the identity is unlinked or
-- moves, or the user is merged or deleted. The event of its sign-in has the same id, and keeps the
-- request's IP address, user agent and request id.
--
-- Secrets are stored as the first 128 bits of their SHA-256, which is the length of the shortest
-- secret. All refresh tokens of a session share the family secret, and each has a secret of its
-- own. `token_hash` belongs to the live token, which was issued at `rotated_at`. Its parent is
-- recognised by deriving its successor; if the parent got a second successor, because the response
-- with the first was lost, `parent_hash` is the parent's hash. `rotated_from` identifies the client
-- that exchanged the parent: 16 bits of a hash of the IP address, and 16 bits of a hash of the user
-- agent, which are enough to tell two clients apart and too few to find an address. It is 0 before
-- the first exchange, and once a repeat by another client is recorded. `jkt` is the thumbprint of
-- the key that the session is bound to (RFC 9449), if any.
-- `used_before` is the time of the last refresh, or of the sign-in, in an hour before the hour of
-- `rotated_at`. Users are shown the last use up to the end of the hour before, so that a thief who
-- polls does not see when the owner refreshes.
-- A refresh changes no indexed column and no length, so that it can be a heap-only update.
CREATE TABLE sessions (
    created_at      timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz NOT NULL,
    rotated_at      timestamptz NOT NULL DEFAULT now(),
    used_before     timestamptz NOT NULL DEFAULT now(),
    ended_at        timestamptz,
    id              uuid        CONSTRAINT sessions_pkey PRIMARY KEY,
    identity_id     uuid        NOT NULL,
    rotated_from    integer     NOT NULL DEFAULT 0,
    family_hash     bytea       NOT NULL CONSTRAINT sessions_family_hash_length CHECK (octet_length(family_hash) = 16),
    token_hash      bytea       NOT NULL CONSTRAINT sessions_token_hash_length CHECK (octet_length(token_hash) = 16),
    parent_hash     bytea       CONSTRAINT sessions_parent_hash_length CHECK (octet_length(parent_hash) = 16),
    jkt             bytea       CONSTRAINT sessions_jkt_length CHECK (octet_length(jkt) = 32),
    client_id       text        NOT NULL,
    device_name     text,
    device_platform text
) WITH (fillfactor = 95);
CREATE INDEX sessions_identity_id_idx ON sessions (identity_id);
-- Sessions that have not ended, with their users. A session may have been opened at the moment at
-- which a provider's report suspended the identity, or ended its sessions: then its time decides.
CREATE VIEW live_sessions AS
SELECT s.id, s.created_at, s.identity_id, i.user_id
FROM sessions s JOIN identities i ON i.id = s.identity_id
WHERE s.ended_at IS NULL AND i.suspended_at IS NULL AND (i.tokens_from <= s.created_at OR i.tokens_from IS NULL);

-- Checks that the identity of a session exists. A foreign key would do so, too, but its lock is
-- written into the identity's row, and the cold page of a random identity is two thirds of what a
-- sign-in writes. This lock is in memory: sign-ins share it, and a transaction that deletes the
-- identity takes it alone. So a sign-in either finds the identity gone, or has committed before the
-- deletion looks for sessions: in READ COMMITTED, each statement of a function sees what was
-- committed while the one before it waited. There are 4,096 locks, which bounds the memory, however
-- many identities are deleted at once.
CREATE FUNCTION check_session_identity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(1936028531, uuid_hash(NEW.identity_id) & 4095);
    PERFORM FROM identities WHERE id = NEW.identity_id;
    IF NOT FOUND THEN
        RAISE foreign_key_violation
            USING MESSAGE = 'the identity of the session is gone', CONSTRAINT = 'sessions_identity_id_fkey';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER sessions_check_identity AFTER INSERT OR UPDATE OF identity_id ON sessions
FOR EACH ROW EXECUTE FUNCTION check_session_identity();

-- Notes the time of an identity's latest sign-in when the session of that sign-in is deleted. It
-- waits for no identity: the clean-up deletes sessions, and everything else locks the user and the
-- identity before the sessions.
CREATE FUNCTION note_sign_in() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    WITH last AS MATERIALIZED (
        SELECT identity_id, max(created_at) AS at FROM deleted GROUP BY identity_id
    ),
    noted AS MATERIALIZED (
        SELECT i.id, l.at FROM last l JOIN identities i ON i.id = l.identity_id
        WHERE (i.signed_in_at < l.at OR i.signed_in_at IS NULL)
              AND NOT EXISTS (SELECT FROM sessions s WHERE s.identity_id = i.id AND s.created_at > l.at)
        FOR NO KEY UPDATE OF i SKIP LOCKED
    )
    UPDATE identities i SET signed_in_at = n.at FROM noted n WHERE i.id = n.id;
    RETURN NULL;
END $$;
CREATE TRIGGER sessions_note_sign_in AFTER DELETE ON sessions REFERENCING OLD TABLE AS deleted
FOR EACH STATEMENT EXECUTE FUNCTION note_sign_in();
