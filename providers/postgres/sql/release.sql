-- $1 name, $2 holder, $3 keep-for in microseconds, at least 1: lock_until stays
-- above locked_at even if the server's clock was set back, because the next
-- locked_at, which is never below lock_until, is the next fencing number.
WITH clock AS MATERIALIZED (
	SELECT timezone('utc', clock_timestamp()) AS t
)
UPDATE {table} l
SET {lock_until} = greatest(clock.t, l.{locked_at} + $3::bigint * interval '1 microsecond')
FROM clock
WHERE l.{name} = $1::text AND l.{locked_by} = $2::text AND l.{lock_until} > clock.t
RETURNING {record}
