-- Users who were deleted, until what their own events say of them is forgotten. Somebody may have any number of events,
-- so it is done a thousand at a time (`src/store/erase_user.sql`), and `seen` tells how far that has come.
CREATE TABLE users_to_forget (
    user_id      uuid        CONSTRAINT users_to_forget_pkey PRIMARY KEY,
    requested_at timestamptz NOT NULL,
    seen         uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000'
);
