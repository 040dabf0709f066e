-- What staff searched for where it may be an address, plain or as it stands in a query: few among all events, and read
-- through when somebody is deleted.
CREATE INDEX events_searches_idx ON events (id) WHERE detail->>'search' ~ '@|%40';
