-- A consistent read: it takes no row lock and waits for none, at any isolation
-- level, since it is a transaction of its own. It also finds a record whose name
-- the column's collation can't tell from {$name}.
SELECT {record}
FROM {table}
WHERE {name} = {$name}
