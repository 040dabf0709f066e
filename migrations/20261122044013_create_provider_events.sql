-- Messages that providers have sent about their accounts, such as Google's Cross-Account
-- Protection, and their requests to delete data. Each is applied once: its id stays for longer than
-- a message of its age is accepted (`src/provider_events/store.rs`).
CREATE TABLE provider_events (
    provider    text        COLLATE "C" NOT NULL,
    message_id  text        COLLATE "C" NOT NULL,
    received_at timestamptz NOT NULL DEFAULT now(),
    -- The code under which the owner of data sees the outcome of a request to delete it. Neither
    -- the code nor the row identifies a person: the row names no account. The message's id is made
    -- of the signed request's hash, so the same request gets the same code.
    code        uuid        CONSTRAINT provider_events_code_key UNIQUE,
    -- Null until the request has been carried out, or refused.
    outcome     text        CONSTRAINT provider_events_outcome_known CHECK (outcome IN ('deleted', 'unlinked', 'kept')),
    CONSTRAINT provider_events_pkey PRIMARY KEY (provider, message_id)
);
CREATE INDEX provider_events_received_at_idx ON provider_events (received_at);
