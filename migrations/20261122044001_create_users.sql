-- Users: one row a person. The e-mail is stored ASCII case-folded, so equality is identity, and its collation makes a
-- prefix a range of the index. It is `email_verified` when a provider proved it whose link policy counts.
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
    -- When they last came back. A day on purpose: it costs a returning user one write a day.
    last_seen_on   date,
    -- When an import last wrote the user. With `updated_at` and `last_seen_on` it tells whether they are still as the
    -- import left them: only then may it add to them.
    imported_at    timestamptz,
    CONSTRAINT users_email_key UNIQUE (email),
    CONSTRAINT users_email_present CHECK (email <> ''),
    CONSTRAINT users_email_verified_present CHECK (email IS NOT NULL OR NOT email_verified)
);
-- For the list of users: each order that it can be read in is an index with the id behind, so that a page begins where
-- the one before ended. By e-mail is there already, `users_email_key`.
CREATE INDEX users_name_id_idx ON users (lower(name) COLLATE "C", id);
CREATE INDEX users_last_seen_on_idx ON users (last_seen_on DESC NULLS LAST, id DESC);
-- The few who would otherwise be looked for among everybody. A sign-in that creates an ordinary user writes none.
CREATE INDEX users_disabled_idx ON users (id) WHERE disabled_at IS NOT NULL;
CREATE INDEX users_unverified_idx ON users (id) WHERE NOT email_verified AND email IS NOT NULL;
CREATE INDEX users_without_email_idx ON users (email, id) WHERE email IS NULL;
