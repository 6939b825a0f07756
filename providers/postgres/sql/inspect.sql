-- $1 name.
SELECT {record}
FROM {table} l, (SELECT timezone('utc', clock_timestamp()) AS t) clock
WHERE l.{name} = $1::text
