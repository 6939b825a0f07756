-- $1 the last name of the page before, $2 whether there was one, $3 page size.
SELECT {record}
FROM {table} l, (SELECT timezone('utc', clock_timestamp()) AS t) clock
WHERE NOT $2::boolean OR l.{name} > $1::text
ORDER BY l.{name}
LIMIT $3::bigint
