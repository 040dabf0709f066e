-- Provider tokens, which providers issue with an identity and want revoked when it is gone (Apple,
-- technical note TN3194). A row belongs to (provider, subject), not to an identity's id: an
-- identity that was moved, or whose user was merged, gets a new id.
CREATE TABLE provider_tokens (
    id              uuid        CONSTRAINT provider_tokens_pkey PRIMARY KEY,
    provider        text        COLLATE "C" NOT NULL,
    subject         text        COLLATE "C" NOT NULL,
    -- The client that the token was issued to, with which alone it can be revoked.
    client_id       text        NOT NULL,
    -- code: an authorization code to exchange. kept: a token whose identity exists. due: a token to
    -- revoke.
    state           text        NOT NULL CONSTRAINT provider_tokens_state CHECK (state IN ('code', 'kept', 'due')),
    -- The code or the token, encrypted under `secret_key`.
    sealed          bytea       NOT NULL,
    -- True for an access token, which revokes nothing once it has expired.
    access          boolean     NOT NULL DEFAULT false,
    created_at      timestamptz NOT NULL DEFAULT now(),
    -- The time at which the identity was gone (`follow_departure()`).
    due_at          timestamptz,
    attempts        smallint    NOT NULL DEFAULT 0,
    -- Null for a token that is kept. Infinity for a parked token, which is counted with the waiting
    -- ones.
    next_attempt_at timestamptz,
    -- The time of the last attempt before the service gave up.
    parked_at       timestamptz,
    failure         text
);
CREATE INDEX provider_tokens_subject_idx ON provider_tokens (provider, subject);
-- Nearly all rows are kept.
CREATE INDEX provider_tokens_waiting_idx ON provider_tokens (provider, next_attempt_at) WHERE state <> 'kept';
