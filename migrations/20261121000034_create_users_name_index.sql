-- For support staff, who look for people by the beginning of their name.
CREATE INDEX users_name_idx ON users (lower(name) COLLATE "C") WHERE name IS NOT NULL;
