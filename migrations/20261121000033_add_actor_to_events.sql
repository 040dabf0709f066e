-- Who did it, where it was not the user: the address of a member of staff.
ALTER TABLE events ADD COLUMN actor text;
