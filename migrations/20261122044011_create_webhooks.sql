-- Webhooks: the messages by which other systems follow the changes of users, as described in
-- docs/webhooks.md. The event of a change queues its messages in the transaction that makes the
-- change, or not at all.
CREATE TABLE webhooks (
    name   text   CONSTRAINT webhooks_pkey PRIMARY KEY,
    -- The types of messages that the receiver wants; empty if it is no longer configured. Each
    -- start writes them.
    events text[] NOT NULL
);
-- Messages that no receiver has accepted yet. A delivered message is deleted.
CREATE TABLE webhook_messages (
    -- The messages of one user are in the order of their ids: they are queued one after the other.
    id              bigint      GENERATED ALWAYS AS IDENTITY CONSTRAINT webhook_messages_pkey PRIMARY KEY,
    webhook         text        NOT NULL,
    -- The event's id, which the receiver gets as `webhook-id`.
    message_id      uuid        NOT NULL,
    user_id         uuid        NOT NULL,
    -- The second user of a merge or a move.
    other_id        uuid,
    type            text        NOT NULL,
    -- What has changed. The service builds the body of the message from it
    -- (`src/webhooks/message.rs`).
    facts           jsonb       NOT NULL,
    -- The time of the change. A later message about a user has a later time.
    created_at      timestamptz NOT NULL DEFAULT now(),
    -- The number of attempts that were begun. An instance may record the end of an attempt if it is
    -- the last one.
    attempts        smallint    NOT NULL DEFAULT 0,
    -- The number of attempts that were answered and failed, which decides on the next one.
    failures        smallint    NOT NULL DEFAULT 0,
    -- The time until which an instance sends the message; minus infinity once the end of its
    -- attempt is recorded. No index contains it: so the update of a claim is heap-only, and its WAL
    -- contains the changes and not the facts.
    leased_until    timestamptz NOT NULL DEFAULT '-infinity',
    -- Infinity for a message that waits for an earlier one of the same user.
    next_attempt_at timestamptz NOT NULL,
    -- The time of the last attempt. A parked message is only sent again if an operator asks for it.
    parked_at       timestamptz,
    failure         text
    -- The rest of a page has room for the versions that claims write.
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
CREATE INDEX webhook_messages_due_idx ON webhook_messages (webhook, next_attempt_at) WHERE parked_at IS NULL;
CREATE INDEX webhook_messages_parked_idx ON webhook_messages (webhook, parked_at) WHERE parked_at IS NOT NULL;
-- For the first message of a user that waits. They are read in their order, and not by `parked_at
-- IS NULL`, so that no plan has another index: the table is empty most of the time, when all plans
-- look equal.
CREATE INDEX webhook_messages_user_id_idx ON webhook_messages (user_id, webhook, id)
    WHERE coalesce(parked_at, 'infinity') = 'infinity';
CREATE INDEX webhook_messages_other_id_idx ON webhook_messages (other_id, webhook, id)
    WHERE coalesce(parked_at, 'infinity') = 'infinity' AND other_id IS NOT NULL;

-- Returns the first waiting message of a receiver that is about a user, or null. It reads one row
-- of each index, however many messages wait. Both ends of the range are bounds: a delivered message
-- stays in the indexes as long as any snapshot, such as a dump's, is older than its deletion, and
-- without the upper bound a look-up that finds nothing would read the delivered messages of all
-- other users. They are ranges and not equalities, which would let a plan read another index in the
-- order of the ids. It is not an SQL function, which PostgreSQL would plan again in each
-- transaction.
CREATE FUNCTION first_webhook_message(receiver text, person uuid) RETURNS bigint
LANGUAGE plpgsql STABLE STRICT SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN least(
        (SELECT m.id FROM webhook_messages m
         WHERE (m.user_id, m.webhook) >= (person, receiver) AND (m.user_id, m.webhook) <= (person, receiver)
               AND coalesce(m.parked_at, 'infinity') = 'infinity'
         ORDER BY m.user_id, m.webhook, m.id LIMIT 1),
        (SELECT m.id FROM webhook_messages m
         WHERE (m.other_id, m.webhook) >= (person, receiver) AND (m.other_id, m.webhook) <= (person, receiver)
               AND coalesce(m.parked_at, 'infinity') = 'infinity' AND m.other_id IS NOT NULL
         ORDER BY m.other_id, m.webhook, m.id LIMIT 1));
END $$;

-- Lets transactions that queue or settle messages of the same users take turns up to their commits.
-- The first number is "hook" in ASCII.
CREATE FUNCTION lock_webhook_users(users uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(1752133483, key)
    FROM (SELECT DISTINCT uuid_hash(id) AS key FROM unnest(users) AS id WHERE id IS NOT NULL ORDER BY key) AS keys;
END $$;

-- Takes up to `most` due messages of a webhook, for `lease` seconds. A message is due if its time
-- has come, no earlier message of the same user waits, and no instance has a lease of it. The
-- caller knows that no message is due before `since`: so the scan does not begin with messages
-- delivered long ago, which stay in the index as long as any snapshot is older.
CREATE FUNCTION claim_webhook_messages(receiver text, most bigint, lease integer, since timestamptz DEFAULT '-infinity')
RETURNS SETOF webhook_messages
LANGUAGE plpgsql SET enable_seqscan = off SET jit = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    -- The commit does not wait for the disk: a server that forgets a claim only has its messages
    -- sent again.
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN QUERY
    WITH due AS MATERIALIZED (
        SELECT m.id FROM webhook_messages m
        WHERE m.webhook = receiver AND m.parked_at IS NULL AND m.next_attempt_at >= since AND m.next_attempt_at <= now()
              AND m.leased_until <= now()
              AND least(first_webhook_message(receiver, m.user_id), first_webhook_message(receiver, m.other_id)) = m.id
        ORDER BY m.next_attempt_at LIMIT most
        FOR UPDATE SKIP LOCKED
    )
    UPDATE webhook_messages m
    SET attempts = least(m.attempts, 32766) + 1, leased_until = now() + lease * interval '1 second'
    FROM due WHERE m.id = due.id
    RETURNING m.*;
END $$;

-- Records the ends of attempts: deletes a delivered message, and delays or parks a message that was
-- not accepted. Changes nothing if another instance has taken over a message that was not accepted,
-- so that it has another number of attempts. Without a failure a message was delivered, and without
-- a pause it is parked. By itself, the planner might join with a whole index: the table is empty
-- most of the time, when all plans look equal.
CREATE FUNCTION settle_webhook_messages(messages bigint[], numbers smallint[], whys text[], pauses float8[]) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    receivers text[];
    persons   uuid[];
BEGIN
    SELECT array_agg(m.webhook), array_agg(person.id) INTO receivers, persons
    FROM unnest(messages, whys, pauses) AS ended (id, why, pause)
    JOIN webhook_messages m ON m.id = ended.id
    CROSS JOIN LATERAL (VALUES (m.user_id), (m.other_id)) AS person (id)
    WHERE (ended.why IS NULL OR ended.pause IS NULL) AND person.id IS NOT NULL;
    -- A message that is queued meanwhile waits for one of these, or is seen below.
    PERFORM lock_webhook_users(persons);
    DELETE FROM webhook_messages m USING unnest(messages, whys) AS ended (id, why)
    WHERE m.id = ended.id AND ended.why IS NULL;
    UPDATE webhook_messages m
    SET failure = ended.why, failures = least(m.failures, 32766) + 1, leased_until = '-infinity',
        next_attempt_at = now() + coalesce(ended.pause, 0) * (0.9 + 0.2 * random()) * interval '1 second',
        parked_at = CASE WHEN ended.pause IS NULL THEN now() END
    FROM unnest(messages, numbers, whys, pauses) AS ended (id, number, why, pause)
    WHERE m.id = ended.id AND ended.why IS NOT NULL AND m.attempts = ended.number AND m.leased_until > '-infinity';
    UPDATE webhook_messages m SET next_attempt_at = now()
    FROM unnest(receivers, persons) AS waits (receiver, person)
    WHERE m.id = first_webhook_message(waits.receiver, waits.person) AND m.next_attempt_at = 'infinity';
END $$;

-- Queues the messages about an event. It runs at the end of the statement that records the event,
-- and sees what the statement has changed. Messages contain no token, IP address, reason or name of
-- staff.
CREATE FUNCTION queue_webhook_messages() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    message_type text;
    from_id      uuid;
    facts        jsonb;
    -- The event's time is the begin of its transaction, which may precede the time of an earlier
    -- message.
    changed_at   timestamptz;
BEGIN
    -- Without webhooks, this is all. A table without pages has no rows, not even a row that was
    -- committed a moment ago.
    IF pg_relation_size('webhooks', 'main') = 0 OR NEW.user_id IS NULL THEN
        RETURN NULL;
    END IF;
    -- An event in two rows, one for each user, is one message. The row without a reason queues it.
    message_type := CASE
        WHEN NEW.kind IN ('users_merged', 'identity_moved') AND NEW.reason IS NOT NULL THEN NULL
        WHEN NEW.kind = 'users_merged' THEN 'user.merged'
        WHEN NEW.kind IN ('email_lost', 'claims_changed') THEN 'user.updated'
        WHEN NEW.kind IN ('signed_out', 'sessions_ended', 'session_ended') THEN 'sessions.ended'
        WHEN NEW.kind IN ('refresh_token_replayed', 'provider_event') THEN 'security.' || NEW.kind
        -- Other kinds make types such as `note.added`, for which no receiver can ask.
        ELSE regexp_replace(NEW.kind, '_', '.')
    END;
    IF message_type IS NULL OR NOT EXISTS (SELECT FROM webhooks WHERE message_type = ANY (events)) THEN
        RETURN NULL;
    END IF;
    from_id := CASE WHEN message_type IN ('user.merged', 'identity.moved') THEN (NEW.detail->>'from')::uuid END;
    -- A later message has a higher id and shows a later state. No other transaction knows a new
    -- user yet.
    IF message_type <> 'user.created' THEN
        PERFORM lock_webhook_users(ARRAY[NEW.user_id, from_id]);
    END IF;
    changed_at := clock_timestamp();
    -- The facts for any type of message. Claims keep their nulls.
    facts := jsonb_strip_nulls(jsonb_build_object(
            'kind', NEW.kind, 'reason', NEW.reason, 'provider', NEW.provider, 'session_id', NEW.session_id,
            'identity_id', NEW.detail->'identity_id', 'cause', NEW.detail->'cause', 'occurred_at', NEW.detail->'at',
            'session_count', NEW.detail->'sessions'))
        || jsonb_build_object(
            'from_claims', NEW.detail->'from_claims',
            'user', (SELECT to_jsonb(person) FROM (
                SELECT u.id, u.email, u.email_verified, u.name, u.picture, u.created_at, u.updated_at, u.disabled_at, u.claims,
                       ARRAY(SELECT to_jsonb(account) FROM (
                           SELECT i.id, i.provider, i.subject, i.email FROM identities i WHERE i.user_id = u.id ORDER BY i.id
                       ) AS account) AS identities
                FROM users u WHERE u.id = NEW.user_id
            ) AS person),
            'identity', (SELECT to_jsonb(account) FROM (
                SELECT i.id, i.provider, i.subject, i.email, i.suspended_at IS NOT NULL AS suspended
                FROM identities i WHERE i.id = (NEW.detail->>'identity_id')::uuid
            ) AS account));
    -- A message waits while an earlier message of the same user does.
    INSERT INTO webhook_messages (webhook, message_id, user_id, other_id, type, facts, created_at, next_attempt_at)
    SELECT w.name, NEW.id, NEW.user_id, from_id, message_type, facts, changed_at,
           CASE WHEN coalesce(first_webhook_message(w.name, NEW.user_id), first_webhook_message(w.name, from_id)) IS NULL
                THEN now() ELSE 'infinity' END
    FROM webhooks w WHERE message_type = ANY (w.events);
    RETURN NULL;
END $$;
-- Sign-ins that change nothing are by far the most frequent events. Each statement reads the
-- condition again, even if it records nothing else, so it is short.
CREATE TRIGGER events_queue_webhook_messages AFTER INSERT ON events
FOR EACH ROW WHEN (NEW.kind <> 'signed_in')
EXECUTE FUNCTION queue_webhook_messages();
