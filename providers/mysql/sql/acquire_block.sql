-- read, then take or insert, then read, in one trip to MariaDB. SELECT … INTO is a
-- consistent read like read.sql; IF EXISTS (SELECT …) would lock the row. The last
-- SELECT tells by the token who holds the lock.
BEGIN NOT ATOMIC
	DECLARE shedbolt_found, shedbolt_free INT;
	SELECT COUNT(*), COALESCE(MAX({lock_until} <= UTC_TIMESTAMP(3)), 0) INTO shedbolt_found, shedbolt_free
	FROM {table} WHERE {name} = {$name};
	IF shedbolt_free THEN
		{take};
	ELSEIF NOT shedbolt_found THEN
		{insert};
	END IF;
	{read};
END
