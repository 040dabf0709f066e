-- Staff sessions, by the SHA-256 of the cookie.
CREATE TABLE staff_sessions (
    hash         bytea       CONSTRAINT staff_sessions_pkey PRIMARY KEY,
    staff_id     uuid        NOT NULL CONSTRAINT staff_sessions_staff_id_fkey REFERENCES staff ON DELETE CASCADE,
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_used_at timestamptz NOT NULL DEFAULT now(),
    ip           inet,
    user_agent   text
);
CREATE INDEX staff_sessions_staff_id_idx ON staff_sessions (staff_id);
