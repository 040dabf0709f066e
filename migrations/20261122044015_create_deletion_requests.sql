-- Requests of providers to delete what came from them, each with the code under which its owner sees what became of it. The
-- code says nothing of anybody, and neither does the row: it names no account. It lives as long as `provider_events`.
CREATE TABLE deletion_requests (
    code        uuid        CONSTRAINT deletion_requests_pkey PRIMARY KEY,
    provider    text        COLLATE "C" NOT NULL,
    -- The hash of the signed request. The same request gets the same code again.
    message_id  text        COLLATE "C" NOT NULL,
    received_at timestamptz NOT NULL DEFAULT now(),
    -- Null until the request has been carried out, or refused.
    outcome     text        CONSTRAINT deletion_requests_outcome_known CHECK (outcome IN ('deleted', 'unlinked', 'kept')),
    CONSTRAINT deletion_requests_provider_message_id_key UNIQUE (provider, message_id)
);
CREATE INDEX deletion_requests_received_at_idx ON deletion_requests (received_at);
