// Package postgres keeps locks in a PostgreSQL table, with pgx v5.
//
// # Requirements
//
// PostgreSQL 12 or later, a database in UTF8, and github.com/jackc/pgx/v5. The
// role needs SELECT, INSERT and UPDATE on the table. Every QueryExecMode works,
// and any TimeZone and DateStyle of the session. With PgBouncer in transaction
// mode either set its max_prepared_statements (1.21 or later) or one of pgx's modes
// that prepare nothing: QueryExecModeExec or QueryExecModeSimpleProtocol.
//
// # Schema
//
// One table, by default "shedlock", with ShedLock's four columns, so that
// services on the JVM can share it:
//
//	name        varchar(64)   primary key
//	lock_until  timestamp     not null
//	locked_at   timestamp     not null
//	locked_by   varchar(255)  not null
//
// [Provider.Schema] prints the DDL and [Provider.EnsureSchema] runs it; nothing
// else creates it. Other names are set with [WithTable] and [WithColumns].
// Times are in UTC, in columns without a time zone. At its first use a Provider
// looks at the columns' types once, and refuses a table on which locks would not
// be safe: columns with a time zone, whose meaning depends on each session;
// columns of less than a microsecond's precision; and names in a type or
// collation that folds case or pads. The error names the column and the mend. A
// table without a unique name is PostgreSQL's error 42P10.
//
// # Clock
//
// The server's: clock_timestamp(), read once in each statement. Resolution: 1 µs.
//
// # Guarantees and limits
//
// Acquire, Release and Extend are one round trip each, apart from the look at the
// columns before the first and from what pgx itself does to prepare a statement.
// An attempt on a held lock reads one row, takes no row lock, writes nothing, and
// answers with the holder.
//
// The fencing number is locked_at as microseconds since 1970, so it needs no
// column and works on a Java service's table. It rises strictly, also when the
// server's clock is set back, unless the record is deleted as well.
//
// Under a default isolation level of REPEATABLE READ or SERIALIZABLE the first
// serialization failure makes the Provider run its statements in READ COMMITTED
// transactions of their own from then on, still in one round trip.
//
// Locks are as durable as the server's commits. With synchronous_commit off, or
// when a standby that lags behind is promoted, a lock that was granted shortly
// before a crash can be lost.
//
// A grant needs its own transaction: New refuses a pgx.Tx, and a connection with
// a transaction open is refused at each call. On a bare *pgx.Conn the calls of one
// Provider are made one after the other, and a context that ends during one closes
// the connection, as pgx does; prefer a pool.
//
// # Errors
//
// Errors of pgx come through as they are: use errors.As with *pgconn.PgError. A
// read-only server (25006), a missing table (42P01), missing rights (42501) and
// a lost connection are errors, never core.ErrHeld.
//
// # Client ownership
//
// The pool or connection belongs to the caller, who closes it.
package postgres
