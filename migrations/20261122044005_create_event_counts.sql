-- Events per hour, so that the overview reads some thousand rows instead of the events.
CREATE TABLE event_counts (
    hour     timestamptz NOT NULL,
    kind     text        NOT NULL,
    reason   text        NOT NULL,
    provider text        NOT NULL,
    count    bigint      NOT NULL,
    CONSTRAINT event_counts_pkey PRIMARY KEY (hour, kind, reason, provider)
);
