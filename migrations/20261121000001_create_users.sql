-- Users: one row a person. The address is stored ASCII case-folded, so equality is identity, and
-- its collation makes a prefix a range of the index.
CREATE TABLE users (
    id             uuid        CONSTRAINT users_pkey PRIMARY KEY,
    email          text        COLLATE "C"
                               CONSTRAINT users_email_folded CHECK (email = lower(email)),
    email_verified boolean     NOT NULL DEFAULT false,
    name           text,
    picture        text,
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now(),
    disabled_at    timestamptz,
    CONSTRAINT users_email_key UNIQUE (email),
    CONSTRAINT users_email_present CHECK (email <> ''),
    CONSTRAINT users_email_verified_present CHECK (email IS NOT NULL OR NOT email_verified)
);
