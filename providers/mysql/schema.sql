-- MySQL reads the first kind of comment in COLLATE, MariaDB the second: each gets
-- its binary collation that does not pad.
CREATE TABLE IF NOT EXISTS {table} (
	{name} VARCHAR(64) CHARACTER SET utf8mb4 COLLATE /*!80017 utf8mb4_0900_bin *//*M! utf8mb4_nopad_bin */ NOT NULL,
	{lock_until} DATETIME(3) NOT NULL,
	{locked_at} DATETIME(3) NOT NULL,
	{locked_by} VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL,
	{fence} BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY ({name})
) ENGINE = InnoDB
