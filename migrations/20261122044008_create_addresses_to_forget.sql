-- E-mail addresses of deleted users that are to be erased from events. Their number has no limit, since anyone can claim
-- an address, so a thousand events are changed at a time (`src/store/erase_addresses.sql`). The progress is the last
-- event of each of the two kinds that contain an address.
CREATE TABLE addresses_to_forget (
    address      text        NOT NULL,
    requested_at timestamptz NOT NULL,
    claimed      uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    refused      uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    CONSTRAINT addresses_to_forget_pkey PRIMARY KEY (address, requested_at)
);
