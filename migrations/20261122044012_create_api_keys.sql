-- API keys of the product's backend. Each is known by the SHA-256 of its secret, so readers of the
-- database cannot use it. Revoking a key deletes its row, and frees its name; the events of its
-- addition and its revocation remain.
CREATE TABLE api_keys (
    id           uuid        CONSTRAINT api_keys_pkey PRIMARY KEY,
    -- Events name the actor `key:<name>`, which cannot be an e-mail address.
    name         text        COLLATE "C" NOT NULL CONSTRAINT api_keys_name_key UNIQUE
                             CONSTRAINT api_keys_name_form CHECK (name ~ '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$'),
    hash         bytea       NOT NULL CONSTRAINT api_keys_hash_key UNIQUE
                             CONSTRAINT api_keys_hash_length CHECK (octet_length(hash) = 32),
    role         text        NOT NULL CONSTRAINT api_keys_role_known CHECK (role IN ('reader', 'support', 'admin')),
    created_at   timestamptz NOT NULL DEFAULT now(),
    -- The member of staff or operator who added it.
    created_by   text        NOT NULL,
    expires_at   timestamptz,
    -- Written at most once a minute.
    last_used_at timestamptz
);
