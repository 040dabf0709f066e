-- Users. The e-mail address is stored in ASCII lower case, so equal addresses are equal texts, and
-- its collation lets the index find prefixes. It is verified while one of the user's identities
-- says so (`identities.email_verified`), or while the product's backend or an import vouches for it
-- (`email_vouched`). A statement that gains a proof sets `email_verified`; `withdraw_proof()` takes
-- it back, whatever ended the proof.
CREATE TABLE users (
    id             uuid        CONSTRAINT users_pkey PRIMARY KEY,
    email          text        COLLATE "C"
                               CONSTRAINT users_email_folded CHECK (email = lower(email)),
    email_verified boolean     NOT NULL DEFAULT false,
    email_vouched  boolean     NOT NULL DEFAULT false,
    name           text,
    picture        text,
    created_at     timestamptz NOT NULL DEFAULT now(),
    updated_at     timestamptz NOT NULL DEFAULT now(),
    disabled_at    timestamptz,
    -- A day on which the user was seen, at most 34 days before the last one: a sign-in or refresh
    -- notes its day once the noted one is 35 days old. The last day is the day of the session used
    -- last (`sessions.rotated_at`), which each visit writes anyway; it is noted when that session
    -- is deleted. To write this row costs up to 23 kB of WAL.
    seen_noted_on date,
    -- The time of the last write by an import, or of the creation by the admin API. With
    -- `updated_at` and `seen_noted_on` it shows whether the user is still unchanged, because an
    -- import adds only to unchanged users.
    imported_at    timestamptz,
    -- The claims that the product's backend sets for the user's access tokens, as the members of
    -- one object. The limit of 1,000 bytes applies to the text that was sent; the stored text has
    -- blanks between the members.
    claims         jsonb       CONSTRAINT users_claims_object CHECK (jsonb_typeof(claims) = 'object'),
    -- The name as it is searched and ordered. It is stored, since a list compares thousands.
    folded_name    text        COLLATE "C" GENERATED ALWAYS AS (search_fold(name)) STORED,
    -- True if the name is the user's own word, which no provider overwrites.
    own_name       boolean     NOT NULL DEFAULT false,
    CONSTRAINT users_email_key UNIQUE (email),
    CONSTRAINT users_email_present CHECK (email <> ''),
    CONSTRAINT users_email_verified_present CHECK (email IS NOT NULL OR NOT email_verified),
    CONSTRAINT users_email_vouched_verified CHECK (email_verified OR NOT email_vouched),
    CONSTRAINT users_own_name_present CHECK (name IS NOT NULL OR NOT own_name)
);
-- For the list of users: each sort order has an index that ends with the id, so that a page can
-- start after the previous one. For the order by e-mail address, this is `users_email_key`.
CREATE INDEX users_name_id_idx ON users (folded_name, id);
CREATE INDEX users_seen_noted_on_idx ON users (seen_noted_on DESC NULLS LAST, id DESC);
-- For rare filters, which would otherwise read all users. A sign-in that creates a typical user
-- writes to none of these indexes.
CREATE INDEX users_disabled_idx ON users (id) WHERE disabled_at IS NOT NULL;
CREATE INDEX users_unverified_idx ON users (id) WHERE NOT email_verified AND email IS NOT NULL;
CREATE INDEX users_without_email_idx ON users (email, id) WHERE email IS NULL;
-- The words of imported users who have not signed in. All others are found by the words of their
-- identities: a user's row changes at a visit every 35 days, which costs an entry in each index
-- that contains the user.
CREATE INDEX users_waiting_words_idx ON users USING gin (search_words(folded_name, search_fold(split_part(email, '@', 1))))
WHERE seen_noted_on IS NULL;
-- The words of names that users chose, which no identity has.
CREATE INDEX users_own_words_idx ON users USING gin (search_words(folded_name, search_fold(split_part(email, '@', 1))))
WHERE own_name;
