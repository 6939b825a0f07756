-- What the other statements answer with, of a row l and a clock. Times are numbers
-- of microseconds since 1970, because a timestamp's text depends on the session's
-- DateStyle, and some of the client's query modes read text. date_part, unlike
-- extract, is a double on all versions: quicker, and exact to the microsecond
-- until 2106. The limits are for 'infinity', by which an operator may stop a task
-- for good, and '-infinity'.
l.{name}::text,
	l.{locked_by}::text,
	(date_part('epoch', least(greatest(l.{locked_at}, timestamp '0001-01-01'), timestamp '9999-12-31')) * 1000000)::bigint,
	(date_part('epoch', least(greatest(l.{lock_until}, timestamp '0001-01-01'), timestamp '9999-12-31')) * 1000000)::bigint,
	(date_part('epoch', clock.t) * 1000000)::bigint
