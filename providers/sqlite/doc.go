// Package sqlite keeps locks in an SQLite database, with any driver for
// database/sql. It is for several processes on one host that share one file.
//
// # Requirements
//
// SQLite 3.35 or later (RETURNING) and a driver for it, such as
// modernc.org/sqlite or github.com/mattn/go-sqlite3; this package imports none.
// The file must be on a local disk: SQLite's locks are not reliable on network
// file systems. Write-ahead logging and busy_timeout help but are not needed. A
// pool of one connection works. A database in memory is private to a connection,
// so that it guards nothing, unless the pool has a single one.
//
// # Schema
//
// One table, by default "shedlock":
//
//	name        TEXT     primary key
//	lock_until  INTEGER  not null, milliseconds since 1970
//	locked_at   INTEGER  not null, milliseconds since 1970
//	locked_by   TEXT     not null
//	fence       INTEGER  not null, default 0
//
// The columns that ShedLock has are what its statements make of them on SQLite:
// sqlite-jdbc writes a timestamp as milliseconds. [Provider.Schema] prints the
// DDL and [Provider.EnsureSchema] runs it; nothing else creates it. [WithTable]
// sets another name.
//
// # Clock
//
// SQLite's 'now', read inside each statement: the clock of the host, which is the
// same for all processes that can share the file. Resolution: 1 ms.
//
// # Guarantees and limits
//
// An attempt on a held lock is one reading statement: it writes nothing and waits
// for no writer, unless the journal is a rollback journal and a writer is about
// to commit. An attempt on a free lock reads, and then takes the lock with one
// statement that decides.
//
// When the database is locked by another connection (SQLITE_BUSY), a call tries
// again after short pauses, for as long as its context lasts but not longer than
// [WithBusyLimit]. After that it fails; busy is never reported as held. Meanwhile
// a connection without a busy_timeout has one of 0.1 s. Writes of one Provider
// take turns, because SQLite has one writer at a time.
//
// The fencing number is the larger of the previous one plus one and the time in
// microseconds. It rises strictly, also when the clock is set back, and also when
// the record is deleted; the exceptions are both at once, and a record that is
// deleted in the very millisecond in which it was acquired.
//
// Locks are as durable as SQLite's commits, which PRAGMA synchronous governs.
//
// # Errors
//
// Errors of the driver come through as they are. A file or directory that is
// missing or read-only, a missing table and a busy database are errors, never
// core.ErrHeld. A read-only database still tells who holds a lock.
//
// # Client ownership
//
// The *sql.DB belongs to the caller, who closes it.
package sqlite
