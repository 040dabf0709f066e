-- Members of staff, who may use the admin pages. A sign-in on the API never creates one.
CREATE TABLE staff (
    id           uuid        CONSTRAINT staff_pkey PRIMARY KEY,
    email        text        NOT NULL CONSTRAINT staff_email_folded CHECK (email = lower(email COLLATE "C")),
    role         text        NOT NULL CONSTRAINT staff_role_known CHECK (role IN ('support', 'admin')),
    -- May take users and events away as files. Admins may anyhow.
    may_export   boolean     NOT NULL DEFAULT false,
    -- When access ends by itself.
    ends_at      timestamptz,
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_seen_at timestamptz,
    -- The time zone for the pages, as an IANA name; the browser's time zone if null.
    time_zone    text,
    -- The identity at the provider, set by the first sign-in, so that a later owner of the e-mail
    -- address is refused. Null before the first sign-in and after a reset.
    provider     text        COLLATE "C",
    subject      text        COLLATE "C",
    -- As for identities: the provider's reports about this one.
    suspended_at     timestamptz,
    suspension_as_of timestamptz,
    -- The account that was suspended when the member was reset, and since when. It is refused until
    -- it is enabled.
    barred_provider text        COLLATE "C",
    barred_subject  text        COLLATE "C",
    barred_at       timestamptz,
    CONSTRAINT staff_email_key UNIQUE (email),
    CONSTRAINT staff_identity_whole CHECK ((provider IS NULL) = (subject IS NULL))
);
-- The members of staff: their access has not ended, and their identity is not suspended. Every
-- check whether a person is a member of staff reads this view.
CREATE VIEW current_staff AS SELECT * FROM staff WHERE (ends_at IS NULL OR ends_at > now()) AND suspended_at IS NULL;
-- Returns false if a member of staff or an API key lacks the role that the change needs. They may
-- lose it between the guard's check and the last byte of a body, so each statement checks it. Their
-- row stays locked until the change is committed. The row of a key is locked against its revocation
-- only, since each use may write it.
CREATE FUNCTION author_allowed(who author) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF who.key_id IS NULL THEN
        PERFORM FROM current_staff WHERE email = who.actor AND who.needs IN (role, 'support') FOR SHARE;
    ELSE
        PERFORM FROM api_keys
        WHERE id = who.key_id AND role IN (who.needs, 'admin') AND (expires_at IS NULL OR expires_at > now())
        FOR KEY SHARE;
    END IF;
    RETURN FOUND OR who.needs IS NULL;
END $$;
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
-- Pending sign-ins of staff, which the provider's response must match. Each is valid once and for
-- ten minutes, and `browser_hash` binds it to the browser that started it.
CREATE TABLE staff_sign_ins (
    state_hash    bytea       CONSTRAINT staff_sign_ins_pkey PRIMARY KEY,
    browser_hash  bytea       NOT NULL,
    nonce         text        NOT NULL,
    code_verifier text        NOT NULL,
    next          text        NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX staff_sign_ins_created_at_idx ON staff_sign_ins (created_at);
