-- Who was merged into whom, few among all events of a user: a deletion asks for it.
CREATE INDEX events_merges_idx ON events (user_id) WHERE kind = 'users_merged';
