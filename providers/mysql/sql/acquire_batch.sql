-- The same as acquire_block.sql for MySQL, whose compound statements exist in
-- stored programs alone; it needs multiStatements. name = NULL is no row at all, so
-- a claim that finds the lock held touches none.
SELECT COUNT(*), COALESCE(MAX({lock_until} <= UTC_TIMESTAMP(3)), 0) INTO @shedbolt_found, @shedbolt_free
FROM {table} WHERE {name} = {$name};
UPDATE {table}
SET {lock_until} = TIMESTAMPADD(MICROSECOND, {$micros}, UTC_TIMESTAMP(3)), {locked_at} = UTC_TIMESTAMP(3),
	{locked_by} = {$holder}{next_fence}
WHERE {name} = IF(@shedbolt_free, {$name}, NULL)
	AND CAST(CONVERT({name} USING utf8mb4) AS BINARY) = {$name_bytes} AND {lock_until} <= UTC_TIMESTAMP(3);
INSERT INTO {table} ({name}, {lock_until}, {locked_at}, {locked_by}{fence_column})
SELECT {$name}, TIMESTAMPADD(MICROSECOND, {$micros}, UTC_TIMESTAMP(3)), UTC_TIMESTAMP(3), {$holder}{first_fence}
FROM DUAL WHERE NOT @shedbolt_found;
{read}
