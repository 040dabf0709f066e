-- When somebody last came back, for support staff. A day on purpose: it costs a returning user one write a day,
-- by whichever sign-in or refresh comes first, and no more. Unknown for who has not come since there is
-- this column, or was never here (imported users).
ALTER TABLE users ADD COLUMN last_seen_on date;
-- The latest first, and among those of a day the newest users. Days repeat so much that the index stays small.
CREATE INDEX users_last_seen_on_idx ON users (last_seen_on DESC NULLS LAST, id DESC);
