-- For the audit: the latest of one kind, of one reason, by one member of staff, by any. What happens
-- at every sign-in is in none of them: it is written too often, and found by the primary key.
CREATE INDEX events_kind_idx ON events (kind, id) WHERE kind NOT IN ('signed_in', 'user_created');
CREATE INDEX events_reason_idx ON events (reason, id) WHERE reason IS NOT NULL;
CREATE INDEX events_actor_idx ON events (actor, id) WHERE actor IS NOT NULL;
CREATE INDEX events_staff_idx ON events (id) WHERE actor IS NOT NULL;
