-- The progress of walks that read a table once, in the order of its ids. Each step of a walk locks
-- its row, reads the next rows and moves the place, in one statement. So it does not matter which
-- instance makes a step, and an instance that meets the lock leaves the walk to the other.
CREATE TABLE cursors (
    walk  text CONSTRAINT cursors_pkey PRIMARY KEY,
    -- The last id that was read.
    place uuid NOT NULL
);
INSERT INTO cursors (walk, place)
SELECT walk, '00000000-0000-0000-0000-000000000000'
FROM unnest(ARRAY['events', 'new_sessions', 'unused_sessions', 'used_sessions', 'oldest_sessions',
                  'logged_events']) AS walk;
-- Returns the lowest id that may be generated at a time (UUID version 7, RFC 9562 §5.7).
CREATE FUNCTION first_id(moment timestamptz) RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT (lpad(to_hex(floor(extract(epoch FROM moment) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;

-- The time up to which the events are complete (`src/events/settled.rs`). Ids are drawn before
-- transactions commit, so an event can become visible after later ones. A mark is a time at which
-- this row was written: a transaction that is younger than the row's `xmin` had not written by
-- then. Once all older transactions have ended, the mark is settled. Transaction ids show this for
-- every role; `pg_stat_activity` hides from a role when the transactions of others began.
CREATE TABLE settled_events (
    settled_at timestamptz NOT NULL,
    marked_at  timestamptz NOT NULL
);
INSERT INTO settled_events (settled_at, marked_at) VALUES (now(), now());
-- Returns whether a transaction of this database that is as old as `mark`, or older, may still
-- write. Both ages are counted from the same transaction id, so they have the order of the ids.
CREATE FUNCTION has_older_writers(mark xid) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND age(backend_xid) >= age(mark)
    )
$$;
-- Sets the next mark, if the one before it is settled. Each statement of the function sees what was
-- committed before it.
CREATE FUNCTION settle_events() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- If another reader holds the lock, that reader sets the mark for both.
    PERFORM FROM settled_events FOR UPDATE SKIP LOCKED;
    IF FOUND THEN
        UPDATE settled_events SET settled_at = marked_at, marked_at = now() WHERE NOT has_older_writers(xmin);
    END IF;
END $$;
