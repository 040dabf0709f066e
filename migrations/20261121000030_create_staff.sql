-- Staff: who may use the admin pages. Nobody becomes staff by signing in; the address is what an
-- identity provider must vouch for.
CREATE TABLE staff (
    id           uuid        CONSTRAINT staff_pkey PRIMARY KEY,
    email        text        NOT NULL CONSTRAINT staff_email_folded CHECK (email = lower(email COLLATE "C")),
    role         text        NOT NULL CONSTRAINT staff_role_known CHECK (role IN ('support', 'admin')),
    created_at   timestamptz NOT NULL DEFAULT now(),
    last_seen_at timestamptz,
    CONSTRAINT staff_email_key UNIQUE (email)
);
