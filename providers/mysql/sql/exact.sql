-- That a record's name is {$name} byte for byte. A collation that folds case, on a
-- table that others have made, finds the record of another name as well.
{name} = {$name} AND CAST(CONVERT({name} USING utf8mb4) AS BINARY) = {$name_bytes}
