-- $1 name, $2 holder, $3 at-most in microseconds.
--
-- One statement, one snapshot, one store time t. Five things can happen:
--
-- The row's lock_until is after t: UPDATE and INSERT match nothing, take no row
-- lock and write nothing; the answer is the row as seen, that is the holder's.
--
-- The same, and the row carries $2: the answer is the caller's own grant, from an
-- attempt whose answer was lost.
--
-- The row is free: UPDATE locks and takes it. If another claim has done so since
-- the snapshot, READ COMMITTED waits for that one to commit and evaluates the
-- WHERE clause again, with the row's new version and the same t: so only one of
-- the two matches. The other answers with the row as seen, which is free, and the
-- caller runs the statement again for a fresh look.
--
-- There is no row: INSERT makes it. If another claim has made it since the
-- snapshot, ON CONFLICT DO NOTHING waits for that one to commit and the answer is
-- empty: again the caller looks afresh. ON CONFLICT names the column so that a
-- table on which name is not unique is an error, and not two holders.
--
-- The row is free and UPDATE finds it deleted, after waiting: as if another claim
-- had taken it.
--
-- Statements of one WITH don't see each other's changes, only what RETURNING
-- hands on; that is why INSERT asks seen, and not the table, for the row.
WITH clock AS MATERIALIZED (
	SELECT timezone('utc', clock_timestamp()) AS t
), seen AS MATERIALIZED (
	SELECT l.{name}, l.{locked_by}, l.{locked_at}, l.{lock_until}
	FROM {table} l
	WHERE l.{name} = $1::text
), taken AS (
	UPDATE {table} l
	SET {lock_until} = clock.t + $3::bigint * interval '1 microsecond', {locked_at} = clock.t, {locked_by} = $2::text
	FROM clock
	WHERE l.{name} = $1::text AND l.{lock_until} <= clock.t
	RETURNING l.{name}, l.{locked_by}, l.{locked_at}, l.{lock_until}
), made AS (
	INSERT INTO {table} ({name}, {lock_until}, {locked_at}, {locked_by})
	SELECT $1::text, clock.t + $3::bigint * interval '1 microsecond', clock.t, $2::text
	FROM clock
	WHERE NOT EXISTS (SELECT FROM seen)
	ON CONFLICT ({name}) DO NOTHING
	RETURNING {name}, {locked_by}, {locked_at}, {lock_until}
), answer AS (
	SELECT * FROM taken
	UNION ALL
	SELECT * FROM made
	UNION ALL
	SELECT * FROM seen WHERE NOT EXISTS (SELECT FROM taken)
)
SELECT {record}
FROM answer l, clock
