-- ?1 name, ?2 holder, ?3 duration in milliseconds.
UPDATE {table}
SET lock_until = {now} + ?3
WHERE name = ?1 AND locked_by = ?2 AND lock_until > {now}
RETURNING name, locked_by, locked_at, lock_until, fence, {now}
