# Creates the service's role and database, once, in the PostgreSQL of compose.yaml: its own POSTGRES_USER is a superuser.
psql --set=ON_ERROR_STOP=1 --set=password="$(cat "/run/secrets/database_password")" --username=postgres <<'END'
CREATE ROLE vestibule LOGIN PASSWORD :'password';
CREATE DATABASE vestibule OWNER vestibule;
END
