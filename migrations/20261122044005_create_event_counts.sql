-- Events per completed hour, so that the overview reads some thousand rows instead of the events.
CREATE TABLE event_counts (
    hour     timestamptz NOT NULL,
    kind     text        NOT NULL,
    reason   text        NOT NULL,
    provider text        NOT NULL,
    count    bigint      NOT NULL,
    CONSTRAINT event_counts_pkey PRIMARY KEY (hour, kind, reason, provider)
);
-- The end of the last counted hour, in one row, whose lock keeps two instances from counting the same hour.
CREATE TABLE event_counts_until (
    one   boolean     NOT NULL DEFAULT true CONSTRAINT event_counts_until_pkey PRIMARY KEY
                                            CONSTRAINT event_counts_until_one CHECK (one),
    until timestamptz NOT NULL
);
INSERT INTO event_counts_until (until) VALUES (date_trunc('hour', now(), 'UTC'));
