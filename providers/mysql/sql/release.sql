-- LAST_INSERT_ID as in take.sql: the number of changed rows is 0 when lock_until
-- stays as it is, which is a release all the same.
UPDATE {table}
SET {lock_until} = TIMESTAMPADD(MICROSECOND,
	LAST_INSERT_ID(GREATEST(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)),
		TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {locked_at}) + {$micros})), TIMESTAMP '1970-01-01 00:00:00')
WHERE {exact} AND {locked_by} = {$holder} AND {lock_until} > UTC_TIMESTAMP(3)
