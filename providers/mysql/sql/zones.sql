-- Over the next year: whether the session's time zone keeps one distance from UTC,
-- and whether it is the server's own. NULL is a zone that the server can't tell.
SELECT COUNT(DISTINCT TIMESTAMPDIFF(SECOND, d, CONVERT_TZ(d, '+00:00', @@session.time_zone))) = 1,
	COALESCE(MIN(CONVERT_TZ(d, @@global.time_zone, @@session.time_zone) = d), 0),
	@@session.time_zone
FROM (
	SELECT CAST(UTC_DATE() AS DATETIME) + INTERVAL days DAY AS d
	FROM (SELECT 0 AS days UNION ALL SELECT 30 UNION ALL SELECT 60 UNION ALL SELECT 90 UNION ALL SELECT 120
		UNION ALL SELECT 150 UNION ALL SELECT 180 UNION ALL SELECT 210 UNION ALL SELECT 240 UNION ALL SELECT 270
		UNION ALL SELECT 300 UNION ALL SELECT 330 UNION ALL SELECT 360) offsets
) days
