-- What matters of the session and the server.
SELECT @@autocommit, VERSION(), TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
