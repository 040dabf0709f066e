-- Identities: what a user signs in with, a subject at a provider.
CREATE TABLE identities (
    id             uuid        CONSTRAINT identities_pkey PRIMARY KEY,
    user_id        uuid        NOT NULL
                               CONSTRAINT identities_user_id_fkey REFERENCES users ON DELETE CASCADE,
    provider       text        NOT NULL,
    subject        text        NOT NULL,
    email          text,
    email_verified boolean     NOT NULL DEFAULT false,
    name           text,
    picture        text,
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT identities_provider_subject_key UNIQUE (provider, subject),
    CONSTRAINT identities_subject_present CHECK (subject <> '')
);
CREATE INDEX identities_user_id_idx ON identities (user_id);
