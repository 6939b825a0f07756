-- $1 table, as an identifier; $2 to $5 the columns. A missing table is error 42P01.
SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), coalesce(c.collisdeterministic, true)
FROM pg_catalog.pg_attribute a
LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation
WHERE a.attrelid = ($1::text)::regclass AND a.attnum > 0 AND NOT a.attisdropped
	AND a.attname IN ($2::text, $3::text, $4::text, $5::text)
