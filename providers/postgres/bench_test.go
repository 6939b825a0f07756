package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/internal/contest"
)

// BenchmarkAcquireRelease compares an acquisition and its release through the
// Provider and through core.Locker with the same two statements on bare pgx.
func BenchmarkAcquireRelease(b *testing.B) {
	f := newFixture(b)
	ctx := b.Context()
	p := f.provider(f.pool)
	locker, err := core.New(p)
	if err != nil {
		b.Fatal(err)
	}
	acquire, release := p.Statements()
	hour := time.Hour.Microseconds()
	bare := func(sql string, args ...any) error {
		var name, by string
		var at, until, now int64
		return f.pool.QueryRow(ctx, sql, args...).Scan(&name, &by, &at, &until, &now)
	}
	contest.Run(b,
		contest.Alone(b, "bare", func() error {
			holder := core.FormatHolder("test", rand.Text())
			return errors.Join(bare(acquire, "bare", holder, hour), bare(release, "bare", holder, int64(1)))
		}),
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
}

// BenchmarkLoser compares an attempt on a held lock with the cheapest statement
// there is, and with the upsert that is usual elsewhere. Eight at a time.
func BenchmarkLoser(b *testing.B) {
	f := newFixture(b)
	ctx := b.Context()
	p := f.provider(f.pool)
	f.acquire(p, "held")
	upsert := `INSERT INTO ` + f.table.Sanitize() + ` AS l (name, lock_until, locked_at, locked_by)
		VALUES ($1, timezone('utc', clock_timestamp()) + interval '1 hour', timezone('utc', clock_timestamp()), $2)
		ON CONFLICT (name) DO UPDATE SET lock_until = excluded.lock_until, locked_at = excluded.locked_at, locked_by = excluded.locked_by
		WHERE l.lock_until <= timezone('utc', clock_timestamp())`
	contest.Run(b,
		contest.Eight(b, "select1", func() error {
			var one int
			return f.pool.QueryRow(ctx, "SELECT 1").Scan(&one)
		}),
		contest.Eight(b, "provider", func() error {
			if _, err := p.Acquire(ctx, claim("held")); !errors.Is(err, core.ErrHeld) {
				return errors.Join(errors.New("not held"), err)
			}
			return nil
		}),
		contest.Eight(b, "upsert", func() error {
			tag, err := f.pool.Exec(ctx, upsert, "held", core.FormatHolder("test", rand.Text()))
			if tag.RowsAffected() != 0 {
				return errors.New("not held")
			}
			return err
		}),
	)
}

// BenchmarkAllocations is for allocs/op: of the Provider's calls, and of the same
// statements on bare pgx.
func BenchmarkAllocations(b *testing.B) {
	f := newFixture(b)
	p := f.provider(f.pool)
	acquire, release := p.Statements()
	ctx := context.Background()
	b.Run("provider", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			g, err := p.Acquire(ctx, claim("provider"))
			if err = errors.Join(err, p.Release(ctx, g, 0)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		call := func(sql string, args ...any) error {
			rows, err := f.pool.Query(ctx, sql, args...)
			if err != nil {
				return err
			}
			var name, by string
			var at, until, now int64
			_, err = pgx.ForEachRow(rows, []any{&name, &by, &at, &until, &now}, func() error { return nil })
			return err
		}
		for b.Loop() {
			holder := core.FormatHolder("test", rand.Text())
			if err := errors.Join(call(acquire, "bare", holder, time.Hour.Microseconds()), call(release, "bare", holder, int64(1))); err != nil {
				b.Fatal(err)
			}
		}
	})
}
