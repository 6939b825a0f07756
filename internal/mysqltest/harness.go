// Package mysqltest connects the conformance suite to a MySQL or MariaDB server,
// for the provider's own test (client at its floor version) and for the newest
// one.
package mysqltest

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	client "github.com/go-sql-driver/mysql"

	"github.com/shedbolt/shedbolt/conformancetest"
	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/providers/mysql"
)

// Variant is one way to use the provider, for which the whole suite is run.
type Variant struct {
	// Name names it in the report.
	Name string
	// Config changes the client's settings.
	Config func(c *client.Config)
	// Params are session variables, set at the start of each session.
	Params map[string]string
	// Table names the table; empty gets the default.
	Table string
	// DDL makes the table, with its name for %s; empty means EnsureSchema.
	DDL string
	// Options are the provider's.
	Options []mysql.Option
	// MariaDB limits it to that server.
	MariaDB bool
	// Deviations are the suite's.
	Deviations map[string]string
}

// shedLockDDL is the table as ShedLock documents it for MySQL.
const shedLockDDL = `CREATE TABLE %s(name VARCHAR(64) NOT NULL, lock_until TIMESTAMP(3) NOT NULL,
	locked_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3), locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))`

// Plain is the usual way.
var Plain = Variant{Name: "plain"}

// Fencing is the usual way with fencing numbers.
var Fencing = Variant{Name: "fencing", Options: []mysql.Option{mysql.WithFencing()}}

// Variants are all ways.
func Variants() []Variant {
	multi := func(c *client.Config) { c.MultiStatements = true }
	return []Variant{
		Plain,
		Fencing,
		{Name: "multi_statements", Config: multi},
		{Name: "multi_statements_fencing", Config: multi, Options: []mysql.Option{mysql.WithFencing()}},
		{Name: "client_found_rows", Config: func(c *client.Config) { c.ClientFoundRows = true }},
		{Name: "interpolate_params_found_rows", Config: func(c *client.Config) { c.ClientFoundRows, c.InterpolateParams = true, true }},
		{Name: "parse_time_loc", Config: func(c *client.Config) {
			c.ParseTime, c.Loc = true, time.FixedZone("+13", 13*3600)
		}, Params: map[string]string{"time_zone": "'+09:00'"}},
		{Name: "zone_of_daylight_saving", Params: map[string]string{"time_zone": "'Europe/Prague'"}},
		{Name: "read_committed", Params: isolation("READ-COMMITTED")},
		{Name: "serializable", Params: isolation("SERIALIZABLE")},
		{Name: "serializable_multi_statements", Config: multi, Params: isolation("SERIALIZABLE")},
		{Name: "lax_sql_mode", Params: map[string]string{"sql_mode": "''"}},
		{Name: "odd_sql_mode", Config: func(c *client.Config) { c.Params["charset"] = "latin1" }, Params: map[string]string{
			"sql_mode": "'ANSI,NO_BACKSLASH_ESCAPES,TRADITIONAL,PAD_CHAR_TO_FULL_LENGTH'", "sql_safe_updates": "1",
		}},
		{Name: "oracle_sql_mode", Params: map[string]string{"sql_mode": "'ORACLE'"}, MariaDB: true},
		{Name: "quoted_names", Table: "Shed Lock.`Table`"},
		{Name: "shedlock_ddl", DDL: shedLockDDL, Deviations: foldingNames},
	}
}

// isolation sets the session's default level, whose variable has another name in
// MariaDB before 11.1; a DSN can't set one of two.
func isolation(level string) map[string]string {
	return map[string]string{isolationVar: "'" + level + "'"}
}

const isolationVar = "(isolation)"

// foldingNames is what can't be on a table whose collation does not keep all names
// apart, and narrowNames what can't be if its character set does not have them all.
var (
	foldingNames = map[string]string{
		"names/distinct": "ShedLock's table has the server's default collation, which takes some names for equal: the second one is an error",
	}
	narrowNames = map[string]string{
		"names/length":                    narrow,
		"names/long_name_never_truncated": narrow,
		"ownership/long_label":            narrow,
	}
)

const narrow = "ShedLock's table has the server's default character set, which is not utf8mb4: other names than ASCII are an error, and in labels replaced"

// Harness makes a database for the variant, dropped when tb has ended, and clients
// of it. dsn's user must be allowed to create databases and users.
func Harness(tb testing.TB, dsn string, v Variant) conformancetest.Harness {
	tb.Helper()
	s := newServer(tb, dsn, v)
	return conformancetest.Harness{
		Name:       s.version + ", " + v.Name,
		Open:       func(tb testing.TB) core.Provider { return s.open(tb) },
		Peek:       s.peek,
		Remove:     s.remove,
		Put:        s.put,
		Broken:     s.broken(),
		PoolOfOne:  s.poolOfOne,
		Resources:  s.resources,
		Server:     s.config.Addr,
		Through:    func(tb testing.TB, addr string) core.Provider { return s.open(tb, at(addr)) },
		RoundTrips: s.roundTrips(),
		Deviations: s.deviations(tb),
	}
}

type server struct {
	config  *client.Config // of the variant, in a database of its own
	v       Variant
	version string
	maria   bool
	table   string // quoted
	admin   *sql.DB
}

func newServer(tb testing.TB, dsn string, v Variant) *server {
	tb.Helper()
	config, err := client.ParseDSN(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	s := &server{config: config, v: v, table: quote(cmp.Or(v.Table, mysql.DefaultTable))}
	database := "shedbolt_" + strings.ToLower(rand.Text()[:12])
	outside := connect(tb, config.Clone(), 1)
	if err := outside.QueryRowContext(tb.Context(), "SELECT VERSION()").Scan(&s.version); err != nil {
		tb.Fatal(err)
	}
	number, _, _ := strings.Cut(s.version, "-")
	if s.maria = strings.Contains(s.version, "MariaDB"); s.maria {
		s.version = "MariaDB " + number
	} else {
		s.version = "MySQL " + number
	}
	if v.MariaDB && !s.maria {
		tb.Skip("it is about MariaDB, and this is " + s.version)
	}
	run(tb, outside, "CREATE DATABASE "+database)
	tb.Cleanup(func() { run(tb, outside, "DROP DATABASE "+database) })
	s.config.DBName = database
	// What looks from outside is always the usual way, whatever the variant.
	s.admin = connect(tb, s.config.Clone(), 4)
	if s.config.Params == nil {
		s.config.Params = map[string]string{}
	}
	maps.Copy(s.config.Params, v.Params)
	if level, ok := v.Params[isolationVar]; ok {
		delete(s.config.Params, isolationVar)
		s.config.Params[s.either("tx_isolation", "transaction_isolation")] = level
	}
	if v.Config != nil {
		v.Config(s.config)
	}
	if v.DDL != "" {
		run(tb, s.admin, fmt.Sprintf(v.DDL, s.table))
	} else if err := s.open(tb).EnsureSchema(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return s
}

// roundTrips are one for each call, except where neither a compound statement of
// MariaDB nor multiStatements is to be had: there, to take a lock needs a statement
// that reads and one that writes, and with fencing one more that reads the number.
func (s *server) roundTrips() conformancetest.RoundTrips {
	t := conformancetest.RoundTrips{Won: 1, Refused: 1, First: 1, Release: 1, Extend: 1}
	if (!s.maria || s.v.MariaDB) && !s.config.MultiStatements {
		t.Won, t.First = 2, 2
		if strings.Contains(s.v.Name, "fencing") {
			t.Won, t.First = 3, 3
		}
	}
	return t
}

func (s *server) deviations(tb testing.TB) map[string]string {
	tb.Helper()
	if s.v.Deviations == nil {
		return nil
	}
	var charset string
	if err := s.admin.QueryRowContext(tb.Context(), `SELECT CHARACTER_SET_NAME FROM information_schema.COLUMNS
		WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND COLUMN_NAME = 'name'`, cmp.Or(s.v.Table, mysql.DefaultTable)).Scan(&charset); err != nil {
		tb.Fatal(err)
	}
	all := maps.Clone(s.v.Deviations)
	if charset != "utf8mb4" {
		maps.Copy(all, narrowNames)
	}
	return all
}

// either picks the name that MariaDB has for something, or that of MySQL.
func (s *server) either(maria, other string) string {
	if s.maria {
		return maria
	}
	return other
}

func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

func run(tb testing.TB, db *sql.DB, statement string) {
	tb.Helper()
	// Not the test's context: it has ended when a clean-up runs.
	if _, err := db.ExecContext(context.Background(), statement); err != nil {
		tb.Errorf("%s: %v", statement, err)
	}
}

// connect opens a pool that is closed when tb has ended.
func connect(tb testing.TB, config *client.Config, size int) *sql.DB {
	tb.Helper()
	connector, err := client.NewConnector(config)
	if err != nil {
		tb.Fatal(err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	tb.Cleanup(func() { _ = db.Close() })
	return db
}

// change is a difference from the variant's settings.
type change func(c *client.Config)

func at(addr string) change { return func(c *client.Config) { c.Addr = addr } }

// connections is the size of a client's pool: more than one, so that a client
// races with itself, and no more, because cases open many clients.
const connections = 2

func (s *server) open(tb testing.TB, changes ...change) *mysql.Provider {
	tb.Helper()
	return s.provider(tb, s.pool(tb, connections, changes...), cmp.Or(s.v.Table, mysql.DefaultTable))
}

func (s *server) pool(tb testing.TB, size int, changes ...change) *sql.DB {
	tb.Helper()
	config := s.config.Clone()
	for _, change := range changes {
		change(config)
	}
	return connect(tb, config, size)
}

func (s *server) provider(tb testing.TB, db *sql.DB, table string) *mysql.Provider {
	tb.Helper()
	options := append([]mysql.Option{mysql.WithTable(table)}, s.v.Options...)
	p, err := mysql.New(db, options...)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func (s *server) peek(ctx context.Context, name string) (conformancetest.Peeked, error) {
	var p conformancetest.Peeked
	var at, until, now int64
	// One statement, but the clock is read even where there is no row.
	err := s.admin.QueryRowContext(ctx, `SELECT COALESCE(MAX(CONCAT_WS('|', HEX(name), lock_until, locked_at, HEX(locked_by))), ''),
			COALESCE(MAX(locked_by), ''),
			COALESCE(MAX(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', locked_at)), 0),
			COALESCE(MAX(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', lock_until)), 0),
			TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
		FROM `+s.table+` WHERE name = ?`, name).Scan(&p.Raw, &p.LockedBy, &at, &until, &now)
	if p.StoreTime = time.UnixMicro(now).UTC(); p.Raw != "" {
		p.Found, p.LockedAt, p.LockedUntil = true, time.UnixMicro(at).UTC(), time.UnixMicro(until).UTC()
	}
	return p, err
}

func (s *server) remove(ctx context.Context, name string) error {
	_, err := s.admin.ExecContext(ctx, "DELETE FROM "+s.table+" WHERE name = ?", name)
	return err
}

// put writes as ShedLock does with usingDbTime.
func (s *server) put(ctx context.Context, name, lockedBy string, since, until time.Duration) error {
	_, err := s.admin.ExecContext(ctx, `INSERT INTO `+s.table+` (name, lock_until, locked_at, locked_by)
		VALUES (?, TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(3)), TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(3)), ?)`,
		name, until.Microseconds(), since.Microseconds(), lockedBy)
	return err
}

func (s *server) resources(context.Context) (int64, error) {
	var n int64
	err := s.admin.QueryRowContext(context.Background(),
		"SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = ?", s.config.DBName).Scan(&n)
	return n, err
}

func (s *server) poolOfOne(tb testing.TB) (core.Provider, func(testing.TB) func()) {
	tb.Helper()
	db := s.pool(tb, 1)
	return s.provider(tb, db, cmp.Or(s.v.Table, mysql.DefaultTable)), func(tb testing.TB) func() {
		tb.Helper()
		conn, err := db.Conn(context.Background())
		if err != nil {
			tb.Fatal(err)
		}
		return func() { _ = conn.Close() }
	}
}

// user makes a user without rights, dropped when tb has ended.
func (s *server) user(tb testing.TB) string {
	tb.Helper()
	user := "shedbolt_" + strings.ToLower(rand.Text()[:12])
	run(tb, s.admin, "CREATE USER "+user+"@'%' IDENTIFIED BY 'secret'")
	tb.Cleanup(func() { run(tb, s.admin, "DROP USER "+user) })
	return user
}

func as(user string) change { return func(c *client.Config) { c.User, c.Passwd = user, "secret" } }

func (s *server) broken() map[string]conformancetest.Breakage {
	// odd is a client of a table that others have made, and mended by a statement.
	odd := func(ddl, mend string) conformancetest.Breakage {
		return conformancetest.Breakage{Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			name := "odd_" + strings.ToLower(rand.Text())
			run(tb, s.admin, fmt.Sprintf(ddl, name))
			return s.provider(tb, s.pool(tb, connections), name), func() { run(tb, s.admin, fmt.Sprintf(mend, name)) }
		}}
	}
	const fine = "(name VARCHAR(64) CHARACTER SET utf8mb4 NOT NULL PRIMARY KEY, lock_until DATETIME(3) NOT NULL, locked_at DATETIME(3) NOT NULL, locked_by VARCHAR(255) NOT NULL, fence BIGINT NOT NULL DEFAULT 0)"
	like := func(old, changed string) string { return "CREATE TABLE %s" + strings.Replace(fine, old, changed, 1) }
	return map[string]conformancetest.Breakage{
		"down": {Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			proxy := conformancetest.NewProxy(tb, s.config.Addr)
			proxy.Down()
			return s.open(tb, at(proxy.Addr())), proxy.Up
		}},
		"no_table": {Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			p := s.provider(tb, s.pool(tb, connections), "missing_"+strings.ToLower(rand.Text()))
			return p, func() {
				if err := p.EnsureSchema(context.Background()); err != nil {
					tb.Errorf("EnsureSchema: %v", err)
				}
			}
		}},
		"no_permission": {Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			user := s.user(tb)
			run(tb, s.admin, "CREATE TABLE "+user+" (other INT)") // for the user to see the database
			run(tb, s.admin, "GRANT SELECT ON "+user+" TO "+user)
			return s.open(tb, as(user)), func() { run(tb, s.admin, "GRANT SELECT, INSERT, UPDATE ON "+s.table+" TO "+user) }
		}},
		"no_permission_to_write": {Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			user := s.user(tb)
			run(tb, s.admin, "GRANT SELECT ON "+s.table+" TO "+user)
			return s.open(tb, as(user)), func() { run(tb, s.admin, "GRANT INSERT, UPDATE ON "+s.table+" TO "+user) }
		}},
		"wrong_password": {Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			user := s.user(tb)
			run(tb, s.admin, "GRANT SELECT, INSERT, UPDATE ON "+s.table+" TO "+user)
			run(tb, s.admin, "ALTER USER "+user+" IDENTIFIED BY 'another'")
			return s.open(tb, as(user)), func() { run(tb, s.admin, "ALTER USER "+user+" IDENTIFIED BY 'secret'") }
		}},
		"read_only": {Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			return s.open(tb, func(c *client.Config) {
				c.Params = maps.Clone(c.Params)
				c.Params[s.either("tx_read_only", "transaction_read_only")] = "1"
			}), nil
		}},
		"autocommit_off": {Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			return s.open(tb, func(c *client.Config) {
				c.Params = maps.Clone(c.Params)
				c.Params["autocommit"] = "0"
			}), nil
		}},
		"time_without_fraction": odd(like("lock_until DATETIME(3)", "lock_until DATETIME"), "ALTER TABLE %s MODIFY lock_until DATETIME(3) NOT NULL"),
		"time_in_another_zone": {Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			name := "odd_" + strings.ToLower(rand.Text())
			run(tb, s.admin, fmt.Sprintf(like("lock_until DATETIME(3) NOT NULL", "lock_until TIMESTAMP(3) NULL"), name))
			db := s.pool(tb, connections, func(c *client.Config) {
				c.Params = maps.Clone(c.Params)
				c.Params["time_zone"] = "'-11:00'"
			})
			return s.provider(tb, db, name), func() { run(tb, s.admin, "ALTER TABLE "+name+" MODIFY lock_until DATETIME(3) NOT NULL") }
		}},
		"time_that_changes_by_itself": odd(like("locked_at DATETIME(3) NOT NULL",
			"locked_at DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)"),
			"ALTER TABLE %s MODIFY locked_at DATETIME(3) NOT NULL"),
		"short_name":      odd(like("name VARCHAR(64)", "name VARCHAR(63)"), "ALTER TABLE %s MODIFY name VARCHAR(64) CHARACTER SET utf8mb4 NOT NULL"),
		"short_locked_by": odd(like("locked_by VARCHAR(255)", "locked_by VARCHAR(50)"), "ALTER TABLE %s MODIFY locked_by VARCHAR(255) NOT NULL"),
		// Every new record is a duplicate, whoever holds what.
		"another_unique_column": odd(like("fence BIGINT NOT NULL DEFAULT 0)", "fence BIGINT NOT NULL DEFAULT 0, one INT NOT NULL DEFAULT 1 UNIQUE) SELECT 'other' AS name, UTC_TIMESTAMP(3) AS lock_until, UTC_TIMESTAMP(3) AS locked_at, 'x' AS locked_by"),
			"ALTER TABLE %s DROP COLUMN one"),
		"name_not_unique": odd(like("NOT NULL PRIMARY KEY", "NOT NULL, UNIQUE (name, locked_by)"), "ALTER TABLE %s ADD UNIQUE (name)"),
	}
}
