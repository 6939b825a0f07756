-- SHOW, and not information_schema: that opens every table of the server, on MariaDB,
-- unless all conditions are literals.
SHOW FULL COLUMNS FROM {table}
