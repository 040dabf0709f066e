-- Deleted users whose personal data is to be erased from their events. The number of events has no limit, so a thousand
-- are changed at a time (`src/store/erase_user.sql`); `seen` is the progress.
CREATE TABLE users_to_forget (
    user_id      uuid        CONSTRAINT users_to_forget_pkey PRIMARY KEY,
    requested_at timestamptz NOT NULL,
    seen         uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000'
);
