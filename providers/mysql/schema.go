package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

// Schema is the DDL of the table, for a migration. MySQL and MariaDB both take it.
func (p *Provider) Schema() string { return p.sql.schema.with(values{}) + ";\n" }

// EnsureSchema creates the table unless it exists. Several replicas may call it
// at once. An existing table is left as it is, and no right to create tables is
// needed then.
func (p *Provider) EnsureSchema(ctx context.Context) error {
	if _, err := p.query(ctx, p.sql.inspect, values{}); number(err) != errNoTable {
		return plain(err)
	}
	_, err := p.db.ExecContext(ctx, p.sql.schema.with(values{}))
	return err
}

// How a claim is made in one trip.
const (
	steps = iota // it is not: a read, and a write if the lock is free
	block        // a compound statement of MariaDB
	batch        // several statements at once, which the DSN's multiStatements allows
)

// fitness is what was learned of the table and the session at the first use.
type fitness struct {
	table, nameColumn, untilColumn string
	oneTrip                        int
	nameCharset, nameCollation     string
	holderCharset                  string
	timestamp                      bool      // lock_until is TIMESTAMP
	autoIncrement                  bool      // of a column of others: INSERT then reports that
	looked                         time.Time // by the server's clock
}

// check refuses, once, a table or a session with which locks would not be safe.
func (p *Provider) check(ctx context.Context) (*fitness, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	if f := p.fit.Load(); f != nil {
		return f, nil
	}
	f, err := p.look(ctx)
	if err != nil {
		return nil, err
	}
	p.fit.Store(f)
	return f, nil
}

// column is what SHOW FULL COLUMNS and SHOW INDEX say of one.
type column struct {
	kind             string
	size             int64 // in characters, bytes or digits of a second
	charset          string
	collation        string
	onUpdate, unique bool
	counts           bool // AUTO_INCREMENT
}

func (p *Provider) look(ctx context.Context) (*fitness, error) {
	columns, err := p.columns(ctx)
	if err != nil {
		return nil, err
	}
	names := p.config.columns
	find := func(name string) column { return columns[strings.ToLower(name)] }
	f := &fitness{table: p.config.table, nameColumn: names.Name, untilColumn: names.LockUntil}
	for _, text := range []struct {
		column string
		length int64
	}{{names.Name, core.MaxNameLength}, {names.LockedBy, 255}} {
		switch c := find(text.column); {
		case c.kind == "":
			return nil, f.unfit(text.column, "is missing", "see Schema")
		case c.kind != "varchar" && c.kind != "varbinary": // CHAR comes back padded in some sql_modes
			return nil, f.unfit(text.column, "is "+c.kind, fmt.Sprintf("make it VARCHAR(%d)", text.length))
		case c.charset != "" && c.size < text.length, c.charset == "" && c.size < 4*text.length:
			return nil, f.unfit(text.column, fmt.Sprintf("holds %d characters", c.size), fmt.Sprintf("make it VARCHAR(%d)", text.length))
		}
	}
	for _, name := range []string{names.LockUntil, names.LockedAt} {
		switch c := find(name); {
		case c.kind == "":
			return nil, f.unfit(name, "is missing", "see Schema")
		case c.kind != "datetime" && c.kind != "timestamp":
			return nil, f.unfit(name, "is "+c.kind, "make it DATETIME(3)")
		case c.size < 3:
			return nil, f.unfit(name, fmt.Sprintf("keeps %d digits of a second and rounds", c.size), "make it DATETIME(3)")
		case c.onUpdate:
			return nil, f.unfit(name, "changes by itself ON UPDATE", "make it DATETIME(3) NOT NULL")
		case c.kind == "timestamp":
			if err := p.zones(ctx, f, name); err != nil {
				return nil, err
			}
			f.timestamp = f.timestamp || name == names.LockUntil
		}
	}
	if p.config.fencing && find(names.Fence).kind != "bigint" {
		return nil, f.unfit(names.Fence, "is missing or not BIGINT", "ALTER TABLE … ADD COLUMN … BIGINT NOT NULL DEFAULT 0")
	}
	for _, c := range columns {
		f.autoIncrement = f.autoIncrement || c.counts
	}
	name := find(names.Name)
	if !name.unique {
		return nil, f.unfit(names.Name, "is not unique by itself", "make it the primary key")
	}
	f.nameCharset, f.nameCollation, f.holderCharset = name.charset, name.collation, find(names.LockedBy).charset
	var autocommit bool
	var version string
	var now int64
	if err := p.db.QueryRowContext(ctx, p.sql.session.with(values{})).Scan(&autocommit, &version, &now); err != nil {
		return nil, err
	}
	if !autocommit {
		return nil, errors.New("mysql: autocommit is off, so no lock would ever be committed: take it out of the DSN, or give the locks a pool of their own")
	}
	f.looked = time.UnixMicro(now)
	if _, err := p.change(ctx, p.sql.probe, values{}); err != nil {
		return nil, plain(err)
	}
	f.oneTrip, err = p.oneTrip(ctx, version)
	return f, err
}

// kindAndSize are the parts of a type such as "varchar(64)" or "bigint unsigned".
var kindAndSize = regexp.MustCompile(`^(\w+)(?:\((\d+)\))?`)

// columns are the table's, by their names in lower case.
func (p *Provider) columns(ctx context.Context) (map[string]column, error) {
	columns := map[string]column{}
	err := p.show(ctx, p.sql.columns, func(row map[string]string) {
		var c column
		if parts := kindAndSize.FindStringSubmatch(strings.ToLower(row["type"])); parts != nil {
			c.kind = parts[1]
			c.size, _ = strconv.ParseInt(parts[2], 10, 64) // none is 0
		}
		c.collation = row["collation"]
		c.charset, _, _ = strings.Cut(c.collation, "_")
		c.onUpdate = strings.Contains(strings.ToLower(row["extra"]), "on update")
		c.counts = strings.Contains(strings.ToLower(row["extra"]), "auto_increment")
		columns[strings.ToLower(row["field"])] = c
	})
	if err != nil {
		return nil, err
	}
	unique := map[string][]string{} // indexes and their columns
	err = p.show(ctx, p.sql.indexes, func(row map[string]string) {
		if row["non_unique"] == "0" {
			column := strings.ToLower(row["column_name"])
			if row["sub_part"] != "" {
				column = "" // unique in its beginning alone, which is no help
			}
			unique[row["key_name"]] = append(unique[row["key_name"]], column)
		}
	})
	for _, of := range unique {
		if c, ok := columns[of[0]]; ok && len(of) == 1 {
			c.unique = true
			columns[of[0]] = c
		}
	}
	return columns, err
}

// show reads the rows of a SHOW statement, whose columns are not the same in all
// versions; their names in lower case, and NULL as "".
func (p *Provider) show(ctx context.Context, t template, each func(row map[string]string)) (err error) {
	rows, err := p.db.QueryContext(ctx, t.with(values{}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	fields := make([]sql.NullString, len(names))
	into := make([]any, len(names))
	for i := range fields {
		into[i] = &fields[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		row := map[string]string{}
		for i, name := range names {
			row[strings.ToLower(name)] = fields[i].String
		}
		each(row)
	}
	return rows.Err()
}

// zones refuses a TIMESTAMP column where its meaning is not safe. ShedLock's
// statements store UTC's wall time in it, which the server takes for the session's
// local time: sessions in different zones would disagree about each lock, and wall
// times that a zone skips in spring can't be stored.
func (p *Provider) zones(ctx context.Context, f *fitness, column string) error {
	var fixed, servers bool
	var zone string
	if err := p.db.QueryRowContext(ctx, p.sql.zones.with(values{})).Scan(&fixed, &servers, &zone); err != nil {
		return err
	}
	const mend = "make it DATETIME(3), on which ShedLock's statements mean the same in all zones"
	if !servers {
		return f.unfit(column, "is TIMESTAMP, and the session's time_zone "+zone+" is not the server's, which other sessions use", mend)
	}
	if !fixed {
		return f.unfit(column, "is TIMESTAMP, and the time_zone "+zone+" has daylight saving time, whose gap it can't hold", mend)
	}
	return nil
}

// oneTrip finds out how a claim can be made in one trip.
func (p *Provider) oneTrip(ctx context.Context, version string) (int, error) {
	probe, way := "DO 0; DO 0", batch
	if strings.Contains(version, "MariaDB") {
		probe, way = "BEGIN NOT ATOMIC DECLARE shedbolt INT; SELECT 0 INTO shedbolt; END", block // not in every sql_mode
	}
	if _, err := p.db.ExecContext(ctx, probe); number(err) != 0 { // it may not be sent, for whatever reason
		return steps, nil
	} else if err != nil {
		return steps, err
	}
	return way, nil
}

func (f *fitness) unfit(column, fault, mend string) error {
	return fmt.Errorf("mysql: table %s is not fit for locks: column %q %s: %s", quote(f.table), column, fault, mend)
}

// values fills in what a record is found by.
func (f *fitness) values(name, holder string) (values, error) {
	if !keepsAll(f.nameCharset) && !ascii(name) {
		return values{}, f.unfit(f.nameColumn, "has the character set "+f.nameCharset+", which can't hold the name "+fmt.Sprintf("%q", name),
			"convert it to utf8mb4")
	}
	if !keepsAll(f.holderCharset) {
		holder = strings.Map(func(r rune) rune {
			if r > '~' {
				return '?'
			}
			return r
		}, holder)
	}
	return values{name: name, holder: holder}, nil
}

// keepsAll reports whether a character set has all of Unicode; "" is bytes.
func keepsAll(charset string) bool { return charset == "utf8mb4" || charset == "" }

func ascii(s string) bool { return strings.IndexFunc(s, func(r rune) bool { return r > '~' }) < 0 }

// collision says that a record of another name is in the way.
func (f *fitness) collision(name, other string) error {
	return f.unfit(f.nameColumn, fmt.Sprintf("has the collation %s, which can't tell the name %q from %q", f.nameCollation, name, other),
		"give it a collation that keeps all texts apart: see Schema")
}

// timestampEnd is a year before the last instant that TIMESTAMP holds: a process
// looks at the time once, and may live for long.
var timestampEnd = time.Date(2037, 1, 18, 0, 0, 0, 0, time.UTC)

// reaches refuses a time that a column would mangle without strict sql_mode.
func (f *fitness) reaches(d time.Duration) error {
	if f.timestamp && f.looked.Add(d).After(timestampEnd) {
		return f.unfit(f.untilColumn, "is TIMESTAMP, which ends in 2038", "make it DATETIME(3)")
	}
	return nil
}
