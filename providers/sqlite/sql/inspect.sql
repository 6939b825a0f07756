-- ?1 name.
SELECT name, locked_by, locked_at, lock_until, fence, {now}
FROM {table}
WHERE name = ?1
