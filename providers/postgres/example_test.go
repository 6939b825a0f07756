package postgres_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/providers/postgres"
)

// A job of which one replica at a time runs.
func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://app@localhost/app")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()

	provider, err := postgres.New(pool)
	if err != nil {
		log.Fatal(err)
	}
	locker, err := core.New(provider)
	if err != nil {
		log.Fatal(err)
	}
	report := core.Lock{Name: "report", AtMostFor: 30 * time.Minute, AtLeastFor: time.Minute}
	result, err := locker.Run(ctx, report, func(ctx context.Context) error {
		return nil // the work
	})
	fmt.Println(result.Outcome, err)
}

// A pool, or a connection, that is ready for use.
func ExampleNew() {
	pool, err := pgxpool.New(context.Background(), "postgres://app@localhost/app")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	provider, err := postgres.New(pool, postgres.WithTable("jobs", "shedlock"))
	fmt.Println(provider != nil, err)
	// Output: true <nil>
}

// The DDL, for a migration.
func ExampleProvider_Schema() {
	pool, err := pgxpool.New(context.Background(), "postgres://app@localhost/app")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	provider, err := postgres.New(pool, postgres.WithTable("jobs", "Locks"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(provider.Schema())
	// Output:
	// CREATE TABLE IF NOT EXISTS "jobs"."Locks" (
	// 	"name" varchar(64) NOT NULL PRIMARY KEY,
	// 	"lock_until" timestamp NOT NULL,
	// 	"locked_at" timestamp NOT NULL,
	// 	"locked_by" varchar(255) NOT NULL
	// );
}

// A table whose columns have names of their own.
func ExampleWithColumns() {
	pool, err := pgxpool.New(context.Background(), "postgres://app@localhost/app")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	columns := postgres.DefaultColumns()
	columns.Name, columns.LockedBy = "job", "host"
	provider, err := postgres.New(pool, postgres.WithColumns(columns))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(provider.Schema())
	// Output:
	// CREATE TABLE IF NOT EXISTS "shedlock" (
	// 	"job" varchar(64) NOT NULL PRIMARY KEY,
	// 	"lock_until" timestamp NOT NULL,
	// 	"locked_at" timestamp NOT NULL,
	// 	"host" varchar(255) NOT NULL
	// );
}

// At a service's start, if no migration makes the table. All replicas may do so
// at once.
func ExampleProvider_EnsureSchema() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://app@localhost/app")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	provider, err := postgres.New(pool)
	if err != nil {
		log.Fatal(err)
	}
	if err := provider.EnsureSchema(ctx); err != nil {
		log.Fatal(err)
	}
}
