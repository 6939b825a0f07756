-- It meets no row, and is refused where nothing may be written.
UPDATE {table} SET {lock_until} = {lock_until} WHERE {name} = NULL
