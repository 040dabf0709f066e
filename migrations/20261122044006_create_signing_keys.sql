-- Signing keys of access tokens. The private part is sealed (AES-256-GCM) with a key derived from
-- `secret_key`; all instances share the rows. The number is unique, so that only one of several
-- instances can create the next key.
CREATE TABLE signing_keys (
    kid                text        CONSTRAINT signing_keys_pkey PRIMARY KEY,
    number             integer     NOT NULL CONSTRAINT signing_keys_number_key UNIQUE,
    public_key         bytea       NOT NULL,
    sealed_private_key bytea       NOT NULL,
    created_at         timestamptz NOT NULL DEFAULT now(),
    signs_from         timestamptz NOT NULL DEFAULT now(),
    retired_at         timestamptz
);
