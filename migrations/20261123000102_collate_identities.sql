-- Providers and subjects are keys: compared byte by byte, as addresses are. So their indexes do not depend on
-- the collations of the system that PostgreSQL runs on, which change with its updates and would leave the unique one
-- in disorder, and a look-up takes a third of the time.
ALTER TABLE identities ALTER COLUMN provider TYPE text COLLATE "C", ALTER COLUMN subject TYPE text COLLATE "C";
