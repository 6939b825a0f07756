-- ?1 name, ?2 holder, ?3 at-most in milliseconds. No row comes back when another
-- claim holds the lock by now.
INSERT INTO {table} AS l (name, lock_until, locked_at, locked_by, fence)
VALUES (?1, {now} + ?3, {now}, ?2, {now} * 1000)
ON CONFLICT (name) DO UPDATE
SET lock_until = excluded.lock_until, locked_at = excluded.locked_at, locked_by = excluded.locked_by,
	fence = max(l.fence + 1, excluded.fence)
WHERE l.lock_until <= excluded.locked_at
RETURNING name, locked_by, locked_at, lock_until, fence, {now}
