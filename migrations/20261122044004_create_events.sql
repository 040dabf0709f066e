-- Events, for the audit. They have no foreign keys, so that they outlive the users. Ids are UUIDs of version 7 (RFC 9562
-- §5.7), so a range of ids is a range of time: the table is partitioned by them, and old events are deleted by
-- partition. The service creates partitions in advance (`src/store/partitions.rs`); `events_default` holds all other rows.
CREATE TABLE events (
    created_at timestamptz NOT NULL DEFAULT now(),
    id         uuid        CONSTRAINT events_pkey PRIMARY KEY,
    user_id    uuid,
    -- The session. It is null for the event of its sign-in, whose id is the session's id.
    session_id uuid,
    kind       text        NOT NULL,
    reason     text,
    provider   text,
    -- The e-mail that was claimed, searched for by staff, or of somebody who was merged into another user.
    email      text,
    ip         inet,
    user_agent text,
    request_id text,
    -- The e-mail address of the member of staff who caused the event, `key:<name>` for an API key, or null for the user.
    actor      text,
    detail     jsonb
) PARTITION BY RANGE (id);
CREATE TABLE events_default PARTITION OF events DEFAULT;
CREATE INDEX events_user_id_idx ON events (user_id, id) WHERE user_id IS NOT NULL;
-- For deletions, which look for the few merges among all events of a user.
CREATE INDEX events_merges_idx ON events (user_id) WHERE kind = 'users_merged';
CREATE INDEX events_email_idx ON events (email, id) WHERE email IS NOT NULL;
-- For the filters of the audit: by kind, by reason, by request, by one member of staff, by any member of staff. The events
-- of ordinary sign-ins are in none of them, because they are too frequent, and the primary key finds them.
CREATE INDEX events_kind_idx ON events (kind, id) WHERE kind NOT IN ('signed_in', 'user_created');
CREATE INDEX events_reason_idx ON events (reason, id) WHERE reason IS NOT NULL;
CREATE INDEX events_request_idx ON events (request_id) WHERE kind NOT IN ('signed_in', 'user_created');
CREATE INDEX events_actor_idx ON events (actor, id) WHERE actor IS NOT NULL;
CREATE INDEX events_staff_idx ON events (id) WHERE actor IS NOT NULL;
