-- What staff searched for where it may be an address, plain or as it stands in a query: few among all events, and read
-- through when somebody is deleted. No sign-in can write its event while this runs: with very many events, create it
-- CONCURRENTLY by hand before.
CREATE INDEX IF NOT EXISTS events_searches_idx ON events (id) WHERE detail->>'search' ~ '@|%40';
