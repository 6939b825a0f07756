SELECT {record}
FROM {table}
WHERE {$all} OR {name} > {$name}
ORDER BY {name}
LIMIT {$limit}
