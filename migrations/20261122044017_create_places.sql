-- How far the walks have come that read a table once, in the order of its ids. Each step of a walk locks its row, reads the
-- next rows and moves the place, in one statement. So it does not matter which instance makes a step, and one that meets
-- the lock leaves the walk to the other.
CREATE TABLE places (
    walk  text CONSTRAINT places_pkey PRIMARY KEY,
    -- The last id that was read.
    place uuid NOT NULL
);
INSERT INTO places (walk, place)
SELECT walk, '00000000-0000-0000-0000-000000000000'
FROM unnest(ARRAY['events', 'new_sessions', 'unused_sessions', 'used_sessions', 'oldest_sessions',
                  'logged_events']) AS walk;
-- Returns the lowest id that may be generated at a time (UUID version 7, RFC 9562 §5.7).
CREATE FUNCTION first_id(moment timestamptz) RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT (lpad(to_hex(floor(extract(epoch FROM moment) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
$$;
