-- Refresh tokens, by their SHA-256. A session's tokens are numbered; the number is the race's
-- referee, since no two tokens can be the successor of one. Consumed tokens stay until they expire,
-- so that a replay is recognised.
CREATE TABLE refresh_tokens (
    hash        bytea       CONSTRAINT refresh_tokens_pkey PRIMARY KEY,
    session_id  uuid        NOT NULL
                            CONSTRAINT refresh_tokens_session_id_fkey REFERENCES sessions ON DELETE CASCADE,
    generation  integer     NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    expires_at  timestamptz NOT NULL,
    consumed_at timestamptz,
    CONSTRAINT refresh_tokens_session_id_generation_key UNIQUE (session_id, generation),
    CONSTRAINT refresh_tokens_hash_length CHECK (octet_length(hash) = 32)
);
-- For pruning, oldest first.
CREATE INDEX refresh_tokens_expires_at_idx ON refresh_tokens (expires_at);
