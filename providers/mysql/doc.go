// Package mysql keeps locks in a table of MySQL or MariaDB, with the driver
// github.com/go-sql-driver/mysql.
//
// # Requirements
//
// MySQL 8.0.17 or later, or MariaDB 10.3 or later, with InnoDB. The user needs
// SELECT, INSERT and UPDATE on the table. Every setting of the driver works, such as
// parseTime, loc, clientFoundRows, interpolateParams, charset and collation, and so
// do any time_zone, isolation level and sql_mode of the session; only autocommit
// must be on. Statements are sent as text, with all values in hexadecimal, so
// none of these settings changes what they mean.
//
// On MySQL, set multiStatements=true in the DSN where the pool is used for locks
// alone: then an attempt is one round trip, also when it wins. Without it, an
// attempt that finds the lock free needs a second one. MariaDB needs no such setting.
// (An attempt on a lock that the Provider has just seen held begins with a plain read,
// because that is cheapest; if it was released early, winning it is a second trip.)
//
// All statements must reach the primary: a proxy that sends reads to a replica answers
// from what may be old. Names of tables and columns should be in ASCII unless the
// connection's charset is utf8mb4.
//
// # Schema
//
// One table, by default "shedlock", with ShedLock's four columns, so that
// services on the JVM can share it, and one of our own:
//
//	name        VARCHAR(64)   utf8mb4, with a binary collation that does not pad; primary key
//	lock_until  DATETIME(3)   not null
//	locked_at   DATETIME(3)   not null
//	locked_by   VARCHAR(255)  not null
//	fence       BIGINT        not null, default 0; for [WithFencing] alone
//
// [Provider.Schema] prints the DDL, which both servers take, and
// [Provider.EnsureSchema] runs it; nothing else creates it. Other names are set with
// [WithTable] and [WithColumns].
//
// A table made by ShedLock's own DDL works as well. At its first use a Provider looks
// at the table and the session once, and refuses what would make locks unsafe; the
// error names the column and the mend:
//
//   - A TIMESTAMP column, as in ShedLock's DDL, while the session's time_zone is not
//     the server's or has daylight saving time. ShedLock's statements write UTC's wall
//     time, which the server then takes for local time: sessions in different zones
//     disagree about every lock, and an hour in spring can't be stored at all. With
//     the server in UTC, or in another zone without daylight saving, TIMESTAMP is
//     safe. DATETIME(3) always is, also for ShedLock.
//   - Times with less than three digits of a second, or that change ON UPDATE.
//   - A name or holder column that is too short, and a name that is not unique.
//
// Two more things are refused when a name meets them, because other names are not
// affected: a name that the column's collation can't tell from the name of an
// existing record, such as "Job" and "job" under the default collation of either
// server; and a name that is not in ASCII where the column is not in utf8mb4.
//
// # Clock
//
// The server's: UTC_TIMESTAMP(3), whatever the session's time zone. Resolution: 1 ms.
//
// # Guarantees and limits
//
// Release and Extend are one round trip, and so is an attempt on a held lock. It is a
// consistent read: it changes no row, takes no row lock, waits for none, and answers
// with the holder. Before the first call the look at the table needs five or six.
//
// A won attempt is recognised by the holder's token, or by a value that the statement
// returns, never by the number of rows.
//
// With [WithFencing] grants carry numbers that rise strictly, also when the record was
// removed in between, unless the server's clock was set back then.
//
// Locks are as durable as the server's commits. With
// innodb_flush_log_at_trx_commit other than 1, or when a replica that lags behind is
// promoted, a lock that was granted shortly before a crash can be lost. In a
// multi-primary cluster, such as Galera, use one node for locks: an attempt on
// another one may read what is a moment old and wait for the conflict at commit.
//
// # Errors
//
// Errors of the driver come through as they are: use errors.As with
// *mysql.MySQLError. A read-only server (1290, 1792, 1836), a missing table (1146),
// missing rights (1142) and a lost connection are errors, never core.ErrHeld.
// Deadlocks (1213) and duplicates (1062), which are how concurrent first attempts on
// a name can meet, are resolved by looking again.
//
// # Client ownership
//
// The *sql.DB belongs to the caller, who closes it.
package mysql
