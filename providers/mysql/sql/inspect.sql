SELECT {record}
FROM {table}
WHERE {exact}
