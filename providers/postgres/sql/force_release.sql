-- $1 name, $2 locked_by, $3 locked_at in microseconds since 1970. A number,
-- because a time parameter would go through the session's time zone in some of
-- the client's query modes.
WITH clock AS MATERIALIZED (
	SELECT timezone('utc', clock_timestamp()) AS t
)
UPDATE {table} l
SET {lock_until} = greatest(clock.t, l.{locked_at} + interval '1 microsecond')
FROM clock
WHERE l.{name} = $1::text AND l.{locked_by} = $2::text
	AND l.{locked_at} = timestamp 'epoch' + $3::bigint * interval '1 microsecond'
	AND l.{lock_until} > clock.t
RETURNING {record}
