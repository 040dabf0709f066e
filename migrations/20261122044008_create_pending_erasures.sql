-- Traces of deleted users that are to be erased from events: the ids of users, and e-mail
-- addresses. The number of events has no limit, since anyone can claim an address, so a thousand
-- are changed at a time (`src/events/erase.sql`).
CREATE TABLE pending_erasures (
    -- The column of `events` that has the value: `user_id`, `email`, or `actor` of refused sign-ins
    -- to the admin pages.
    field        text        NOT NULL,
    value        text        NOT NULL,
    requested_at timestamptz NOT NULL,
    -- The progress: the last event.
    seen         uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    CONSTRAINT pending_erasures_pkey PRIMARY KEY (value, field, requested_at)
);
