-- Events: what happened, kept apart from whom it happened to, so that it outlives them. Ids are UUIDs of version 7
-- (RFC 9562 §5.7), so a range of ids is a range of time: the table is partitioned by them, and what is too old goes a
-- partition at a time. The service makes partitions ahead (`src/store/partitions.rs`); what fits into none of them is in
-- `events_default`.
CREATE TABLE events (
    created_at timestamptz NOT NULL DEFAULT now(),
    id         uuid        CONSTRAINT events_pkey PRIMARY KEY,
    user_id    uuid,
    -- The session concerned. Where the event is its beginning, the two have one id, and it is not repeated here.
    session_id uuid,
    kind       text        NOT NULL,
    reason     text,
    provider   text,
    email      text,
    ip         inet,
    user_agent text,
    request_id text,
    -- Who did it, where it was not the user: the e-mail of a member of staff.
    actor      text,
    detail     jsonb
) PARTITION BY RANGE (id);
CREATE TABLE events_default PARTITION OF events DEFAULT;
CREATE INDEX events_user_id_idx ON events (user_id, id) WHERE user_id IS NOT NULL;
-- Who was merged into whom, few among all events of a user: a deletion asks for it.
CREATE INDEX events_merges_idx ON events (user_id) WHERE kind = 'users_merged';
CREATE INDEX events_email_idx ON events (email, id) WHERE email IS NOT NULL;
-- For the audit: the latest of one kind, of one reason, by one member of staff, by any. What happens at every sign-in is
-- in none of them: it is written too often, and found by the primary key.
CREATE INDEX events_kind_idx ON events (kind, id) WHERE kind NOT IN ('signed_in', 'user_created');
CREATE INDEX events_reason_idx ON events (reason, id) WHERE reason IS NOT NULL;
CREATE INDEX events_actor_idx ON events (actor, id) WHERE actor IS NOT NULL;
CREATE INDEX events_staff_idx ON events (id) WHERE actor IS NOT NULL;
-- What staff searched for where it may be an e-mail, plain or as it stands in a query: few among all events, and read
-- through when somebody is deleted.
CREATE INDEX events_searches_idx ON events (id) WHERE detail->>'search' ~ '@|%40';
