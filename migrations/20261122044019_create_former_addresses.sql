-- E-mail addresses that a user proved, and no longer has or no longer proves. Events may name them,
-- and they are erased with the user (`src/accounts/delete_user.sql`). They are written when the
-- proof ends, since no other row shows it later. Like notes, they go to the remaining user of a
-- merge (`move_notes`).
CREATE TABLE former_addresses (
    user_id uuid CONSTRAINT former_addresses_user_id_fkey REFERENCES users ON DELETE CASCADE,
    email   text COLLATE "C",
    CONSTRAINT former_addresses_pkey PRIMARY KEY (user_id, email)
);

CREATE FUNCTION remember_address_of_user() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO former_addresses (user_id, email) VALUES (OLD.id, OLD.email)
    ON CONFLICT ON CONSTRAINT former_addresses_pkey DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER users_remember_address AFTER UPDATE OF email, email_verified ON users
FOR EACH ROW WHEN (OLD.email_verified AND (NEW.email IS DISTINCT FROM OLD.email OR NOT NEW.email_verified))
EXECUTE FUNCTION remember_address_of_user();

-- An identity that is deleted with its user leaves no address. An identity that moves to another
-- user takes its address along.
CREATE FUNCTION remember_address_of_identity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO former_addresses (user_id, email)
    SELECT id, lower(OLD.email COLLATE "C") FROM users WHERE id = OLD.user_id
    ON CONFLICT ON CONSTRAINT former_addresses_pkey DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER identities_remember_address AFTER DELETE ON identities
FOR EACH ROW WHEN (OLD.email_verified)
EXECUTE FUNCTION remember_address_of_identity();
CREATE TRIGGER identities_remember_changed_address AFTER UPDATE OF email, email_verified ON identities
FOR EACH ROW WHEN (OLD.email_verified AND (NOT NEW.email_verified
                                           OR lower(NEW.email COLLATE "C") IS DISTINCT FROM lower(OLD.email COLLATE "C")))
EXECUTE FUNCTION remember_address_of_identity();
