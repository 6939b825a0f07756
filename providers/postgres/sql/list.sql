-- $1 the last name of the page before, $2 whether there was one, $3 page size.
SELECT l.{name}::text, l.{locked_by}::text, l.{locked_at}, l.{lock_until}, timezone('utc', clock_timestamp())
FROM {table} l
WHERE NOT $2::boolean OR l.{name} > $1::text
ORDER BY l.{name}
LIMIT $3::bigint
