-- Events, for the audit. They have no foreign keys, so that they outlive the users. Ids are UUIDs
-- of version 7 (RFC 9562 §5.7), so a range of ids is a range of time: the table is partitioned by
-- them, and old events are deleted by partition. The service creates partitions in advance
-- (`src/events/partitions.rs`); `events_default` holds all other rows.
--
-- A statement that waits for a user's row draws the id of its event afterwards, by this default. So
-- a reader of the events of one user's changes reads them in the order of their commits. The twelve
-- bits after the milliseconds are a fraction of a millisecond (RFC 9562 §6.2, method 3).
CREATE FUNCTION event_id() RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    micros bigint := extract(epoch FROM clock_timestamp()) * 1000000;
BEGIN
    RETURN (lpad(to_hex(micros / 1000), 12, '0') || '7' || lpad(to_hex(micros % 1000 * 4096 / 1000), 3, '0')
            || substr(replace(gen_random_uuid()::text, '-', ''), 17))::uuid;
END $$;
CREATE TABLE events (
    created_at timestamptz NOT NULL DEFAULT now(),
    id         uuid        DEFAULT event_id() CONSTRAINT events_pkey PRIMARY KEY,
    user_id    uuid,
    -- The session. It is null for the event of its sign-in, whose id is the session's id.
    session_id uuid,
    kind       text        NOT NULL,
    reason     text,
    provider   text,
    -- The e-mail address that was claimed, that staff searched for, or that a merged user had.
    email      text,
    ip         inet,
    user_agent text,
    request_id text,
    -- The actor: the e-mail address of a member of staff, `key:<name>`, `provider:<name>`, `the
    -- command line`, or null for the user.
    actor      text,
    detail     jsonb
) PARTITION BY RANGE (id);
CREATE TABLE events_default PARTITION OF events DEFAULT;
CREATE INDEX events_user_id_idx ON events (user_id, id) WHERE user_id IS NOT NULL;
-- For deletions, which look for the few merges among all events of a user.
CREATE INDEX events_merges_idx ON events (user_id) WHERE kind = 'users_merged';
CREATE INDEX events_email_idx ON events (email, id) WHERE email IS NOT NULL;
-- For the filters of the audit: by kind, by reason, by request, by one member of staff, by any
-- member of staff. The indexes leave out the events of ordinary sign-ins, because they are too
-- frequent, and the primary key finds them.
CREATE INDEX events_kind_idx ON events (kind, id) WHERE kind NOT IN ('signed_in', 'user_created');
CREATE INDEX events_reason_idx ON events (reason, id) WHERE reason IS NOT NULL;
CREATE INDEX events_request_idx ON events (request_id) WHERE kind NOT IN ('signed_in', 'user_created');
CREATE INDEX events_actor_idx ON events (actor, id) WHERE actor IS NOT NULL;
CREATE INDEX events_staff_idx ON events (id) WHERE actor IS NOT NULL;

-- The author of a change (`src/events/author.rs`): the actor as above, with the reason; the origin
-- of the request; the role that a member of staff or an API key needs for it; and the key's id,
-- since another key may get its name. Instances of two releases send it, so it stays as it is, and
-- a new value becomes another parameter.
CREATE TYPE author AS (
    actor text, reason text, ip inet, user_agent text, request_id text, needs text, key_id uuid
);
-- The first columns of an event, which statements insert. A column that is added later gets its
-- default.
CREATE TYPE new_event AS (
    created_at timestamptz, id uuid, user_id uuid, session_id uuid, kind text, reason text, provider text, email text, ip inet,
    user_agent text, request_id text, actor text, detail jsonb
);
-- Returns the event of a change.
CREATE FUNCTION event_row(
    who author, kind text, user_id uuid DEFAULT NULL, provider text DEFAULT NULL, session_id uuid DEFAULT NULL,
    reason text DEFAULT NULL, email text DEFAULT NULL, detail jsonb DEFAULT '{}'
) RETURNS new_event LANGUAGE sql AS $$
    SELECT now(), event_id(), user_id, session_id, kind, reason, provider, email, who.ip, who.user_agent, who.request_id, who.actor,
           nullif(detail || jsonb_strip_nulls(jsonb_build_object('reason', who.reason)), '{}')
$$;
-- Returns the fields by which a user differs from before, for the event `user_updated`.
CREATE FUNCTION changed_fields(before jsonb, after jsonb) RETURNS text[] LANGUAGE sql IMMUTABLE
RETURN ARRAY(SELECT field FROM unnest(ARRAY['email', 'email_verified', 'name', 'picture']) AS field
             WHERE before->field <> after->field);

-- Withdraws the verification of a user's address, if the identity that proved it is gone, belongs
-- to another user or has another address now, and nothing else proves it. It runs at the end of the
-- statement. The lock lets changes to two identities of one user go one after the other: the second
-- transaction sees what the first one has left.
CREATE FUNCTION withdraw_proof() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM users WHERE id = OLD.user_id FOR NO KEY UPDATE;
    UPDATE users u SET email_verified = false, updated_at = now()
    WHERE u.id = OLD.user_id AND u.email_verified AND NOT u.email_vouched AND u.email = lower(OLD.email COLLATE "C")
          AND NOT EXISTS (
              SELECT FROM identities i
              WHERE i.user_id = u.id AND i.email_verified AND lower(i.email COLLATE "C") = u.email
          );
    IF FOUND THEN
        INSERT INTO events (kind, reason, provider, user_id, detail)
        VALUES ('user_updated', 'proof_gone', OLD.provider, OLD.user_id,
                jsonb_build_object('fields', ARRAY['email_verified']));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER identities_withdraw_proof AFTER DELETE ON identities
FOR EACH ROW WHEN (OLD.email_verified)
EXECUTE FUNCTION withdraw_proof();
CREATE TRIGGER identities_withdraw_changed_proof AFTER UPDATE OF email, email_verified, user_id ON identities
FOR EACH ROW WHEN (OLD.email_verified AND (NOT NEW.email_verified OR NEW.user_id <> OLD.user_id
                                           OR lower(NEW.email COLLATE "C") <> lower(OLD.email COLLATE "C")))
EXECUTE FUNCTION withdraw_proof();
