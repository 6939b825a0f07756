// Package sqlitetest connects the conformance suite to a SQLite file, for the
// provider's own test and for the newest driver.
package sqlitetest

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite" // the driver under the provider

	"github.com/shedbolt/shedbolt/conformancetest"
	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/providers/sqlite"
)

// Variant is one way to open the file, for which the whole suite is run.
type Variant struct {
	// Name names it in the report.
	Name string
	// Pragmas are set on each connection.
	Pragmas []string
	// Conns is the size of each client's pool; 0 means 4.
	Conns int
}

// Plain is the way that the documentation recommends.
var Plain = Variant{Name: "wal", Pragmas: []string{"journal_mode(WAL)", "busy_timeout(5000)"}}

// Variants are all ways.
func Variants() []Variant {
	return []Variant{
		Plain,
		{Name: "wal_no_busy_timeout", Pragmas: []string{"journal_mode(WAL)"}},
		{Name: "rollback_journal_no_busy_timeout", Pragmas: []string{"journal_mode(DELETE)", "synchronous(OFF)"}},
		{Name: "one_connection", Pragmas: []string{"journal_mode(WAL)"}, Conns: 1},
	}
}

// Open opens a file, closed when tb has ended.
func Open(tb testing.TB, file string, v Variant) *sql.DB {
	tb.Helper()
	dsn := url.URL{Scheme: "file", Path: filepath.ToSlash(file), RawQuery: url.Values{"_pragma": v.Pragmas}.Encode()}
	db, err := sql.Open("sqlite", dsn.String())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(cmp.Or(v.Conns, 4))
	db.SetMaxIdleConns(cmp.Or(v.Conns, 4)) // to open one takes longer than to use it
	return db
}

// Version asks the driver for SQLite's version.
func Version(tb testing.TB) string {
	tb.Helper()
	var version string
	if err := Open(tb, filepath.Join(tb.TempDir(), "version.db"), Variant{}).QueryRow("SELECT sqlite_version()").Scan(&version); err != nil {
		tb.Fatal(err)
	}
	return version
}

// Occupy takes the one write lock of a file, until the function that it returns
// is called.
func Occupy(tb testing.TB, file string) (free func()) {
	tb.Helper()
	conn, err := Open(tb, file, Variant{}).Conn(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.ExecContext(context.Background(), "BEGIN IMMEDIATE"); err != nil {
		tb.Fatal(err)
	}
	return func() {
		if _, err := conn.ExecContext(context.Background(), "ROLLBACK"); err != nil {
			tb.Error(err)
		}
	}
}

const table = `odd "table`

// now is the store's clock in SQL that is not the provider's.
const now = `CAST(round(unixepoch('subsec') * 1000) AS INTEGER)`

// Harness makes a file with a table, and clients of it.
func Harness(tb testing.TB, v Variant) conformancetest.Harness {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "locks 100%.db")
	admin := Open(tb, file, Variant{Pragmas: append(v.Pragmas, "busy_timeout(20000)")})
	open := func(tb testing.TB, file, table string, v Variant) *sqlite.Provider {
		tb.Helper()
		p, err := sqlite.New(Open(tb, file, v), sqlite.WithTable(table))
		if err != nil {
			tb.Fatal(err)
		}
		return p
	}
	if err := open(tb, file, table, v).EnsureSchema(context.Background()); err != nil {
		tb.Fatal(err)
	}
	quoted := `"` + strings.ReplaceAll(table, `"`, `""`) + `"`
	return conformancetest.Harness{
		Name: fmt.Sprintf("SQLite %s, %s", Version(tb), v.Name),
		Open: func(tb testing.TB) core.Provider { return open(tb, file, table, v) },
		Peek: func(ctx context.Context, name string) (conformancetest.Peeked, error) {
			var p conformancetest.Peeked
			var at, until, storeTime int64
			err := admin.QueryRowContext(ctx, `SELECT coalesce(max(name || '|' || lock_until || '|' || locked_at || '|' || locked_by || '|' || fence), ''),
				coalesce(max(locked_by), ''), coalesce(max(locked_at), 0), coalesce(max(lock_until), 0), `+now+`
				FROM `+quoted+` WHERE name = ?`, name).Scan(&p.Raw, &p.LockedBy, &at, &until, &storeTime)
			p.Found = p.Raw != ""
			p.LockedAt, p.LockedUntil, p.StoreTime = time.UnixMilli(at).UTC(), time.UnixMilli(until).UTC(), time.UnixMilli(storeTime).UTC()
			return p, err
		},
		Remove: func(ctx context.Context, name string) error {
			if _, err := admin.ExecContext(ctx, `DELETE FROM `+quoted+` WHERE name = ?`, name); err != nil {
				return err
			}
			// No operator is so quick that the next acquisition falls into the
			// millisecond of the one before: see the provider on fencing.
			for first := int64(0); ; {
				var t int64
				if err := admin.QueryRowContext(ctx, `SELECT `+now).Scan(&t); err != nil || first != 0 && t > first {
					return err
				}
				first = cmp.Or(first, t)
			}
		},
		Put: func(ctx context.Context, name, lockedBy string, since, until time.Duration) error {
			_, err := admin.ExecContext(ctx, `INSERT INTO `+quoted+` (name, lock_until, locked_at, locked_by)
				VALUES (?, `+now+` + ?, `+now+` + ?, ?)`, name, until.Milliseconds(), since.Milliseconds(), lockedBy)
			return err
		},
		Broken: map[string]conformancetest.Breakage{
			// A folder where the file should be: nothing can open it.
			"down": {Open: func(tb testing.TB) (core.Provider, func()) {
				tb.Helper()
				gone := filepath.Join(filepath.Dir(file), "gone", "locks.db")
				p := open(tb, gone, table, v)
				return p, func() {
					if err := os.Mkdir(filepath.Dir(gone), 0o700); err != nil {
						tb.Fatal(err)
					}
					if err := p.EnsureSchema(context.Background()); err != nil {
						tb.Fatal(err)
					}
				}
			}},
			"read_only": {Open: func(tb testing.TB) (core.Provider, func()) {
				tb.Helper()
				return open(tb, file, table, Variant{Pragmas: append([]string{"query_only(1)"}, v.Pragmas...)}), nil
			}},
			"no_table": {Open: func(tb testing.TB) (core.Provider, func()) {
				tb.Helper()
				p := open(tb, file, "missing "+rand.Text(), v)
				return p, func() {
					if err := p.EnsureSchema(context.Background()); err != nil {
						tb.Fatal(err)
					}
				}
			}},
			"busy": {Open: func(tb testing.TB) (core.Provider, func()) {
				tb.Helper()
				other := filepath.Join(filepath.Dir(file), rand.Text())
				db := Open(tb, other, Variant{Pragmas: v.Pragmas[:1]}) // without busy_timeout, which would only take longer
				p, err := sqlite.New(db, sqlite.WithTable(table), sqlite.WithBusyLimit(20*time.Millisecond))
				if err != nil {
					tb.Fatal(err)
				}
				if err := p.EnsureSchema(context.Background()); err != nil {
					tb.Fatal(err)
				}
				return p, Occupy(tb, other)
			}},
			"not_a_database": {Open: func(tb testing.TB) (core.Provider, func()) {
				tb.Helper()
				text := filepath.Join(filepath.Dir(file), rand.Text())
				if err := os.WriteFile(text, []byte(strings.Repeat("this is no database\n", 100)), 0o600); err != nil {
					tb.Fatal(err)
				}
				return open(tb, text, table, Variant{}), nil
			}},
		},
		PoolOfOne: func(tb testing.TB) (core.Provider, func(testing.TB) func()) {
			tb.Helper()
			db := Open(tb, file, Variant{Pragmas: v.Pragmas, Conns: 1})
			p, err := sqlite.New(db, sqlite.WithTable(table))
			if err != nil {
				tb.Fatal(err)
			}
			return p, func(tb testing.TB) func() {
				tb.Helper()
				conn, err := db.Conn(context.Background())
				if err != nil {
					tb.Fatal(err)
				}
				return func() { _ = conn.Close() }
			}
		},
	}
}
