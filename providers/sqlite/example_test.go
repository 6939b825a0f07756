package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // any driver for SQLite

	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/providers/sqlite"
)

// open opens a file in the way that suits locks best. The names of the settings
// are the driver's.
func open(folder string) *sql.DB {
	file := filepath.ToSlash(filepath.Join(folder, "locks.db"))
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)")
	if err != nil {
		log.Fatal(err)
	}
	return db
}

// A job of which one process on this host at a time runs.
func Example() {
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	db := open(folder)
	defer func() { _ = db.Close() }()
	ctx := context.Background()

	provider, err := sqlite.New(db)
	if err != nil {
		log.Fatal(err)
	}
	if err := provider.EnsureSchema(ctx); err != nil {
		log.Fatal(err)
	}
	locker, err := core.New(provider)
	if err != nil {
		log.Fatal(err)
	}
	report := core.Lock{Name: "report", AtMostFor: 30 * time.Minute, AtLeastFor: time.Minute}
	for range 2 {
		result, err := locker.Run(ctx, report, func(ctx context.Context) error {
			return nil // the work
		})
		fmt.Println(result.Outcome, err)
	}
	// Output:
	// ran <nil>
	// skipped <nil>
}

// A database that is ready for use; nothing is read or written.
func ExampleNew() {
	db := open(".")
	defer func() { _ = db.Close() }()
	provider, err := sqlite.New(db, sqlite.WithBusyLimit(10*time.Second))
	fmt.Println(provider != nil, err)
	// Output: true <nil>
}

// The DDL, for a migration.
func ExampleProvider_Schema() {
	db := open(".")
	defer func() { _ = db.Close() }()
	provider, err := sqlite.New(db, sqlite.WithTable("job locks"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(provider.Schema())
	// Output:
	// CREATE TABLE IF NOT EXISTS "job locks" (
	// 	name TEXT NOT NULL PRIMARY KEY,
	// 	lock_until INTEGER NOT NULL,
	// 	locked_at INTEGER NOT NULL,
	// 	locked_by TEXT NOT NULL,
	// 	fence INTEGER NOT NULL DEFAULT 0
	// );
}
