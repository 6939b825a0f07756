-- Takes a record that is free. LAST_INSERT_ID(x) is x, and makes the answer to the
-- statement carry it: it is above 0 if and only if a record was taken, whatever
-- clientFoundRows makes of the number of rows, and it is the time of that.
UPDATE {table}
SET {lock_until} = TIMESTAMPADD(MICROSECOND, {$micros}, UTC_TIMESTAMP(3)),
	{locked_at} = TIMESTAMPADD(MICROSECOND,
		LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3))), TIMESTAMP '1970-01-01 00:00:00'),
	{locked_by} = {$holder}{next_fence}
WHERE {exact} AND {lock_until} <= UTC_TIMESTAMP(3)
