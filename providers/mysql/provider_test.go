package mysql_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/go-sql-driver/mysql"

	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/internal/testenv"
	"github.com/shedbolt/shedbolt/providers/mysql"
)

// fixture is a database of a test's own, with an empty table in it.
type fixture struct {
	testing.TB
	config *client.Config
	admin  *sql.DB // the test's own, beside the provider under test
	maria  bool
}

func newFixture(tb testing.TB) *fixture {
	tb.Helper()
	config, err := client.ParseDSN(testenv.DSN(tb, "mysql"))
	if err != nil {
		tb.Fatal(err)
	}
	f := &fixture{TB: tb, config: config}
	f.config.Logger = &client.NopLogger{}
	database := "shedbolt_" + strings.ToLower(rand.Text()[:12])
	outside := f.pool(nil)
	f.run(outside, "CREATE DATABASE "+database)
	tb.Cleanup(func() { f.run(outside, "DROP DATABASE "+database) })
	f.config.DBName = database
	f.admin = f.pool(nil)
	if err := f.provider(f.admin).EnsureSchema(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	var version string
	if err := f.admin.QueryRowContext(tb.Context(), "SELECT VERSION()").Scan(&version); err != nil {
		tb.Fatal(err)
	}
	f.maria = strings.Contains(version, "MariaDB")
	return f
}

// in is the fixture in a subtest.
func (f *fixture) in(t *testing.T) *fixture {
	t.Helper()
	inner := *f
	inner.TB = t
	return &inner
}

type change func(c *client.Config)

func multiStatements(c *client.Config) { c.MultiStatements = true }

// param sets a session variable.
func param(name, value string) change {
	return func(c *client.Config) {
		c.Params = maps.Clone(c.Params)
		if c.Params == nil {
			c.Params = map[string]string{}
		}
		c.Params[name] = value
	}
}

func (f *fixture) pool(changes ...change) *sql.DB {
	f.Helper()
	config := f.config.Clone()
	for _, change := range changes {
		if change != nil {
			change(config)
		}
	}
	connector, err := client.NewConnector(config)
	if err != nil {
		f.Fatal(err)
	}
	db := sql.OpenDB(connector)
	f.Cleanup(func() { _ = db.Close() })
	return db
}

func (f *fixture) provider(db *sql.DB, options ...mysql.Option) *mysql.Provider {
	f.Helper()
	p, err := mysql.New(db, options...)
	if err != nil {
		f.Fatal(err)
	}
	return p
}

func (f *fixture) run(db *sql.DB, statement string) {
	f.Helper()
	// Not the test's context: it has ended when a clean-up runs.
	if _, err := db.ExecContext(context.Background(), statement); err != nil {
		f.Fatalf("%s: %v", statement, err)
	}
}

func (f *fixture) acquire(p *mysql.Provider, name string) core.Grant {
	f.Helper()
	g, err := p.Acquire(context.Background(), claim(name))
	if err != nil {
		f.Fatalf("Acquire: %v", err)
	}
	return g
}

func (f *fixture) release(p *mysql.Provider, g core.Grant) {
	f.Helper()
	if err := p.Release(context.Background(), g, 0); err != nil {
		f.Fatalf("Release: %v", err)
	}
}

// table is the rows, as text.
func (f *fixture) table() (rows string) {
	f.Helper()
	err := f.admin.QueryRowContext(context.Background(),
		"SELECT COALESCE(GROUP_CONCAT(CONCAT_WS('|', name, lock_until, locked_at, locked_by) ORDER BY name), '') FROM shedlock").Scan(&rows)
	if err != nil {
		f.Fatal(err)
	}
	return rows
}

func claim(name string) core.Claim {
	return core.Claim{Name: name, Owner: "test", Token: rand.Text(), AtMostFor: time.Hour}
}

func wantError(tb testing.TB, err error, parts ...string) {
	tb.Helper()
	if err == nil || errors.Is(err, core.ErrHeld) {
		tb.Errorf("the error is %v, want another one", err)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			tb.Errorf("the error %q does not name %q", err, part)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := mysql.New(nil); err == nil {
		t.Error("New without a pool succeeded")
	}
	db, err := sql.Open("mysql", "/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, parts := range [][]string{{}, {""}, {"a", ""}, {"a", "b", "c"}} {
		if _, err := mysql.New(db, mysql.WithTable(parts...)); err == nil {
			t.Errorf("WithTable(%q) was accepted", parts)
		}
	}
}

// ways are those in which a claim can be made on this server.
func (f *fixture) ways() map[string]change {
	if f.maria {
		return map[string]change{"block": nil, "steps": param("sql_mode", "'ORACLE'")}
	}
	return map[string]change{"steps": nil, "batch": multiStatements}
}

// Ten thousand attempts on held locks write nothing, neither rows nor temporary
// tables.
func TestLosersWriteNothing(t *testing.T) {
	whole := newFixture(t)
	for name, way := range whole.ways() {
		t.Run(name, func(t *testing.T) {
			f := whole.in(t)
			f.acquire(f.provider(f.admin), "held by "+name)
			db := f.pool(way)
			db.SetMaxOpenConns(1) // the counters are those of its session
			p := f.provider(db)
			attempts := func(n int) {
				for range n {
					if _, err := p.Acquire(t.Context(), claim("held by "+name)); !errors.Is(err, core.ErrHeld) {
						t.Fatalf("Acquire = %v, want ErrHeld", err)
					}
				}
			}
			written := func() map[string]int64 {
				rows, err := db.QueryContext(t.Context(), `SHOW SESSION STATUS WHERE Variable_name IN
					('Handler_write', 'Handler_update', 'Handler_delete', 'Handler_tmp_write', 'Created_tmp_tables')`)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = rows.Close() }()
				counts := map[string]int64{}
				for rows.Next() {
					var name string
					var n int64
					if err := rows.Scan(&name, &n); err != nil {
						t.Fatal(err)
					}
					counts[name] = n
				}
				if err := rows.Err(); err != nil {
					t.Fatal(err)
				}
				return counts
			}
			attempts(10) // looks at the table
			first := written()
			looking := written()
			attempts(10_000)
			after := written()
			for name, n := range after {
				// To show the counters writes a few rows itself.
				if got := n - looking[name] - (looking[name] - first[name]); got != 0 {
					t.Errorf("10,000 losers: %s went up by %d", name, got)
				}
			}
		})
	}
}

// The redo log is the whole server's: in one of a few quiet moments it must stand
// still.
func TestLosersLogNothing(t *testing.T) {
	whole := newFixture(t)
	for name, way := range whole.ways() {
		t.Run(name, func(t *testing.T) {
			f := whole.in(t)
			p := f.provider(f.pool(way))
			f.acquire(p, "held by "+name)
			written := func() (lsn int64) {
				var name string
				if err := f.admin.QueryRowContext(t.Context(), `SHOW GLOBAL STATUS WHERE Variable_name IN
					('Innodb_lsn_current', 'Innodb_redo_log_current_lsn')`).Scan(&name, &lsn); err != nil {
					t.Fatal(err)
				}
				return lsn
			}
			var seen []int64
			for range 200 {
				before := written()
				for range 100 {
					if _, err := p.Acquire(t.Context(), claim("held by "+name)); !errors.Is(err, core.ErrHeld) {
						t.Fatalf("Acquire = %v, want ErrHeld", err)
					}
				}
				n := written() - before
				if n == 0 {
					return
				}
				seen = append(seen, n)
			}
			t.Errorf("bytes of redo log with every 100 losers: %v", seen)
		})
	}
}

// An attempt on a held lock does not wait for a row lock that somebody has, such as
// the holder, who is about to commit an extension.
func TestLosersDontWait(t *testing.T) {
	whole := newFixture(t)
	for name, way := range whole.ways() {
		for _, level := range []string{"READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"} {
			t.Run(name+"/"+level, func(t *testing.T) {
				f := whole.in(t)
				variable := "transaction_isolation"
				if f.maria {
					variable = "tx_isolation"
				}
				p := f.provider(f.pool(way, param(variable, "'"+level+"'")))
				job := name + level
				f.acquire(p, job)
				tx, err := f.admin.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = tx.Rollback() }()
				if _, err := tx.ExecContext(t.Context(), "UPDATE shedlock SET lock_until = lock_until + INTERVAL 1 HOUR WHERE name = ?", job); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				if _, err := p.Acquire(ctx, claim(job)); !errors.Is(err, core.ErrHeld) {
					t.Errorf("Acquire of a held lock whose row is locked = %v, want ErrHeld", err)
				}
			})
		}
	}
}

// A release that leaves lock_until as it is changes no row, and is one all the
// same: the minimum hold can be as long as the lock.
func TestReleaseThatChangesNothing(t *testing.T) {
	f := newFixture(t)
	for _, found := range []bool{false, true} {
		p := f.provider(f.pool(func(c *client.Config) { c.ClientFoundRows = found }))
		g := f.acquire(p, fmt.Sprint("found rows: ", found))
		before := f.table()
		if err := p.Release(t.Context(), g, time.Hour); err != nil {
			t.Errorf("clientFoundRows %v: Release with the longest minimum hold = %v", found, err)
		}
		if after := f.table(); after != before {
			t.Errorf("it changed\n%s\nto\n%s", before, after)
		}
	}
}

// ShedLock's own table, with the collation that servers have by default.
func (f *fixture) shedLockTable(collation string) {
	f.Helper()
	f.run(f.admin, "DROP TABLE shedlock")
	f.run(f.admin, `CREATE TABLE shedlock(name VARCHAR(64) NOT NULL, lock_until TIMESTAMP(3) NOT NULL,
		locked_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name)) COLLATE `+collation)
}

func TestNamesThatTheCollationTakesForEqual(t *testing.T) {
	whole := newFixture(t)
	whole.shedLockTable("utf8mb4_unicode_ci")
	for name, way := range whole.ways() {
		t.Run(name, func(t *testing.T) {
			f := whole.in(t)
			p := f.provider(f.pool(way))
			for _, state := range []string{"held", "free"} {
				g := f.acquire(p, "job "+name)
				if state == "free" {
					f.release(p, g)
				}
				before := f.table()
				for _, other := range []string{"JOB " + name, "jób " + name} {
					_, err := p.Acquire(t.Context(), claim(other))
					wantError(t, err, `"name"`, "utf8mb4_unicode_ci", fmt.Sprintf("%q", other), fmt.Sprintf("%q", "job "+name))
					stranger := g
					stranger.Name = other
					if err := p.Release(t.Context(), stranger, 0); !errors.Is(err, core.ErrLost) {
						t.Errorf("Release of %q = %v, want ErrLost", other, err)
					}
					if _, err := p.Extend(t.Context(), stranger, time.Minute); !errors.Is(err, core.ErrLost) {
						t.Errorf("Extend of %q = %v, want ErrLost", other, err)
					}
					if _, found, err := p.Inspect(t.Context(), other); found || err != nil {
						t.Errorf("Inspect of %q = %v, %v; want none", other, found, err)
					}
				}
				if after := f.table(); after != before {
					t.Errorf("it changed\n%s\nto\n%s", before, after)
				}
				if state == "held" {
					f.release(p, g)
				}
			}
		})
	}
}

// A column that can't hold a name must not hold another one in its place.
func TestNamesThatTheCharsetCannotHold(t *testing.T) {
	f := newFixture(t)
	f.shedLockTable("latin1_swedish_ci")
	p := f.provider(f.pool(param("sql_mode", "''")))
	for _, name := range []string{"日報", "週報"} {
		_, err := p.Acquire(t.Context(), claim(name))
		wantError(t, err, `"name"`, "latin1", "utf8mb4")
	}
	// The label is for people: what can't be held there is no reason to fail.
	c := claim("job")
	c.Owner = "höst-日"
	g, err := p.Acquire(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := p.Acquire(t.Context(), c); err != nil || again != g {
		t.Errorf("the same claim again = %v, %v; want the same grant", again, err)
	}
	f.release(p, g)
}

// TIMESTAMP ends in January 2038; beyond, a lax sql_mode would store a lock that has
// expired.
func TestTimestampEndsIn2038(t *testing.T) {
	f := newFixture(t)
	f.shedLockTable("utf8mb4_bin")
	year2036 := fmt.Sprint(time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC).Unix())
	p := f.provider(f.pool(param("sql_mode", "''"), param("timestamp", year2036)))
	f.acquire(p, "soon over")
	c := claim("years")
	c.AtMostFor = core.MaxDuration
	_, err := p.Acquire(t.Context(), c)
	wantError(t, err, `"lock_until"`, "2038", "DATETIME(3)")
	if strings.Contains(f.table(), "years") {
		t.Error("it was stored")
	}
}

// The night on which a zone has no hour between two and three, and that on which it
// has two of them: UTC's wall time is stored all the same.
func TestDaylightSaving(t *testing.T) {
	f := newFixture(t)
	for _, night := range []time.Time{
		time.Date(2026, 3, 29, 1, 59, 59, 0, time.UTC),
		time.Date(2026, 3, 29, 2, 30, 0, 0, time.UTC), // 02:30 does not exist in Prague
		time.Date(2026, 10, 25, 0, 30, 0, 0, time.UTC),
		time.Date(2026, 10, 25, 1, 30, 0, 0, time.UTC),
	} {
		for name, way := range f.ways() {
			zones := map[string]*mysql.Provider{}
			for _, zone := range []string{"Europe/Prague", "+00:00", "+09:00"} {
				zones[zone] = f.provider(f.pool(way, param("time_zone", "'"+zone+"'"), param("timestamp", fmt.Sprint(night.Unix()))))
			}
			for zone, p := range zones {
				job := fmt.Sprint(name, night.Unix(), zone)
				g := f.acquire(p, job)
				if want := night.Add(time.Hour); !g.LockedAt.Equal(night) || !g.LockedUntil.Equal(want) {
					t.Errorf("%s: locked from %v to %v, want %v to %v", zone, g.LockedAt, g.LockedUntil, night, want)
				}
				for other, q := range zones {
					held, ok := errors.AsType[*core.HeldError](func() error { _, err := q.Acquire(t.Context(), claim(job)); return err }())
					if !ok || !held.Until.Equal(g.LockedUntil) {
						t.Errorf("in %s, held by a client in %s: %+v", other, zone, held)
					}
				}
				f.release(zones["+00:00"], g)
				f.release(zones["+09:00"], f.acquire(zones["+09:00"], job))
			}
		}
	}
}

// ShedLock's columns in a session whose zone is not a safe one.
func TestTimestampColumnsInZones(t *testing.T) {
	f := newFixture(t)
	f.shedLockTable("utf8mb4_bin")
	for zone, word := range map[string]string{"Europe/Prague": "Europe/Prague", "+09:00": "+09:00"} {
		_, err := f.provider(f.pool(param("time_zone", "'"+zone+"'"))).Acquire(t.Context(), claim("job"))
		wantError(t, err, `"lock_until"`, "TIMESTAMP", word, "DATETIME(3)")
	}
	f.acquire(f.provider(f.pool()), "job")
}

// read_only stops users without special rights.
func TestReadOnlyServer(t *testing.T) {
	f := newFixture(t)
	user := "shedbolt_" + strings.ToLower(rand.Text()[:12])
	f.run(f.admin, "CREATE USER "+user+" IDENTIFIED BY 'secret'")
	t.Cleanup(func() { f.run(f.admin, "DROP USER "+user) })
	f.run(f.admin, "GRANT SELECT, INSERT, UPDATE ON shedlock TO "+user)
	for name, way := range f.ways() {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			p := f.provider(f.pool(way, func(c *client.Config) { c.User, c.Passwd = user, "secret" }))
			g := f.acquire(p, "held by "+name)
			f.run(f.admin, "SET GLOBAL read_only = 1")
			defer f.run(f.admin, "SET GLOBAL read_only = 0")
			for _, job := range []string{"first " + name, "known", "held by " + name} {
				_, err := p.Acquire(t.Context(), claim(job))
				wantError(t, err, "1290")
				if errors.Is(err, core.ErrUncertain) {
					t.Errorf("Acquire on a read-only server = %v; it is certain that nothing was done", err)
				}
			}
			wantError(t, p.Release(t.Context(), g, 0), "1290")
			f.run(f.admin, "SET GLOBAL read_only = 0")
			f.release(p, g)
			f.release(p, f.acquire(p, "known"))
		})
	}
}

// A write that was carried out is not denied when the look that follows it fails.
func TestLookAfterAWriteFails(t *testing.T) {
	f := newFixture(t)
	for name, way := range f.ways() {
		t.Run(name, func(t *testing.T) {
			f := f.in(t)
			fencing := f.provider(f.pool(way, param("lock_wait_timeout", "1")), mysql.WithFencing())
			f.release(fencing, f.acquire(fencing, "job "+name))
			conn, err := f.admin.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			if _, err := conn.ExecContext(t.Context(), "LOCK TABLES shedlock WRITE"); err != nil {
				t.Fatal(err)
			}
			_, err = fencing.Acquire(t.Context(), claim("job "+name))
			wantError(t, err, "1205")
			if _, err := conn.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
				t.Fatal(err)
			}
			if written := strings.Contains(f.table(), "job "+name) && !f.free("job "+name); written && !errors.Is(err, core.ErrUncertain) {
				t.Errorf("the lock was taken, and the error is a certain one: %v", err)
			}
		})
	}
}

// free reads whether a lock is free, without the provider.
func (f *fixture) free(name string) (free bool) {
	f.Helper()
	if err := f.admin.QueryRowContext(context.Background(), "SELECT lock_until <= UTC_TIMESTAMP(3) FROM shedlock WHERE name = ?", name).Scan(&free); err != nil {
		f.Fatal(err)
	}
	return free
}

// What comes before a statement is sent is certain: waiting for the pool, and a
// login that fails.
func TestNothingWasSent(t *testing.T) {
	f := newFixture(t)
	db := f.pool()
	db.SetMaxOpenConns(1)
	p := f.provider(db)
	f.release(p, f.acquire(p, "job"))
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = p.Acquire(ctx, claim("job"))
	wantError(t, err)
	if errors.Is(err, core.ErrUncertain) {
		t.Errorf("Acquire on an exhausted pool = %v; nothing was sent", err)
	}
}

// Columns that others have added, or made otherwise than we would.
func TestOddColumns(t *testing.T) {
	f := newFixture(t)
	f.run(f.admin, "ALTER TABLE shedlock DROP fence, ADD fence BIGINT, ADD id BIGINT NOT NULL AUTO_INCREMENT UNIQUE, MODIFY locked_by VARCHAR(255) NULL, MODIFY locked_at DATETIME(3) NULL")
	f.run(f.admin, "INSERT INTO shedlock (name, lock_until, locked_at, locked_by) VALUES ('older', '2020-01-01', NULL, NULL)")
	f.run(f.admin, "INSERT INTO shedlock (name, lock_until, locked_at, locked_by) VALUES ('held', '2099-01-01', NULL, NULL)")
	for name, way := range f.ways() {
		p := f.provider(f.pool(way), mysql.WithFencing())
		if g := f.acquire(p, "older"); g.Fence == 0 {
			t.Errorf("%s: no fence where the column was NULL", name)
		} else {
			f.release(p, g)
		}
		plain := f.provider(f.pool(way))
		g := f.acquire(plain, "first "+name)
		if age := time.Since(g.LockedAt).Abs(); age > 48*time.Hour { // the server's clock may be wrong, but not by decades
			t.Errorf("%s: LockedAt of a new record is %v", name, g.LockedAt)
		}
		if _, err := plain.Acquire(t.Context(), claim("held")); !errors.Is(err, core.ErrHeld) {
			t.Errorf("%s: Acquire of what nobody known holds = %v, want ErrHeld", name, err)
		}
	}
	p := f.provider(f.admin)
	r, found, err := p.Inspect(t.Context(), "held")
	if err != nil || !found {
		t.Fatalf("Inspect = %v, %v", found, err)
	}
	if err := p.ForceRelease(t.Context(), r); err != nil && !errors.Is(err, core.ErrLost) {
		t.Errorf("ForceRelease of a record without a holder = %v", err)
	}
	f.run(f.admin, "ALTER TABLE shedlock MODIFY locked_by CHAR(255)")
	_, err = f.provider(f.admin).Acquire(t.Context(), claim("job"))
	wantError(t, err, `"locked_by"`, "char", "VARCHAR(255)")
}

func TestEnsureSchemaAtOnce(t *testing.T) {
	f := newFixture(t)
	f.run(f.admin, "DROP TABLE shedlock")
	var wg sync.WaitGroup
	for range 10 {
		db := f.pool()
		wg.Go(func() {
			p, err := mysql.New(db)
			if err == nil {
				err = p.EnsureSchema(context.Background())
			}
			if err != nil {
				t.Errorf("EnsureSchema by one of ten: %v", err)
			}
		})
	}
	wg.Wait()
	f.acquire(f.provider(f.admin), "job")
}

func TestEnsureSchemaWithoutRights(t *testing.T) {
	f := newFixture(t)
	user := "shedbolt_" + strings.ToLower(rand.Text()[:12])
	f.run(f.admin, "CREATE USER "+user+" IDENTIFIED BY 'secret'")
	t.Cleanup(func() { f.run(f.admin, "DROP USER "+user) })
	f.run(f.admin, "GRANT SELECT, INSERT, UPDATE ON shedlock TO "+user)
	p := f.provider(f.pool(func(c *client.Config) { c.User, c.Passwd = user, "secret" }))
	if err := p.EnsureSchema(t.Context()); err != nil {
		t.Errorf("EnsureSchema of a table that exists, without the right to create one: %v", err)
	}
	f.run(f.admin, "RENAME TABLE shedlock TO moved")
	if err := p.EnsureSchema(t.Context()); err == nil {
		t.Error("EnsureSchema without the right to create a table succeeded")
	}
}

// Names of tables and columns are identifiers and nothing else.
func TestOddIdentifiers(t *testing.T) {
	f := newFixture(t)
	p := f.provider(f.admin,
		mysql.WithTable(f.config.DBName, "{$name} `; DROP TABLE shedlock; --"),
		mysql.WithColumns(mysql.Columns{Name: "{$holder}", LockUntil: "{record}", LockedAt: "`", LockedBy: "by; --", Fence: "{$micros}"}),
		mysql.WithFencing())
	if err := p.EnsureSchema(t.Context()); err != nil {
		t.Fatal(err)
	}
	first := f.acquire(p, "job")
	f.release(p, first)
	second := f.acquire(p, "job")
	if second.Fence <= first.Fence {
		t.Errorf("the fence went from %d to %d", first.Fence, second.Fence)
	}
	r, found, err := p.Inspect(t.Context(), "job")
	if err != nil || !found || r.Fence != second.Fence || r.LockedBy != second.Holder() {
		t.Errorf("Inspect = %+v, %v, %v", r, found, err)
	}
	if f.table() != "" {
		t.Error("it wrote to another table")
	}
}

// The number of a record that was removed is not used again.
func TestFenceAfterRemoval(t *testing.T) {
	f := newFixture(t)
	p := f.provider(f.admin, mysql.WithFencing())
	first := f.acquire(p, "job")
	f.run(f.admin, "DELETE FROM shedlock")
	f.run(f.admin, "DO SLEEP(0.002)") // the number is the time, in milliseconds
	if second := f.acquire(p, "job"); second.Fence <= first.Fence {
		t.Errorf("the fence went from %d to %d", first.Fence, second.Fence)
	}
}

// A record on which somebody has put a date of no use is not a lock for ever, and
// one that an operator has locked for good is.
func TestOddTimes(t *testing.T) {
	f := newFixture(t)
	f.run(f.admin, "INSERT INTO shedlock (name, lock_until, locked_at, locked_by) VALUES ('stopped', '9999-12-31', '2026-01-01', 'operator')")
	zero := f.pool(param("sql_mode", "''"))
	f.run(zero, "INSERT INTO shedlock (name, lock_until, locked_at, locked_by) VALUES ('zero', '0000-00-00', '0000-00-00', 'bug')")
	p := f.provider(f.admin)
	held, ok := errors.AsType[*core.HeldError](func() error { _, err := p.Acquire(t.Context(), claim("stopped")); return err }())
	if !ok || held.Owner != "operator" || held.Until.Year() != 9999 {
		t.Errorf("a lock until 9999: %+v", held)
	}
	f.release(p, f.acquire(p, "zero"))
}
