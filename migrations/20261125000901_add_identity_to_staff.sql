-- Who a member of staff is at the identity provider: pinned at their first sign-in, so that nobody else gets in by an
-- address that changed hands. Unknown until then, and after a reset.
ALTER TABLE staff
    ADD COLUMN provider text COLLATE "C",
    ADD COLUMN subject  text COLLATE "C",
    ADD CONSTRAINT staff_identity_whole CHECK ((provider IS NULL) = (subject IS NULL));
