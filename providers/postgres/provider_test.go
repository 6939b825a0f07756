package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/internal/pgtest"
	"github.com/shedbolt/shedbolt/providers/postgres"
)

// fixture is a schema of a test's own, with an empty table in it.
type fixture struct {
	testing.TB
	dsn   string
	table pgx.Identifier
	pool  *pgxpool.Pool // the test's own, beside the provider under test
}

func newFixture(tb testing.TB) *fixture {
	tb.Helper()
	f := &fixture{TB: tb, dsn: dsn(tb)}
	f.table = pgx.Identifier{pgtest.Schema(tb, f.dsn, "shedbolt"), "shedlock"}
	f.pool = f.newPool(nil)
	if err := f.provider(f.pool).EnsureSchema(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return f
}

func (f *fixture) newPool(change func(*pgxpool.Config)) *pgxpool.Pool {
	f.Helper()
	config, err := pgxpool.ParseConfig(f.dsn)
	if err != nil {
		f.Fatal(err)
	}
	if change != nil {
		change(config)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(pool.Close)
	return pool
}

func (f *fixture) conn() *pgx.Conn {
	f.Helper()
	conn, err := pgx.Connect(f.Context(), f.dsn)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func (f *fixture) provider(db postgres.DB) *postgres.Provider {
	f.Helper()
	p, err := postgres.New(db, postgres.WithTable(f.table...))
	if err != nil {
		f.Fatal(err)
	}
	return p
}

// exec runs a statement with the table's name for %s.
func (f *fixture) exec(sql string, args ...any) {
	f.Helper()
	if _, err := f.pool.Exec(f.Context(), strings.ReplaceAll(sql, "%s", f.table.Sanitize()), args...); err != nil {
		f.Fatalf("%s: %v", sql, err)
	}
}

func (f *fixture) acquire(p *postgres.Provider, name string) core.Grant {
	f.Helper()
	g, err := p.Acquire(f.Context(), claim(name))
	if err != nil {
		f.Fatalf("Acquire: %v", err)
	}
	return g
}

func claim(name string) core.Claim {
	return core.Claim{Name: name, Owner: "test", Token: rand.Text(), AtMostFor: time.Hour}
}

// serializable makes it a session's default.
func serializable(c *pgxpool.Config) {
	c.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable"
}

func TestNewRefuses(t *testing.T) {
	if _, err := postgres.New(nil); err == nil {
		t.Error("New(nil) succeeded")
	}
	if _, err := postgres.New(struct{ pgx.Tx }{}); err == nil || !strings.Contains(err.Error(), "transaction") {
		t.Errorf("New with a transaction = %v, want an error that says so", err)
	}
	for _, parts := range [][]string{{}, {""}, {"schema", ""}, {"db", "schema", "table"}} {
		if _, err := postgres.New(&pgxpool.Pool{}, postgres.WithTable(parts...)); err == nil {
			t.Errorf("WithTable(%q) was accepted", parts)
		}
	}
}

func TestOpenTransactionIsRefused(t *testing.T) {
	f := newFixture(t)
	conn := f.conn()
	p := f.provider(conn)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := postgres.New(tx); err == nil {
		t.Error("New with a transaction succeeded")
	}
	_, err = p.Acquire(t.Context(), claim("job"))
	if err == nil || errors.Is(err, core.ErrHeld) || errors.Is(err, core.ErrUncertain) || !strings.Contains(err.Error(), "transaction open") {
		t.Errorf("Acquire inside the caller's transaction = %v, want an error that says so", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.acquire(p, "job")
}

// block makes a free lock's row one on which every claim has to wait, until the
// function it returns is called.
func (f *fixture) block(name string) (unblock func()) {
	f.Helper()
	f.exec(`INSERT INTO %s (name, lock_until, locked_at, locked_by) VALUES ($1, 'epoch', 'epoch', 'nobody')`, name)
	tx, err := f.pool.Begin(context.Background())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	if _, err := tx.Exec(f.Context(), "SELECT FROM "+f.table.Sanitize()+" WHERE name = $1 FOR UPDATE", name); err != nil {
		f.Fatal(err)
	}
	return func() { _ = tx.Rollback(context.Background()) }
}

// awaitBlocked returns the server's process that waits for a row of the table.
func (f *fixture) awaitBlocked() (pid int32) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), 10*time.Second)
	defer cancel()
	for {
		err := f.pool.QueryRow(ctx, `SELECT pid FROM pg_stat_activity
			WHERE wait_event_type = 'Lock' AND position($1 IN query) > 0`, f.table.Sanitize()).Scan(&pid)
		switch {
		case err == nil:
			return pid
		case !errors.Is(err, pgx.ErrNoRows):
			f.Fatalf("no call waits for the row: %v", err)
		}
	}
}

func TestBareConnection(t *testing.T) {
	f := newFixture(t)
	p := f.provider(f.conn())
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if _, err := p.Acquire(t.Context(), claim(fmt.Sprint("job ", i))); err != nil {
				t.Errorf("one of 20 calls at once: %v", err)
			}
		})
	}
	wg.Wait()

	unblock := f.block("blocked")
	wg.Go(func() {
		if _, err := p.Acquire(t.Context(), claim("blocked")); err != nil {
			t.Errorf("Acquire that had to wait for a row: %v", err)
		}
	})
	f.awaitBlocked()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Acquire(ctx, claim("next")); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, core.ErrUncertain) {
		t.Errorf("Acquire while the connection is in use = %v, want a certain context.DeadlineExceeded", err)
	}
	unblock()
	wg.Wait()

	f.block("blocked again")
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Acquire(ctx, claim("blocked again")); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, core.ErrUncertain) {
		t.Errorf("Acquire that outlasts its context = %v, want an uncertain context.DeadlineExceeded", err)
	}
	if _, err := p.Acquire(t.Context(), claim("next")); err == nil || !strings.Contains(err.Error(), "connection is closed") || errors.Is(err, core.ErrUncertain) {
		t.Errorf("Acquire after pgx has closed the connection = %v, want an error that says so", err)
	}
}

func TestUncertainErrors(t *testing.T) {
	f := newFixture(t)
	for name, test := range map[string]struct {
		change    func(*pgxpool.Config)
		end       func(pid int32) // of a call that waits for a row
		code      string
		uncertain bool
	}{
		"the session is terminated": {
			end: func(pid int32) { f.exec("SELECT pg_terminate_backend($1)", pid) }, code: "57P01", uncertain: true,
		},
		"the statement is cancelled": {
			end: func(pid int32) { f.exec("SELECT pg_cancel_backend($1)", pid) }, code: "57014",
		},
		"the server's lock_timeout": {
			change: func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["lock_timeout"] = "50ms" }, code: "55P03",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := f.provider(f.newPool(test.change))
			f.acquire(p, "warm-up of "+name)
			defer f.block(name)()
			done := make(chan error)
			go func() {
				_, err := p.Acquire(t.Context(), claim(name))
				done <- err
			}()
			if test.end != nil {
				test.end(f.awaitBlocked())
			}
			err := <-done
			pgErr, ok := errors.AsType[*pgconn.PgError](err)
			if !ok || pgErr.Code != test.code || errors.Is(err, core.ErrUncertain) != test.uncertain {
				t.Errorf("Acquire = %v, want PostgreSQL's %s, uncertain: %v", err, test.code, test.uncertain)
			}
			f.acquire(p, "after "+name)
		})
	}
}

func TestEnsureSchemaAtOnce(t *testing.T) {
	f := newFixture(t)
	for round := range 5 {
		f.table[1] = fmt.Sprint("Table ", round)
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 10 {
			p := f.provider(f.conn())
			wg.Go(func() {
				<-start
				if err := p.EnsureSchema(t.Context()); err != nil {
					t.Errorf("one of ten EnsureSchema at once: %v", err)
				}
			})
		}
		close(start)
		wg.Wait()
		f.acquire(f.provider(f.pool), "job")
	}
}

// TestEnsureSchemaWithoutRights is how a service runs whose table a migration
// made.
func TestEnsureSchemaWithoutRights(t *testing.T) {
	f := newFixture(t)
	role := "shedbolt_" + strings.ToLower(rand.Text()[:12])
	f.exec("CREATE ROLE " + role)
	t.Cleanup(func() {
		ctx := context.Background()
		_, err := f.pool.Exec(ctx, "DROP OWNED BY "+role)
		_, err2 := f.pool.Exec(ctx, "DROP ROLE "+role)
		if err := errors.Join(err, err2); err != nil {
			t.Error(err)
		}
	})
	f.exec("GRANT USAGE ON SCHEMA " + f.table[:1].Sanitize() + " TO " + role)
	f.exec("GRANT SELECT, INSERT, UPDATE ON %s TO " + role)
	pool := f.newPool(func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["role"] = role })
	p := f.provider(pool)
	if err := p.EnsureSchema(t.Context()); err != nil {
		t.Errorf("EnsureSchema of a table that exists: %v", err)
	}
	f.acquire(p, "job")
	f.table[1] = "another"
	err := f.provider(pool).EnsureSchema(t.Context())
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); !ok || pgErr.Code != "42501" {
		t.Errorf("EnsureSchema of a missing table without rights = %v, want PostgreSQL's 42501", err)
	}
	if n := pool.Stat().TotalConns(); n != 1 {
		t.Errorf("the pool has %d connections, want the one that it had: rolled back and kept", n)
	}
}

func TestTableIsChecked(t *testing.T) {
	f := newFixture(t)
	f.exec(`CREATE COLLATION ` + f.table[:1].Sanitize() + `.loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`)
	loose := f.table[:1].Sanitize() + ".loose"
	for _, test := range []struct{ alter, want string }{
		{"ALTER lock_until TYPE timestamptz", `"lock_until" is timestamp with time zone`},
		{"ALTER locked_at TYPE timestamptz", `"locked_at" is timestamp with time zone`},
		{"ALTER lock_until TYPE timestamp(3)", `"lock_until" is timestamp(3)`},
		{"ALTER locked_at TYPE text", `"locked_at" is text`},
		{"ALTER name TYPE char(64)", `"name" is character(64)`},
		{"ALTER name TYPE varchar(64) COLLATE " + loose, `"name" has a non-deterministic collation`},
		{"ALTER locked_by TYPE varchar(255) COLLATE " + loose, `"locked_by" has a non-deterministic collation`},
		{"DROP locked_by", `"locked_by" is missing`},
		{"DROP lock_until", `"lock_until" is missing`},
		{"DROP CONSTRAINT shedlock_pkey", "42P10"}, // PostgreSQL's own
	} {
		f.exec("DROP TABLE %s")
		p := f.provider(f.pool)
		if err := p.EnsureSchema(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.exec("ALTER TABLE %s " + test.alter)
		_, err := p.Acquire(t.Context(), claim("job"))
		if err == nil || errors.Is(err, core.ErrHeld) || errors.Is(err, core.ErrUncertain) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("after %s: Acquire = %v, want an error with %q", test.alter, err, test.want)
		}
	}
	f.exec("DROP TABLE %s")
	p := f.provider(f.pool)
	if err := p.EnsureSchema(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.exec("ALTER TABLE %s ALTER name TYPE text, ALTER locked_by TYPE varchar, ADD extra text, ADD id bigint GENERATED ALWAYS AS IDENTITY")
	f.acquire(p, "job")
}

// TestLosersWriteNothing looks at the server's whole write-ahead log, in which
// the server itself may write too. So it is enough that one of several rounds
// leaves it as it was; attempts that write would not leave one.
func TestLosersWriteNothing(t *testing.T) {
	f := newFixture(t)
	const attempts, rounds = 10000, 5
	for name, change := range map[string]func(*pgxpool.Config){"plain": nil, "in transactions": serializable} {
		t.Run(name, func(t *testing.T) {
			p := f.provider(f.newPool(change))
			if change != nil {
				f.fail40001(p)
			}
			f.acquire(p, name)
			state := func() (wal, row string) {
				t.Helper()
				err := f.pool.QueryRow(t.Context(), "SELECT pg_current_wal_insert_lsn()::text, xmin::text || xmax::text || ctid::text FROM "+
					f.table.Sanitize()+" WHERE name = $1", name).Scan(&wal, &row)
				if err != nil {
					t.Fatal(err)
				}
				return wal, row
			}
			for round := 1; ; round++ {
				wal, row := state()
				for range attempts {
					if _, err := p.Acquire(t.Context(), claim(name)); !errors.Is(err, core.ErrHeld) {
						t.Fatalf("Acquire of a held lock = %v, want ErrHeld", err)
					}
				}
				walAfter, rowAfter := state()
				if rowAfter != row {
					t.Fatalf("%d refused attempts changed the row from %s to %s", attempts, row, rowAfter)
				}
				if walAfter == wal {
					return
				}
				if round == rounds {
					t.Fatalf("in each of %d rounds of %d refused attempts the write-ahead log grew, lastly from %s to %s", rounds, attempts, wal, walAfter)
				}
			}
		})
	}
}

// fail40001 makes a provider meet a serialization failure.
func (f *fixture) fail40001(p *postgres.Provider) {
	f.Helper()
	name := "serialization failure " + strings.ToLower(rand.Text()[:8])
	f.block(name)()
	tx, err := f.pool.Begin(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	if _, err := tx.Exec(f.Context(), "UPDATE "+f.table.Sanitize()+" SET locked_by = 'somebody' WHERE name = $1", name); err != nil {
		f.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := p.Acquire(f.Context(), claim(name))
		done <- err
	}()
	f.awaitBlocked()
	if err := tx.Commit(f.Context()); err != nil {
		f.Error(err)
	}
	if err := <-done; err != nil {
		f.Errorf("Acquire of a row that changed in between = %v, want the grant", err)
	}
}

func TestSerializableDefault(t *testing.T) {
	f := newFixture(t)
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			pool := f.newPool(func(c *pgxpool.Config) {
				serializable(c)
				c.ConnConfig.DefaultQueryExecMode = mode
				c.MaxConns = 1
			})
			p := f.provider(pool)
			f.fail40001(p)
			g := f.acquire(p, "in a transaction of its own, "+mode.String())

			// A failure inside the transaction leaves none open.
			f.exec("ALTER TABLE %s RENAME TO away")
			err := p.Release(t.Context(), g, 0)
			f.exec("ALTER TABLE " + f.table[:1].Sanitize() + ".away RENAME TO " + f.table[1:].Sanitize())
			if pgErr, ok := errors.AsType[*pgconn.PgError](err); !ok || pgErr.Code != "42P01" || errors.Is(err, core.ErrUncertain) {
				t.Errorf("Release without the table = %v, want PostgreSQL's 42P01, certain", err)
			}
			if err := p.Release(t.Context(), g, 0); err != nil {
				t.Errorf("Release once the table is back: %v", err)
			}
			if n := pool.Stat().NewConnsCount(); n != 1 {
				t.Errorf("the pool has opened %d connections, want 1: rolled back and kept", n)
			}
		})
	}
}

func TestOneRoundTrip(t *testing.T) {
	f := newFixture(t)
	for name, change := range map[string]func(*pgxpool.Config){"plain": nil, "in transactions": serializable} {
		t.Run(name, func(t *testing.T) {
			var trips atomic.Int64
			p := f.provider(f.newPool(func(c *pgxpool.Config) {
				if change != nil {
					change(c)
				}
				c.MaxConns = 1
				c.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
					return &tripCounter{Conn: conn, trips: &trips}, err
				}
			}))
			if change != nil {
				f.fail40001(p)
			}
			call := func() {
				t.Helper()
				g := f.acquire(p, name)
				if _, err := p.Acquire(t.Context(), claim(name)); !errors.Is(err, core.ErrHeld) {
					t.Fatalf("Acquire of a held lock = %v, want ErrHeld", err)
				}
				if _, err := p.Extend(t.Context(), g, time.Hour); err != nil {
					t.Fatal(err)
				}
				if err := p.Release(t.Context(), g, 0); err != nil {
					t.Fatal(err)
				}
			}
			call() // prepares the statements, and looks at the columns
			trips.Store(0)
			call()
			if n := trips.Load(); n != 4 {
				t.Errorf("two attempts, an extension and a release took %d round trips, want 4", n)
			}
		})
	}
}

// tripCounter counts the turns from writing to reading.
type tripCounter struct {
	net.Conn
	trips   *atomic.Int64
	written atomic.Bool
}

func (c *tripCounter) Write(b []byte) (int, error) {
	if !c.written.Swap(true) {
		c.trips.Add(1)
	}
	return c.Conn.Write(b)
}

func (c *tripCounter) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.written.Store(false)
	return n, err
}

func TestInfinity(t *testing.T) {
	f := newFixture(t)
	p := f.provider(f.pool)
	f.exec(`INSERT INTO %s (name, lock_until, locked_at, locked_by) VALUES
		('stopped', 'infinity', timezone('utc', now()), 'operator'), ('freed', '-infinity', timezone('utc', now()), 'operator')`)
	_, err := p.Acquire(t.Context(), claim("stopped"))
	if held, ok := errors.AsType[*core.HeldError](err); !ok || held.Owner != "operator" || held.Until.Year() != 9999 {
		t.Errorf("Acquire of a lock held until infinity = %v, want it held by the operator until 9999", err)
	}
	held := map[string]bool{}
	for r, err := range p.List(t.Context()) {
		if err != nil {
			t.Fatalf("List: %v", err)
		}
		held[r.Name] = r.Held()
	}
	if len(held) != 2 || !held["stopped"] || held["freed"] {
		t.Errorf("List shows held: %v, want one that is stopped and one that is freed", held)
	}
	f.acquire(p, "freed")
}

// TestFenceAfterClockSetBack plays a server whose clock is set back by an hour
// while a lock is held: seen from then on, locked_at is an hour ahead.
func TestFenceAfterClockSetBack(t *testing.T) {
	f := newFixture(t)
	p := f.provider(f.pool)
	for what, end := range map[string]func(core.Grant) error{
		"released": func(g core.Grant) error { return p.Release(t.Context(), g, 0) },
		"released by force": func(g core.Grant) error {
			r, _, err := p.Inspect(t.Context(), g.Name)
			if err != nil {
				return err
			}
			return p.ForceRelease(t.Context(), r)
		},
	} {
		g := f.acquire(p, what)
		f.exec("UPDATE %s SET locked_at = locked_at + interval '1 hour', lock_until = lock_until + interval '1 hour' WHERE name = $1", what)
		if err := end(g); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		r, _, err := p.Inspect(t.Context(), what)
		if err != nil {
			t.Fatal(err)
		}
		if !r.LockedUntil.After(r.LockedAt) {
			t.Errorf("%s: the lock is free at %v, when the next fence could be as low as the last, %v", what, r.LockedUntil, r.LockedAt)
		}
	}
}
