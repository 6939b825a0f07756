-- $1 name, $2 holder, $3 at-most in microseconds.
--
-- One statement, one snapshot, one store time t. Four things can happen:
--
-- The row's lock_until is after t: UPDATE and INSERT match nothing, take no row
-- lock and write nothing; the answer is the row as seen, that is the holder.
--
-- The row is free: UPDATE locks and takes it. If another claim has taken it since
-- the snapshot, READ COMMITTED waits for that claim to commit and checks
-- lock_until against t again on the new version, so that one of the two matches.
-- The other answers with the row as seen, free, and the caller runs the
-- statement again for a fresh look.
--
-- There is no row: INSERT makes it. If another claim has made it since the
-- snapshot, ON CONFLICT DO NOTHING waits for that one to commit and the answer
-- is empty: again a reason to run the statement again.
--
-- The row carries $2 already and is live: nothing is written, and the answer is
-- the row as seen, which is the caller's own.
WITH clock AS MATERIALIZED (
	SELECT timezone('utc', clock_timestamp()) AS t
), seen AS MATERIALIZED (
	SELECT l.{locked_by} AS locked_by, l.{locked_at} AS locked_at, l.{lock_until} AS lock_until
	FROM {table} l
	WHERE l.{name} = $1::text
), taken AS (
	UPDATE {table} l
	SET {lock_until} = clock.t + $3::bigint * interval '1 microsecond', {locked_at} = clock.t, {locked_by} = $2::text
	FROM clock
	WHERE l.{name} = $1::text AND l.{lock_until} <= clock.t
	RETURNING l.{locked_by} AS locked_by, l.{locked_at} AS locked_at, l.{lock_until} AS lock_until
), made AS (
	INSERT INTO {table} ({name}, {lock_until}, {locked_at}, {locked_by})
	SELECT $1::text, clock.t + $3::bigint * interval '1 microsecond', clock.t, $2::text
	FROM clock
	WHERE NOT EXISTS (SELECT FROM seen)
	ON CONFLICT DO NOTHING
	RETURNING {locked_by} AS locked_by, {locked_at} AS locked_at, {lock_until} AS lock_until
)
SELECT $1::text, answer.locked_by::text, answer.locked_at, answer.lock_until, clock.t
FROM (
	SELECT 1 AS rank, * FROM taken
	UNION ALL SELECT 1, * FROM made
	UNION ALL SELECT 2, * FROM seen
) answer, clock
ORDER BY answer.rank
LIMIT 1
