-- For the list of users: each order that it can be read in is an index with the id behind, so that a page
-- begins where the one before ended. By e-mail address is there already, `users_email_key`.
--
-- A sign-in that creates an ordinary user writes none of the partial ones, and one that changes nothing of
-- the user writes none at all.

-- Names repeat, and what follows one of a thousand equal names must not take reading the thousand. It
-- serves the search by the beginning of a name, too, and holds those who have none.
CREATE INDEX users_name_id_idx ON users (lower(name) COLLATE "C", id);
DROP INDEX users_name_idx;
-- The few who would otherwise be looked for among everybody.
CREATE INDEX users_disabled_idx ON users (id) WHERE disabled_at IS NOT NULL;
CREATE INDEX users_unverified_idx ON users (id) WHERE NOT email_verified AND email IS NOT NULL;
-- The end of the list by e-mail address.
CREATE INDEX users_without_email_idx ON users (email, id) WHERE email IS NULL;
-- The users of a provider, the newest or the oldest first. Written once an identity; without it, the users
-- of a provider that was switched off years ago are found only by reading all newer ones.
CREATE INDEX identities_provider_user_id_idx ON identities (provider, user_id);
