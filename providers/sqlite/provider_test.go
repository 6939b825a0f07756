package sqlite_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/internal/sqlitetest"
	"github.com/shedbolt/shedbolt/providers/sqlite"
)

func newFile(tb testing.TB) string {
	tb.Helper()
	return filepath.Join(tb.TempDir(), "locks.db")
}

func newProvider(tb testing.TB, db *sql.DB, opts ...sqlite.Option) *sqlite.Provider {
	tb.Helper()
	p, err := sqlite.New(db, opts...)
	if err != nil {
		tb.Fatal(err)
	}
	if err := p.EnsureSchema(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return p
}

func claim(name string) core.Claim {
	return core.Claim{Name: name, Owner: "test", Token: rand.Text(), AtMostFor: time.Hour}
}

func acquire(tb testing.TB, p *sqlite.Provider, name string) core.Grant {
	tb.Helper()
	g, err := p.Acquire(tb.Context(), claim(name))
	if err != nil {
		tb.Fatalf("Acquire: %v", err)
	}
	return g
}

func TestNewRefuses(t *testing.T) {
	if _, err := sqlite.New(nil); err == nil {
		t.Error("New(nil) succeeded")
	}
	db := sqlitetest.Open(t, newFile(t), sqlitetest.Plain)
	for _, parts := range [][]string{{}, {""}, {"main", ""}, {"a", "b", "c"}, {"a\x00b"}} {
		if _, err := sqlite.New(db, sqlite.WithTable(parts...)); err == nil {
			t.Errorf("WithTable(%q) was accepted", parts)
		}
	}
	if _, err := sqlite.New(db, sqlite.WithBusyLimit(-1)); err == nil {
		t.Error("a negative busy limit was accepted")
	}
}

func TestTableOfAttachedDatabase(t *testing.T) {
	db := sqlitetest.Open(t, newFile(t), sqlitetest.Variant{Conns: 1})
	if _, err := db.Exec(`ATTACH ? AS "other one"`, newFile(t)); err != nil {
		t.Fatal(err)
	}
	acquire(t, newProvider(t, db, sqlite.WithTable("other one", `a "table".`)), "job")
}

// TestClock compares the statements' arithmetic with the milliseconds that went
// in, for instants of this century.
func TestClock(t *testing.T) {
	db := sqlitetest.Open(t, newFile(t), sqlitetest.Plain)
	query := "SELECT " + strings.Replace(sqlite.Now, "'now'", "?1", 1)
	start := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 5000 {
		want := start.Add(time.Duration(i) * 139_800_001 * time.Millisecond) // until 2042
		var got int64
		if err := db.QueryRow(query, want.Format("2006-01-02 15:04:05.000")).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want.UnixMilli() {
			t.Fatalf("%v is %d ms, want %d", want, got, want.UnixMilli())
		}
	}
}

func TestEnsureSchemaAtOnce(t *testing.T) {
	for _, v := range sqlitetest.Variants() {
		t.Run(v.Name, func(t *testing.T) {
			file := newFile(t)
			var wg sync.WaitGroup
			for range 10 {
				db := sqlitetest.Open(t, file, v)
				wg.Go(func() {
					p, err := sqlite.New(db)
					if err == nil {
						err = p.EnsureSchema(t.Context())
					}
					if err != nil {
						t.Errorf("one of ten EnsureSchema at once: %v", err)
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestLosersWriteNothing(t *testing.T) {
	for _, v := range sqlitetest.Variants() {
		t.Run(v.Name, func(t *testing.T) {
			file := newFile(t)
			p := newProvider(t, sqlitetest.Open(t, file, v))
			acquire(t, p, "job")
			state := func() string {
				t.Helper()
				var all strings.Builder
				for _, suffix := range []string{"", "-wal", "-journal"} {
					info, err := os.Stat(file + suffix)
					if err != nil && !errors.Is(err, os.ErrNotExist) {
						t.Fatal(err)
					}
					if err == nil {
						fmt.Fprintf(&all, "%s: %d bytes, written %v; ", info.Name(), info.Size(), info.ModTime())
					}
				}
				return all.String()
			}
			before := state()
			// Also while somebody else is writing: losers need no write lock.
			free := sqlitetest.Occupy(t, file)
			for range 1000 {
				if _, err := p.Acquire(t.Context(), claim("job")); !errors.Is(err, core.ErrHeld) {
					t.Fatalf("Acquire of a held lock = %v, want ErrHeld", err)
				}
			}
			free()
			if after := state(); after != before {
				t.Errorf("1,000 refused attempts changed the files\nfrom %s\nto   %s", before, after)
			}
		})
	}
}

func TestBusy(t *testing.T) {
	file := newFile(t)
	db := sqlitetest.Open(t, file, sqlitetest.Variant{Conns: 1})
	p := newProvider(t, db, sqlite.WithBusyLimit(50*time.Millisecond))
	free := sqlitetest.Occupy(t, file)
	_, err := p.Acquire(t.Context(), claim("job"))
	if err == nil || errors.Is(err, core.ErrHeld) || errors.Is(err, core.ErrUncertain) || !strings.Contains(err.Error(), "busy for 50ms") {
		t.Errorf("Acquire on a database that stays busy = %v, want an error that says for how long", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	patient := newProvider(t, db, sqlite.WithBusyLimit(time.Hour))
	if _, err := patient.Acquire(ctx, claim("job")); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, core.ErrHeld) {
		t.Errorf("Acquire on a busy database until its context ends = %v, want context.DeadlineExceeded", err)
	}
	done := make(chan error)
	go func() {
		_, err := patient.Acquire(t.Context(), claim("job"))
		done <- err
	}()
	free()
	if err := <-done; err != nil {
		t.Errorf("Acquire on a database that was busy for a while: %v", err)
	}
	var own int
	if err := db.QueryRow("PRAGMA busy_timeout").Scan(&own); err != nil || own != 0 {
		t.Errorf("the caller's connection has busy_timeout %d, %v, want 0 as before", own, err)
	}
	g := acquire(t, newProvider(t, db, sqlite.WithBusyLimit(0)), "another")
	free = sqlitetest.Occupy(t, file)
	defer free()
	once := newProvider(t, db, sqlite.WithBusyLimit(0))
	if err := once.Release(t.Context(), g, 0); err == nil || errors.Is(err, core.ErrLost) || errors.Is(err, core.ErrUncertain) {
		t.Errorf("Release on a busy database with one try = %v, want SQLite's own error", err)
	}
}

// TestFenceAfterClockSetBack plays a host whose clock is set back by an hour
// between two acquisitions: seen from then on, the first was an hour ahead.
func TestFenceAfterClockSetBack(t *testing.T) {
	db := sqlitetest.Open(t, newFile(t), sqlitetest.Plain)
	p := newProvider(t, db)
	first := acquire(t, p, "job")
	ahead := first.Fence + time.Hour.Microseconds()
	if _, err := db.Exec("UPDATE shedlock SET fence = ?, lock_until = 0", ahead); err != nil {
		t.Fatal(err)
	}
	if g := acquire(t, p, "job"); g.Fence != ahead+1 {
		t.Errorf("the fence went from %d to %d, want one more", ahead, g.Fence)
	}
}

func TestReadOnlyFile(t *testing.T) {
	file := newFile(t)
	writable := sqlitetest.Open(t, file, sqlitetest.Variant{})
	acquire(t, newProvider(t, writable), "held")
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(file)+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	p, err := sqlite.New(db)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Acquire(t.Context(), claim("free")); err == nil || errors.Is(err, core.ErrHeld) || errors.Is(err, core.ErrUncertain) {
		t.Errorf("Acquire of a free lock in a read-only file = %v, want an error", err)
	}
	held, ok := errors.AsType[*core.HeldError](func() error { _, err := p.Acquire(t.Context(), claim("held")); return err }())
	if !ok || held.Owner != "test" {
		t.Errorf("Acquire of a held lock in a read-only file = %v, want its holder", held)
	}
}

// Environment of the child processes of TestManyProcesses.
const childVar = "SHEDBOLT_SQLITE_TEST_CHILD"

// TestManyProcesses has several processes add to a counter that nothing protects
// but the lock. They are this test again, with an environment variable set.
func TestManyProcesses(t *testing.T) {
	const processes, each = 4, 40
	if folder := os.Getenv(childVar); folder != "" {
		count(t, folder, each)
		return
	}
	folder := t.TempDir()
	p := newProvider(t, sqlitetest.Open(t, filepath.Join(folder, "locks.db"), sqlitetest.Plain))
	counter := filepath.Join(folder, "counter")
	if err := os.WriteFile(counter, []byte("0"), 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestManyProcesses$", "-test.count=1", "-test.timeout=2m")
			cmd.Env = append(os.Environ(), childVar+"="+folder)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v\n%s", i, err, out)
			}
		})
	}
	wg.Wait()
	text, err := os.ReadFile(counter)
	if err != nil || string(text) != strconv.Itoa(processes*each) {
		t.Errorf("the counter says %q, %v, want %d", text, err, processes*each)
	}
	acquire(t, p, "counter")
}

// count adds to the counter, under the lock, some times.
func count(t *testing.T, folder string, times int) {
	t.Helper()
	p := newProvider(t, sqlitetest.Open(t, filepath.Join(folder, "locks.db"), sqlitetest.Plain))
	locker, err := core.New(p)
	if err != nil {
		t.Fatal(err)
	}
	counter := filepath.Join(folder, "counter")
	for done := 0; done < times; {
		result, err := locker.Run(t.Context(), core.Lock{Name: "counter", AtMostFor: time.Minute}, func(context.Context) error {
			text, err := os.ReadFile(counter)
			if err != nil {
				return err
			}
			n, err := strconv.Atoi(string(text))
			if err != nil {
				return err
			}
			return os.WriteFile(counter, []byte(strconv.Itoa(n+1)), 0o600)
		})
		if err != nil {
			t.Fatal(err)
		}
		if result.Outcome == core.Ran {
			done++
		}
	}
}
