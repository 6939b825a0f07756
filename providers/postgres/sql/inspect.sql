-- $1 name.
SELECT l.{name}::text, l.{locked_by}::text, l.{locked_at}, l.{lock_until}, timezone('utc', clock_timestamp())
FROM {table} l
WHERE l.{name} = $1::text
