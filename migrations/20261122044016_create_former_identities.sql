-- The identities that have left their users, as far as the service remembers them.

-- Identities that were deleted with their user, or because their owner has asked the provider for
-- that. A token from before the deletion creates no user anew, nor is it linked. The hash and the
-- times are all that is kept, for 25 hours (`src/prune/store.rs`): no token is accepted that is
-- older than a day.
CREATE TABLE deleted_identities (
    hash         bytea       CONSTRAINT deleted_identities_pkey PRIMARY KEY,
    deleted_at   timestamptz NOT NULL,
    -- The time since which the provider has reported the account hijacked or disabled.
    suspended_at timestamptz
);
CREATE INDEX deleted_identities_deleted_at_idx ON deleted_identities (deleted_at);

-- Identities that were unlinked, moved by staff, or merged with their user into another: one row
-- for each time that an identity left a user. When a provider reports an account hijacked, the rows
-- tell whose it was, and who had access to that user before the hijacker could
-- (`src/provider_events/apply.sql`). They are deleted with the user who lives on.
CREATE TABLE former_identities (
    provider     text        COLLATE "C" NOT NULL,
    subject      text        COLLATE "C" NOT NULL,
    user_id      uuid        NOT NULL,
    joined_at    timestamptz NOT NULL,
    left_at      timestamptz NOT NULL DEFAULT now(),
    -- The time of the latest sign-in, if any.
    signed_in_at timestamptz,
    -- The time since which the provider has reported the account hijacked or disabled, and the time
    -- of its latest report about that.
    suspended_at     timestamptz,
    suspension_as_of timestamptz
);
CREATE INDEX former_identities_subject_idx ON former_identities (provider, subject);
CREATE INDEX former_identities_user_id_idx ON former_identities (user_id);
-- Users who were merged into others.
CREATE TABLE merged_users (
    id        uuid        CONSTRAINT merged_users_pkey PRIMARY KEY,
    into_id   uuid        NOT NULL,
    -- Equal to `joined_at` of the identities that came by the merge.
    merged_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX merged_users_into_id_idx ON merged_users (into_id);

-- A provider's name contains no blank, so the hash of two identities differs.
CREATE FUNCTION identity_hash(provider text, subject text) RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE
RETURN sha256(convert_to(provider || ' ' || subject, 'UTF8'));

-- Returns the reason for which a token of an unknown identity is refused, or null.
CREATE FUNCTION unknown_identity_refusal(name text, sub text, issued_at timestamptz) RETURNS text
LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
DECLARE
    gone deleted_identities;
BEGIN
    SELECT * INTO gone FROM deleted_identities WHERE hash = identity_hash(name, sub);
    RETURN CASE
        WHEN gone.suspended_at IS NOT NULL OR EXISTS (
            SELECT FROM former_identities f WHERE f.provider = name AND f.subject = sub AND f.suspended_at IS NOT NULL
        ) THEN 'identity_suspended'
        WHEN gone.deleted_at > issued_at THEN 'token_expired'
    END;
END $$;

-- Returns true if another person may have an account that the user has, or had until it was
-- unlinked: then no address links another identity to the user.
CREATE FUNCTION has_hijacked_identity(owner uuid) RETURNS boolean LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
BEGIN
    RETURN EXISTS (SELECT FROM identities WHERE user_id = owner AND hijacked) OR EXISTS (
        WITH RECURSIVE merged AS (
            SELECT owner AS id
            UNION
            SELECT u.id FROM merged_users u JOIN merged m ON u.into_id = m.id
        )
        SELECT FROM merged m JOIN former_identities f ON f.user_id = m.id WHERE f.suspended_at IS NOT NULL
    );
END $$;

-- Follows an identity that leaves its user: deletes its sessions, has its provider tokens revoked
-- if it is deleted, and remembers it. An identity that moves to another user gets another id: a
-- sign-in under way that read it as the first user's cannot open its session, and runs again.
CREATE FUNCTION follow_departure() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    seen_on      date;
    signed_in_at timestamptz;
BEGIN
    PERFORM pg_advisory_xact_lock(1936028531, uuid_hash(OLD.id) & 4095);
    WITH ended AS (
        DELETE FROM sessions WHERE identity_id = OLD.id RETURNING rotated_at, created_at
    )
    SELECT max(rotated_at)::date, greatest(OLD.signed_in_at, max(created_at)) INTO seen_on, signed_in_at FROM ended;
    UPDATE users u SET seen_noted_on = seen_on WHERE u.id = OLD.user_id AND u.seen_noted_on < seen_on;
    IF TG_OP = 'DELETE' THEN
        UPDATE provider_tokens t
        SET state = 'due', due_at = now(), next_attempt_at = now(), attempts = 0, failure = NULL
        WHERE t.provider = OLD.provider AND t.subject = OLD.subject AND t.state = 'kept';
        -- A token's `iat` has whole seconds, and a token from the second of the deletion may belong
        -- to a person who comes back at once. So the time of the deletion has whole seconds, too.
        IF NOT EXISTS (SELECT FROM users u WHERE u.id = OLD.user_id) THEN
            INSERT INTO deleted_identities (hash, deleted_at)
            VALUES (identity_hash(OLD.provider, OLD.subject), date_trunc('second', clock_timestamp()))
            ON CONFLICT ON CONSTRAINT deleted_identities_pkey DO UPDATE SET deleted_at = excluded.deleted_at;
            RETURN NULL;
        END IF;
    END IF;
    INSERT INTO former_identities (provider, subject, user_id, joined_at, signed_in_at, suspended_at, suspension_as_of)
    SELECT OLD.provider, OLD.subject, OLD.user_id, OLD.joined_at, signed_in_at,
           CASE WHEN OLD.hijacked THEN OLD.reported_at END, OLD.suspension_as_of
    -- The owner has asked for its deletion (`src/provider_events/data_deletion/unlink.sql`).
    WHERE NOT EXISTS (
        SELECT FROM deleted_identities d
        WHERE d.hash = identity_hash(OLD.provider, OLD.subject) AND d.deleted_at >= date_trunc('second', now())
    );
    RETURN NULL;
END $$;
-- Triggers fire in the order of their names. This one must be the first: code that ends sessions
-- locks them first.
CREATE TRIGGER identities_follow_departure AFTER DELETE OR UPDATE OF id ON identities
FOR EACH ROW EXECUTE FUNCTION follow_departure();

-- Deletes the former identities of a deleted user and of the users merged into this one, and the
-- records of these merges.
CREATE FUNCTION forget_former_identities() RETURNS trigger LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    IF EXISTS (SELECT FROM merged_users WHERE id = OLD.id) THEN
        RETURN NULL;
    END IF;
    WITH RECURSIVE deleted AS (
        SELECT OLD.id
        UNION
        SELECT m.id FROM merged_users m JOIN deleted d ON m.into_id = d.id
    ),
    former AS (
        DELETE FROM former_identities WHERE user_id IN (SELECT id FROM deleted)
    )
    DELETE FROM merged_users WHERE id IN (SELECT id FROM deleted);
    RETURN NULL;
END $$;
CREATE TRIGGER users_forget_former_identities AFTER DELETE ON users
FOR EACH ROW EXECUTE FUNCTION forget_former_identities();
