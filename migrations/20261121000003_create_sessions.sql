-- Sessions: one sign-in on one device. A session belongs to the identity it was opened with, and
-- through it to the user, so that unlinking the identity or deleting the user ends it.
CREATE TABLE sessions (
    id              uuid        CONSTRAINT sessions_pkey PRIMARY KEY,
    identity_id     uuid        NOT NULL
                                CONSTRAINT sessions_identity_id_fkey REFERENCES identities ON DELETE CASCADE,
    created_at      timestamptz NOT NULL DEFAULT now(),
    last_used_at    timestamptz NOT NULL DEFAULT now(),
    ended_at        timestamptz,
    client_id       text        NOT NULL,
    ip              inet,
    user_agent      text,
    device_name     text,
    device_platform text
);
CREATE INDEX sessions_identity_id_idx ON sessions (identity_id);
