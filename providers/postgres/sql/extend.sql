-- $1 name, $2 holder, $3 duration in microseconds.
WITH clock AS MATERIALIZED (
	SELECT timezone('utc', clock_timestamp()) AS t
)
UPDATE {table} l
SET {lock_until} = clock.t + $3::bigint * interval '1 microsecond'
FROM clock
WHERE l.{name} = $1::text AND l.{locked_by} = $2::text AND l.{lock_until} > clock.t
RETURNING {record}
