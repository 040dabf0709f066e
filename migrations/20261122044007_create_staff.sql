-- Staff: who may use the admin pages. Nobody becomes staff by signing in on the API.
CREATE TABLE staff (
    id           uuid        CONSTRAINT staff_pkey PRIMARY KEY,
    email        text        NOT NULL CONSTRAINT staff_email_folded CHECK (email = lower(email COLLATE "C")),
    role         text        NOT NULL CONSTRAINT staff_role_known CHECK (role IN ('support', 'admin')),
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_seen_at timestamptz,
    -- The zone in which they read times, by its name in the IANA database; where there is none, the browser's.
    time_zone    text,
    -- Who they are at the identity provider: pinned at their first sign-in, so that nobody else gets in by an e-mail
    -- that changed hands. Unknown until then, and after a reset.
    provider     text        COLLATE "C",
    subject      text        COLLATE "C",
    CONSTRAINT staff_email_key UNIQUE (email),
    CONSTRAINT staff_identity_whole CHECK ((provider IS NULL) = (subject IS NULL))
);
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
-- Staff sign-ins under way: what the answer of the identity provider must match, for ten minutes and once.
-- `browser_hash` binds it to the browser that began.
CREATE TABLE staff_sign_ins (
    state_hash    bytea       CONSTRAINT staff_sign_ins_pkey PRIMARY KEY,
    browser_hash  bytea       NOT NULL,
    nonce         text        NOT NULL,
    code_verifier text        NOT NULL,
    next          text        NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX staff_sign_ins_created_at_idx ON staff_sign_ins (created_at);
