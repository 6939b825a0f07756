package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Schema is the DDL of the table, for a migration.
func (p *Provider) Schema() string { return p.sql.schema + ";\n" }

// schemaLock is the advisory lock under which tables are made: the bytes of
// "shedbolt". CREATE TABLE IF NOT EXISTS alone fails when two sessions run it at
// the same time.
const schemaLock int64 = 0x73686564626f6c74

// EnsureSchema creates the table unless it exists. Several replicas may call it
// at once. An existing table is left as it is, and no right to create tables is
// needed then.
func (p *Provider) EnsureSchema(ctx context.Context) error {
	return plain(p.db.do(ctx, func(q querier) error {
		rows, err := q.Query(ctx, "SELECT to_regclass($1::text) IS NOT NULL", p.config.table.Sanitize())
		if err != nil {
			return err
		}
		exists, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
		if err != nil || exists {
			return err
		}
		// In READ COMMITTED the third statement sees what another session had
		// committed before it freed the advisory lock.
		batch := &pgx.Batch{}
		batch.Queue(begin)
		batch.Queue("SELECT pg_advisory_xact_lock($1::bigint)", schemaLock)
		batch.Queue(p.sql.schema)
		batch.Queue("commit")
		return q.SendBatch(ctx, batch).Close()
	}))
}

// checkColumns refuses, once, a table on which locks would not be safe.
func (p *Provider) checkColumns(ctx context.Context) error {
	if p.checked.Load() {
		return nil
	}
	type column struct {
		name, kind    string
		deterministic bool // its collation
	}
	var columns []column
	c := p.config.columns
	err := p.db.do(ctx, func(q querier) error {
		rows, err := q.Query(ctx, p.sql.columns, p.config.table.Sanitize(), c.Name, c.LockUntil, c.LockedAt, c.LockedBy)
		if err != nil {
			return err
		}
		columns, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (found column, err error) {
			return found, row.Scan(&found.name, &found.kind, &found.deterministic)
		})
		return err
	})
	if err != nil {
		return plain(err) // it read the catalogue and wrote nothing
	}
	find := func(name string) (found column) {
		for _, col := range columns {
			if col.name == name {
				found = col
			}
		}
		return found
	}
	unfit := func(name, fault, mend string) error {
		return fmt.Errorf("postgres: table %s is not fit for locks: column %q %s: %s", p.config.table.Sanitize(), name, fault, mend)
	}
	for _, name := range []string{c.Name, c.LockedBy} {
		switch col := find(name); {
		case col.kind == "":
			return unfit(name, "is missing", "see Schema")
		case col.kind != "text" && !strings.HasPrefix(col.kind, "character varying"):
			return unfit(name, "is "+col.kind, "make it varchar, which keeps all texts apart")
		case !col.deterministic:
			return unfit(name, "has a non-deterministic collation", `give it a collation that keeps all texts apart, such as "C"`)
		}
	}
	for _, name := range []string{c.LockUntil, c.LockedAt} {
		switch kind := find(name).kind; {
		case kind == "":
			return unfit(name, "is missing", "see Schema")
		case strings.HasSuffix(kind, " with time zone"):
			return unfit(name, "is "+kind+", whose meaning in ShedLock's statements depends on each session's TimeZone",
				"ALTER COLUMN … TYPE timestamp USING … AT TIME ZONE 'UTC'")
		case kind != "timestamp without time zone" && kind != "timestamp(6) without time zone":
			return unfit(name, "is "+kind+", which rounds or is no time", "ALTER COLUMN … TYPE timestamp")
		}
	}
	p.checked.Store(true)
	return nil
}
