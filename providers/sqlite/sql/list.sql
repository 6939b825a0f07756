-- ?1 the last name of the page before, at first '', which no lock has; ?2 page size.
SELECT name, locked_by, locked_at, lock_until, fence, {now}
FROM {table}
WHERE name > ?1
ORDER BY name
LIMIT ?2
