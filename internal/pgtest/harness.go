// Package pgtest connects the conformance suite to a PostgreSQL server, for the
// provider's own test (client at its floor version) and for the newest one.
package pgtest

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/shedbolt/shedbolt/conformancetest"
	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/providers/postgres"
)

// Variant is one way to use the provider, for which the whole suite is run.
type Variant struct {
	// Name names it in the report.
	Name string
	// Mode is pgx's way to send statements; zero means pgx's default.
	Mode pgx.QueryExecMode
	// Params are set at the start of each session.
	Params map[string]string
	// Schema and Table name the table; empty ones get plain names.
	Schema, Table string
	// DDL makes the table, with its name for %s; empty means EnsureSchema.
	DDL string
}

// roundTrips are one for each call, except where the client asks the server about
// each statement before it sends it.
func (v Variant) roundTrips() conformancetest.RoundTrips {
	n := 1
	if v.Mode == pgx.QueryExecModeDescribeExec {
		n = 2
	}
	return conformancetest.RoundTrips{Won: n, Refused: n, First: n, Release: n, Extend: n}
}

// shedLockDDL is the table as ShedLock documents it for PostgreSQL.
const shedLockDDL = `CREATE TABLE %s(name VARCHAR(64) NOT NULL, lock_until TIMESTAMP NOT NULL,
	locked_at TIMESTAMP NOT NULL, locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))`

// Plain is the usual way.
var Plain = Variant{Name: "plain"}

// Serializable is the way of a server whose default isolation level is the highest.
var Serializable = Variant{
	Name:   "serializable",
	Params: map[string]string{"default_transaction_isolation": "serializable"},
}

// Variants are all ways.
func Variants() []Variant {
	variants := []Variant{
		Plain,
		Serializable,
		{Name: "serializable_simple_protocol", Mode: pgx.QueryExecModeSimpleProtocol, Params: Serializable.Params},
		{Name: "repeatable_read", Params: map[string]string{"default_transaction_isolation": "repeatable read"}},
		{Name: "time_zone", Params: map[string]string{"TimeZone": "Pacific/Auckland", "DateStyle": "SQL, DMY"}},
		{Name: "quoted_names", Schema: `Weird "Schema"`, Table: "Shed Lock.Table"},
		{Name: "shedlock_ddl", DDL: shedLockDDL},
	}
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		variants = append(variants, Variant{
			Name: "mode_" + strings.ReplaceAll(mode.String(), " ", "_"), Mode: mode,
			Params: map[string]string{"TimeZone": "America/St_Johns", "DateStyle": "SQL, DMY"},
		})
	}
	return variants
}

// PoolerVariants are the ways to use a pooler in transaction mode. Parameters of a
// session don't pass it.
func PoolerVariants() []Variant {
	return []Variant{
		{Name: "pgbouncer"},
		{Name: "pgbouncer_mode_exec", Mode: pgx.QueryExecModeExec},
		{Name: "pgbouncer_mode_simple_protocol", Mode: pgx.QueryExecModeSimpleProtocol},
	}
}

// Harness makes a table for the variant, dropped when tb has ended, and clients
// of it. via is the DSN that clients use and direct the server's own; they differ
// where a pooler stands between.
func Harness(tb testing.TB, via, direct string, v Variant) conformancetest.Harness {
	tb.Helper()
	s := &server{via: via, direct: direct, v: v, tag: strings.ToLower(rand.Text()[:8])}
	s.table = pgx.Identifier{Schema(tb, direct, cmp.Or(v.Schema, "shedbolt")), cmp.Or(v.Table, "shedlock")}
	// What looks from outside is always the usual way, whatever the variant.
	s.admin = (&server{via: direct, direct: direct, v: Plain}).pool(tb, direct, 4)
	if v.DDL != "" {
		s.exec(tb, fmt.Sprintf(v.DDL, s.table.Sanitize()))
	} else if err := s.provider(tb, s.admin, s.table).EnsureSchema(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return conformancetest.Harness{
		Name:       fmt.Sprintf("PostgreSQL %s, %s", Version(tb, direct), v.Name),
		Open:       func(tb testing.TB) core.Provider { return s.open(tb, via, s.table) },
		Peek:       s.peek,
		Remove:     s.remove,
		Put:        s.put,
		Broken:     s.broken(),
		PoolOfOne:  s.poolOfOne,
		Resources:  s.resources,
		Server:     s.address(tb),
		Through:    func(tb testing.TB, addr string) core.Provider { return s.through(tb, addr) },
		RoundTrips: v.roundTrips(),
	}
}

// Schema creates a schema whose name begins with stem, and drops it with all that
// is in it when tb has ended.
func Schema(tb testing.TB, dsn, stem string) string {
	tb.Helper()
	name := stem + " " + strings.ToLower(rand.Text()[:12])
	run := func(sql string) {
		tb.Helper()
		// Not the test's context: it has ended when a clean-up runs.
		conn, err := pgx.Connect(context.Background(), dsn)
		if err != nil {
			tb.Fatalf("connect: %v", err)
		}
		defer func() { _ = conn.Close(context.Background()) }()
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			tb.Fatalf("%s: %v", sql, err)
		}
	}
	run("CREATE SCHEMA " + pgx.Identifier{name}.Sanitize())
	tb.Cleanup(func() { run("DROP SCHEMA " + pgx.Identifier{name}.Sanitize() + " CASCADE") })
	return name
}

// Version asks a server for its version.
func Version(tb testing.TB, dsn string) string {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), dsn)
	if err != nil {
		tb.Fatalf("connect: %v", err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	version := conn.PgConn().ParameterStatus("server_version")
	return strings.Fields(version)[0]
}

type server struct {
	via, direct string
	v           Variant
	tag         string
	table       pgx.Identifier
	admin       *pgxpool.Pool
}

// application is the name under which the server lists this harness's sessions.
func (s *server) application() string { return "shedbolt " + s.tag }

func (s *server) exec(tb testing.TB, sql string) {
	tb.Helper()
	// Not the test's context: it has ended when a clean-up runs.
	if _, err := s.admin.Exec(context.Background(), sql); err != nil {
		tb.Errorf("%s: %v", sql, err)
	}
}

// pool opens a pool as the variant wants it, closed when tb has ended.
func (s *server) pool(tb testing.TB, dsn string, size int32, more ...func(*pgxpool.Config)) *pgxpool.Pool {
	tb.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	config.MaxConns = size
	if s.v.Mode != 0 {
		config.ConnConfig.DefaultQueryExecMode = s.v.Mode
	}
	config.ConnConfig.RuntimeParams["application_name"] = s.application()
	if dsn != s.direct || s.via == s.direct { // a pooler refuses parameters it does not know
		for name, value := range s.v.Params {
			config.ConnConfig.RuntimeParams[name] = value
		}
	}
	for _, f := range more {
		f(config)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	return pool
}

func (s *server) provider(tb testing.TB, db postgres.DB, table pgx.Identifier) *postgres.Provider {
	tb.Helper()
	p, err := postgres.New(db, postgres.WithTable(table...))
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// connections is the size of a client's pool: more than one, so that a client
// races with itself, and no more, because cases open many clients.
const connections = 2

func (s *server) open(tb testing.TB, dsn string, table pgx.Identifier, more ...func(*pgxpool.Config)) *postgres.Provider {
	tb.Helper()
	return s.provider(tb, s.pool(tb, dsn, connections, more...), table)
}

// address is what clients connect to.
func (s *server) address(tb testing.TB) string {
	tb.Helper()
	config, err := pgx.ParseConfig(s.via)
	if err != nil {
		tb.Fatal(err)
	}
	return net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
}

// through is open by way of another address.
func (s *server) through(tb testing.TB, addr string) *postgres.Provider {
	tb.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		tb.Fatal(err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		tb.Fatal(err)
	}
	return s.open(tb, s.via, s.table, func(c *pgxpool.Config) {
		c.ConnConfig.Host, c.ConnConfig.Port = host, uint16(n)
		for _, other := range c.ConnConfig.Fallbacks { // with and without TLS
			other.Host, other.Port = host, uint16(n)
		}
	})
}

func (s *server) peek(ctx context.Context, name string) (conformancetest.Peeked, error) {
	var p conformancetest.Peeked
	var rows string
	// One statement, but the clock is read even where there is no row. xmin, xmax
	// and ctid change with each write and with each row lock.
	err := s.admin.QueryRow(ctx, `SELECT coalesce(max(l.name || '|' || lock_until || '|' || locked_at || '|' || locked_by
			|| '|' || xmin::text || '|' || xmax::text || '|' || ctid::text), ''),
			coalesce(max(locked_by), ''), coalesce(max(locked_at), 'epoch'), coalesce(max(lock_until), 'epoch'),
			timezone('utc', clock_timestamp())
		FROM `+s.table.Sanitize()+` l WHERE name = $1`, name).
		Scan(&rows, &p.LockedBy, &p.LockedAt, &p.LockedUntil, &p.StoreTime)
	p.Found, p.Raw = rows != "", rows
	return p, err
}

func (s *server) remove(ctx context.Context, name string) error {
	_, err := s.admin.Exec(ctx, "DELETE FROM "+s.table.Sanitize()+" WHERE name = $1", name)
	return err
}

// put writes as ShedLock does with usingDbTime.
func (s *server) put(ctx context.Context, name, lockedBy string, since, until time.Duration) error {
	_, err := s.admin.Exec(ctx, `INSERT INTO `+s.table.Sanitize()+` (name, lock_until, locked_at, locked_by)
		VALUES ($1, timezone('utc', CURRENT_TIMESTAMP) + make_interval(secs => $2::float8),
			timezone('utc', CURRENT_TIMESTAMP) + make_interval(secs => $3::float8), $4)`,
		name, until.Seconds(), since.Seconds(), lockedBy)
	return err
}

func (s *server) resources(context.Context) (int64, error) {
	var n int64
	err := s.admin.QueryRow(context.Background(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", s.application()).Scan(&n)
	return n, err
}

func (s *server) poolOfOne(tb testing.TB) (core.Provider, func(testing.TB) func()) {
	tb.Helper()
	pool := s.pool(tb, s.via, 1)
	return s.provider(tb, pool, s.table), func(tb testing.TB) func() {
		tb.Helper()
		conn, err := pool.Acquire(context.Background())
		if err != nil {
			tb.Fatal(err)
		}
		return conn.Release
	}
}

func (s *server) broken() map[string]conformancetest.Breakage {
	return map[string]conformancetest.Breakage{
		"no_table": {Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			missing := pgx.Identifier{s.table[0], "missing " + strings.ToLower(rand.Text())}
			p := s.open(tb, s.via, missing)
			return p, func() {
				if err := p.EnsureSchema(context.Background()); err != nil {
					tb.Errorf("EnsureSchema: %v", err)
				}
			}
		}},
		"down": {Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			proxy := conformancetest.NewProxy(tb, s.address(tb))
			proxy.Down()
			return s.through(tb, proxy.Addr()), proxy.Up
		}},
		"no_permission": {Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			role := "shedbolt_" + strings.ToLower(rand.Text()[:12])
			s.exec(tb, "CREATE ROLE "+role+" LOGIN PASSWORD 'secret'")
			tb.Cleanup(func() {
				s.exec(tb, "DROP OWNED BY "+role)
				s.exec(tb, "DROP ROLE "+role)
			})
			s.exec(tb, "GRANT USAGE ON SCHEMA "+s.table[:1].Sanitize()+" TO "+role)
			p := s.open(tb, s.direct, s.table, func(c *pgxpool.Config) {
				c.ConnConfig.User, c.ConnConfig.Password = role, "secret"
			})
			return p, func() { s.exec(tb, "GRANT SELECT, INSERT, UPDATE ON "+s.table.Sanitize()+" TO "+role) }
		}},
		"read_only": {Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			return s.open(tb, s.direct, s.table, func(c *pgxpool.Config) {
				c.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
			}), nil
		}},
		// Every new record is a duplicate, whoever holds what.
		"another_unique_column": {Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			table := pgx.Identifier{s.table[0], "unique " + strings.ToLower(rand.Text())}
			s.exec(tb, fmt.Sprintf(shedLockDDL, table.Sanitize()))
			s.exec(tb, "ALTER TABLE "+table.Sanitize()+" ADD one int NOT NULL DEFAULT 1 UNIQUE")
			s.exec(tb, "INSERT INTO "+table.Sanitize()+" VALUES ('other', 'epoch', 'epoch', 'x')")
			return s.open(tb, s.via, table), func() { s.exec(tb, "ALTER TABLE "+table.Sanitize()+" DROP one") }
		}},
		"column_with_time_zone": {Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			table := pgx.Identifier{s.table[0], "zoned " + strings.ToLower(rand.Text())}
			s.exec(tb, fmt.Sprintf(strings.ReplaceAll(shedLockDDL, "TIMESTAMP", "TIMESTAMPTZ"), table.Sanitize()))
			return s.open(tb, s.via, table), func() {
				s.exec(tb, "ALTER TABLE "+table.Sanitize()+` ALTER lock_until TYPE timestamp USING lock_until AT TIME ZONE 'UTC',
				ALTER locked_at TYPE timestamp USING locked_at AT TIME ZONE 'UTC'`)
			}
		}},
	}
}
