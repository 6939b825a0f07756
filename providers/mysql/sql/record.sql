-- What reading statements answer with. Texts are binary, because the server would
-- convert others to the session's character set; times are microseconds since
-- 1970, because what the client makes of a time depends on its parseTime and loc.
CAST(CONVERT({name} USING utf8mb4) AS BINARY),
	CAST(CONVERT({locked_by} USING utf8mb4) AS BINARY),
	COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {locked_at}), 0),
	COALESCE(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {lock_until}), 0),
	TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)),
	{fence_or_zero},
	@@GLOBAL.read_only OR @@GLOBAL.innodb_read_only
