package sqlite_test

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/internal/sqlitetest"
)

// BenchmarkAcquireRelease is an acquisition of a free lock and its release,
// through the Provider and with the same three statements on the bare driver.
func BenchmarkAcquireRelease(b *testing.B) {
	db := sqlitetest.Open(b, newFile(b), sqlitetest.Plain)
	p := newProvider(b, db)
	b.Run("provider", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			g, err := p.Acquire(b.Context(), claim("provider"))
			if err = errors.Join(err, p.Release(b.Context(), g, 0)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		inspect, acquire, release := p.Statements()
		call := func(query string, args ...any) (found int) {
			b.Helper()
			rows, err := db.QueryContext(b.Context(), query, args...)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = rows.Close() }()
			for rows.Next() {
				found++
				var name, by string
				var at, until, fence, now int64
				if err := rows.Scan(&name, &by, &at, &until, &fence, &now); err != nil {
					b.Fatal(err)
				}
			}
			if err := rows.Err(); err != nil {
				b.Fatal(err)
			}
			return found
		}
		for b.Loop() {
			holder := core.FormatHolder("test", rand.Text())
			call(inspect, "bare")
			if call(acquire, "bare", holder, time.Hour.Milliseconds())+call(release, "bare", holder, 0) != 2 {
				b.Fatal("the lock was not free")
			}
		}
	})
}

// BenchmarkLoser is an attempt on a held lock.
func BenchmarkLoser(b *testing.B) {
	p := newProvider(b, sqlitetest.Open(b, newFile(b), sqlitetest.Plain))
	acquire(b, p, "held")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Acquire(b.Context(), claim("held")); !errors.Is(err, core.ErrHeld) {
			b.Fatalf("Acquire of a held lock = %v, want ErrHeld", err)
		}
	}
}
