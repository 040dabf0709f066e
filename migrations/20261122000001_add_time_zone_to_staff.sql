-- The zone in which a member of staff reads times, by its name in the IANA database; where there is
-- none, the browser's.
ALTER TABLE staff ADD COLUMN time_zone text;
