-- Notes of staff on users, which go with their user.
CREATE TABLE notes (
    id         uuid        DEFAULT event_id() CONSTRAINT notes_pkey PRIMARY KEY,
    user_id    uuid        NOT NULL CONSTRAINT notes_user_id_fkey REFERENCES users ON DELETE CASCADE,
    -- The e-mail address of the member of staff.
    author     text        NOT NULL,
    text       text        NOT NULL,
    -- The address of a ticket in another system.
    ticket     text,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX notes_user_id_idx ON notes (user_id, id);

-- Gives one user's notes to another, and the addresses that the user has proven, and returns true.
-- The caller's lock keeps further ones away. Unlike a statement's own subquery, a function also
-- sees the rows that were committed while the statement waited for that lock.
CREATE FUNCTION move_notes(old_user uuid, new_user uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE notes SET user_id = new_user WHERE user_id = old_user;
    INSERT INTO former_addresses (user_id, email)
    SELECT new_user, email FROM former_addresses WHERE user_id = old_user
    UNION
    SELECT new_user, email FROM users WHERE id = old_user AND email_verified
    ON CONFLICT ON CONSTRAINT former_addresses_pkey DO NOTHING;
    RETURN true;
END $$;
