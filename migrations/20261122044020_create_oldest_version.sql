-- The oldest version of the program that the schema serves. An older program that meets migrations
-- it does not know starts unless its version is below. A migration that removes something which
-- older versions use raises it.
CREATE TABLE oldest_version (
    one     boolean NOT NULL DEFAULT true CONSTRAINT oldest_version_pkey PRIMARY KEY
                                          CONSTRAINT oldest_version_one CHECK (one),
    version text    NOT NULL CONSTRAINT oldest_version_is_a_release CHECK (version ~ '^[0-9]+\.[0-9]+\.[0-9]+$')
);
INSERT INTO oldest_version (version) VALUES ('0.1.0');
