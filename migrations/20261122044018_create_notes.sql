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

-- Gives one user's notes to another, and returns true. The caller's lock keeps further notes away. Unlike a statement's own
-- subquery, a function also sees the notes that were committed while the statement waited for that lock.
CREATE FUNCTION move_notes(old_user uuid, new_user uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE notes SET user_id = new_user WHERE user_id = old_user;
    RETURN true;
END $$;
