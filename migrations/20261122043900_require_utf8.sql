-- PostgreSQL knows the letters of Unicode in UTF8 only, and the search needs them. This is a file
-- of its own, since the next one cannot even be sent to a database of another encoding.
DO $$ BEGIN
    IF getdatabaseencoding() <> 'UTF8' THEN
        RAISE 'the encoding of the database is %, and has to be UTF8', getdatabaseencoding()
            USING HINT = 'Create it with ENCODING ''UTF8'' TEMPLATE template0.';
    END IF;
END $$;
