-- The host's clock in milliseconds since 1970. All uses in one statement see the
-- same 'now'. A Julian day of this century is a double that is exact to 0.04 ms,
-- so rounding gives back SQLite's own whole milliseconds.
CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)
