-- Makes the record of a name that has none; LAST_INSERT_ID as in take.sql. When
-- another claim came first, it is error 1062.
INSERT INTO {table} ({name}, {lock_until}, {locked_at}, {locked_by}{fence_column})
VALUES ({$name}, TIMESTAMPADD(MICROSECOND, {$micros}, UTC_TIMESTAMP(3)),
	TIMESTAMPADD(MICROSECOND,
		LAST_INSERT_ID(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3))), TIMESTAMP '1970-01-01 00:00:00'),
	{$holder}{first_fence})
