-- Identities: the accounts at providers with which users sign in. Provider and subject are compared
-- byte by byte: their indexes do not depend on the system's collations, and a look-up takes a third
-- of the time.
CREATE TABLE identities (
    id             uuid        CONSTRAINT identities_pkey PRIMARY KEY,
    user_id        uuid        NOT NULL
                               CONSTRAINT identities_user_id_fkey REFERENCES users ON DELETE CASCADE,
    provider       text        COLLATE "C" NOT NULL,
    subject        text        COLLATE "C" NOT NULL,
    email          text,
    -- True if the latest token with an address proves it: the provider verified it, and its link
    -- policy lets that count.
    email_verified boolean     NOT NULL DEFAULT false,
    name           text,
    picture        text,
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now(),
    -- The time since which the user has it.
    joined_at      timestamptz NOT NULL DEFAULT now(),
    -- The time of its latest sign-in whose session is deleted, if no session of a later sign-in is
    -- left (`note_sign_in()`).
    signed_in_at   timestamptz,
    -- The time since which its provider has reported the account hijacked, disabled or deleted, and
    -- the provider's reason.
    reported_at      timestamptz,
    reported_reason  text,
    -- The time since which it is held: it came to the user while another person may have had a
    -- hijacked account.
    held_at          timestamptz,
    -- The time since which it must not sign in, and the reason: the provider's reason, or `held`.
    suspended_at     timestamptz GENERATED ALWAYS AS (coalesce(reported_at, held_at)) STORED,
    suspended_reason text        GENERATED ALWAYS AS
        (CASE WHEN reported_at IS NOT NULL THEN reported_reason WHEN held_at IS NOT NULL THEN 'held' END) STORED,
    -- True if it is suspended for another reason than the account's deletion: another person may
    -- control it.
    hijacked         boolean     NOT NULL GENERATED ALWAYS AS
        (CASE WHEN reported_at IS NULL THEN held_at IS NOT NULL
              ELSE coalesce(reported_reason, '') NOT IN ('account_purged', 'account_deleted') END) STORED,
    -- The time of the latest report that suspended it or lifted the suspension. Older reports
    -- change neither.
    suspension_as_of timestamptz,
    -- Tokens that were issued earlier do not count: the provider has ended the account's sessions
    -- since.
    tokens_from      timestamptz,
    CONSTRAINT identities_provider_subject_key UNIQUE (provider, subject),
    CONSTRAINT identities_subject_present CHECK (subject <> '')
);
-- For the warning to staff.
CREATE INDEX identities_held_idx ON identities (user_id) WHERE held_at IS NOT NULL;
CREATE INDEX identities_suspended_idx ON identities (user_id) WHERE suspended_at IS NOT NULL;
CREATE INDEX identities_user_id_idx ON identities (user_id);
-- For the list of a provider's users by age. Without it, finding the users of a provider that was
-- disabled years ago means reading all newer users.
CREATE INDEX identities_provider_user_id_idx ON identities (provider, user_id);
-- For the search for identities by e-mail address, which may differ from the user's address.
CREATE INDEX identities_email_idx ON identities (lower(email COLLATE "C")) WHERE email IS NOT NULL;
-- The words by which staff search. They are written when a user signs up and when a provider
-- changes the user's data. The words of some thousand users are added at once, which takes less
-- time than one by one. A search also reads the words that wait to be added.
CREATE INDEX identities_words_idx ON identities USING gin (search_words(search_fold(name), search_fold(split_part(email, '@', 1))))
WITH (gin_pending_list_limit = 128);
