-- ?1 name, ?2 locked_by, ?3 locked_at in milliseconds since 1970, ?4 fence.
UPDATE {table}
SET lock_until = {now}
WHERE name = ?1 AND locked_by = ?2 AND locked_at = ?3 AND fence = ?4 AND lock_until > {now}
RETURNING name, locked_by, locked_at, lock_until, fence, {now}
