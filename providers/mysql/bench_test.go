package mysql_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/internal/contest"
)

// settings are the ways to open a pool that make a difference in round trips.
var settings = []struct {
	name   string
	change change
}{{"default", nil}, {"multi_statements", multiStatements}}

// BenchmarkAcquireRelease compares an acquisition and its release through the
// Provider and through core.Locker with the same statements on bare database/sql.
func BenchmarkAcquireRelease(b *testing.B) {
	for _, s := range settings {
		b.Run(s.name, func(b *testing.B) {
			f := newFixture(b)
			ctx := b.Context()
			db := f.pool(s.change)
			p := f.provider(db)
			locker, err := core.New(p)
			if err != nil {
				b.Fatal(err)
			}
			f.release(p, f.acquire(p, "bare")) // the record
			bare := func() error {
				claim, release := p.Statements("bare", core.FormatHolder("test", rand.Text()), time.Hour.Microseconds())
				for _, statement := range claim {
					if strings.HasPrefix(statement, "UPDATE") {
						if err := exec(ctx, db, statement); err != nil {
							return err
						}
						continue
					}
					var name, by string
					var at, until, now, fence int64
					if err := db.QueryRowContext(ctx, statement).Scan(&name, &by, &at, &until, &now, &fence); err != nil {
						return err
					}
				}
				return exec(ctx, db, release)
			}
			contest.Run(b,
				contest.Alone(b, "bare", bare),
				contest.Alone(b, "provider", func() error {
					g, err := p.Acquire(ctx, claim("provider"))
					return errors.Join(err, p.Release(ctx, g, 0))
				}),
				contest.Alone(b, "locker", func() error {
					lease, err := locker.TryLock(ctx, core.Lock{Name: "locker", AtMostFor: time.Hour})
					if err != nil {
						return err
					}
					return lease.Release(ctx)
				}),
			)
		})
	}
}

func exec(ctx context.Context, db *sql.DB, statement string) error {
	result, err := db.ExecContext(ctx, statement)
	if err != nil {
		return err
	}
	if id, err := result.LastInsertId(); err != nil || id == 0 {
		return errors.Join(errors.New("nothing was changed"), err)
	}
	return nil
}

// BenchmarkLoser compares an attempt on a held lock with the cheapest statement
// there is, and with the upsert that is usual elsewhere. Eight at a time.
func BenchmarkLoser(b *testing.B) {
	for _, s := range settings {
		b.Run(s.name, func(b *testing.B) {
			f := newFixture(b)
			ctx := b.Context()
			db := f.pool(s.change)
			db.SetMaxIdleConns(8)
			p := f.provider(db)
			f.acquire(p, "held")
			// Assignments are made in order, so lock_until comes last.
			const free = "lock_until <= UTC_TIMESTAMP(3)"
			upsert := "INSERT INTO shedlock (name, lock_until, locked_at, locked_by) VALUES ('held', UTC_TIMESTAMP(3) + INTERVAL 1 HOUR, UTC_TIMESTAMP(3), 'another') " +
				"ON DUPLICATE KEY UPDATE locked_by = IF(" + free + ", VALUES(locked_by), locked_by), " +
				"locked_at = IF(" + free + ", VALUES(locked_at), locked_at), lock_until = IF(" + free + ", VALUES(lock_until), lock_until)"
			contest.Run(b,
				contest.Eight(b, "select1", func() error {
					var one int
					return db.QueryRowContext(ctx, "SELECT 1").Scan(&one)
				}),
				contest.Eight(b, "provider", func() error {
					if _, err := p.Acquire(ctx, claim("held")); !errors.Is(err, core.ErrHeld) {
						return errors.Join(errors.New("not held"), err)
					}
					return nil
				}),
				contest.Eight(b, "upsert", func() error {
					result, err := db.ExecContext(ctx, upsert)
					if err != nil {
						return err
					}
					if n, err := result.RowsAffected(); err != nil || n != 0 {
						return errors.Join(errors.New("not held"), err)
					}
					return nil
				}),
			)
		})
	}
}
