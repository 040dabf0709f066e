-- Messages that providers have sent about their accounts, such as Google's Cross-Account Protection. Each is applied once:
-- its id stays for longer than a message of its age is accepted (`src/provider_events/store.rs`).
CREATE TABLE provider_events (
    provider    text        COLLATE "C" NOT NULL,
    message_id  text        COLLATE "C" NOT NULL,
    received_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT provider_events_pkey PRIMARY KEY (provider, message_id)
);
CREATE INDEX provider_events_received_at_idx ON provider_events (received_at);
