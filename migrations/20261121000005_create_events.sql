-- Events: what happened, kept apart from whom it happened to, so that it outlives them.
CREATE TABLE events (
    id          uuid        CONSTRAINT events_pkey PRIMARY KEY,
    created_at  timestamptz NOT NULL DEFAULT now(),
    kind        text        NOT NULL,
    reason      text,
    provider    text,
    email       text,
    user_id     uuid,
    session_id  uuid,
    ip          inet,
    user_agent  text,
    request_id  text,
    detail      jsonb
);
CREATE INDEX events_user_id_idx ON events (user_id, id) WHERE user_id IS NOT NULL;
CREATE INDEX events_email_idx ON events (email, id) WHERE email IS NOT NULL;
