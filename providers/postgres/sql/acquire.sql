-- $1 name, $2 holder, $3 at-most in microseconds.
--
-- One statement, one snapshot, one store time t. Four things can happen:
--
-- The row's lock_until is after t: INSERT has nothing to insert, so it takes no
-- row lock and writes nothing; the answer is the row as seen, that is the holder.
--
-- The same, and the row carries $2: the answer is the caller's own grant, from an
-- attempt whose answer was lost.
--
-- There is no row: INSERT makes it.
--
-- The row is free: INSERT meets it, locks its newest version, after waiting for
-- whoever has it locked, and takes it if that version is free at t as well.
--
-- In the last two cases another claim may have come between the snapshot and the
-- row lock. Then the newest version is not free at t, the answer is the row as
-- seen, which is free, or nothing, and the caller runs the statement again for a
-- fresh look.
--
-- ON CONFLICT names the column so that a table on which name is not unique is an
-- error, and not two holders. It finds an existing row before it inserts one, so
-- that a take-over leaves no dead row of its own.
WITH clock AS MATERIALIZED (
	SELECT timezone('utc', clock_timestamp()) AS t
), seen AS MATERIALIZED (
	SELECT l.{name}, l.{locked_by}, l.{locked_at}, l.{lock_until}
	FROM {table} l
	WHERE l.{name} = $1::text
), taken AS (
	INSERT INTO {table} AS l ({name}, {lock_until}, {locked_at}, {locked_by})
	SELECT $1::text, clock.t + $3::bigint * interval '1 microsecond', clock.t, $2::text
	FROM clock
	WHERE NOT EXISTS (SELECT FROM seen WHERE seen.{lock_until} > clock.t)
	ON CONFLICT ({name}) DO UPDATE
	SET {lock_until} = excluded.{lock_until}, {locked_at} = excluded.{locked_at}, {locked_by} = excluded.{locked_by}
	WHERE l.{lock_until} <= excluded.{locked_at}
	RETURNING l.{name}, l.{locked_by}, l.{locked_at}, l.{lock_until}
), answer AS (
	SELECT * FROM taken
	UNION ALL
	SELECT * FROM seen WHERE NOT EXISTS (SELECT FROM taken)
)
SELECT {record}
FROM answer l, clock
