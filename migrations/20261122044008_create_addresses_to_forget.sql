-- E-mails of people who were deleted, until the events that hold one are forgotten. Anybody may claim an e-mail, so there
-- can be any number of them: they are forgotten a thousand at a time (`src/store/erase_addresses.sql`), and how far that has come
-- is told by the last event seen of each of the three ways in which an event holds an e-mail.
CREATE TABLE addresses_to_forget (
    address      text        NOT NULL,
    requested_at timestamptz NOT NULL,
    claimed      uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    refused      uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    searched     uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    CONSTRAINT addresses_to_forget_pkey PRIMARY KEY (address, requested_at)
);
