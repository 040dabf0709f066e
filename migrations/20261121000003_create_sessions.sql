-- Sessions: one sign-in on one device. A session belongs to the identity it was opened with, and
-- through it to the user, so that unlinking the identity or deleting the user ends it.
--
-- `generation` numbers the one refresh token that is live. `parent_generation` is the token it was
-- given for: for some seconds after `parent_consumed_at`, that one is still good for another successor.
CREATE TABLE sessions (
    id                 uuid        CONSTRAINT sessions_pkey PRIMARY KEY,
    identity_id        uuid        NOT NULL
                                   CONSTRAINT sessions_identity_id_fkey REFERENCES identities ON DELETE CASCADE,
    generation         integer     NOT NULL DEFAULT 1,
    parent_generation  integer,
    parent_consumed_at timestamptz,
    created_at         timestamptz NOT NULL DEFAULT now(),
    last_used_at       timestamptz NOT NULL DEFAULT now(),
    ended_at           timestamptz,
    client_id          text        NOT NULL,
    ip                 inet,
    user_agent         text,
    device_name        text,
    device_platform    text,
    CONSTRAINT sessions_parent_older CHECK (parent_generation < generation),
    CONSTRAINT sessions_parent_consumed CHECK ((parent_generation IS NULL) = (parent_consumed_at IS NULL))
);
-- With the id, which grows with time, the newest of an identity's sessions come first.
CREATE INDEX sessions_identity_id_idx ON sessions (identity_id, id);
