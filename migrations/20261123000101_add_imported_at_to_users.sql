-- When an import last wrote the user; unknown for those who came by themselves. Together with `updated_at` and
-- `last_seen_on` it tells whether they are still as the import left them: only then may it add to them.
ALTER TABLE users ADD COLUMN imported_at timestamptz;
