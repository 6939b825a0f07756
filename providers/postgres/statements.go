package postgres

import (
	"context"
	"embed"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/shedbolt/shedbolt/core"
)

//go:embed schema.sql sql/*.sql
var files embed.FS

// statements are the files with the table's and columns' names in place.
type statements struct {
	acquire, release, extend, forceRelease, inspect, list, columns, schema string
}

func newStatements(c config) statements {
	quote := func(column string) string { return pgx.Identifier{column}.Sanitize() }
	names := strings.NewReplacer(
		"{table}", c.table.Sanitize(),
		"{name}", quote(c.columns.Name),
		"{lock_until}", quote(c.columns.LockUntil),
		"{locked_at}", quote(c.columns.LockedAt),
		"{locked_by}", quote(c.columns.LockedBy),
	)
	// The comments are for readers of the files: the server need not parse them,
	// and one would not survive where a proxy folds a statement into one line.
	read := func(file string) string {
		text, err := files.ReadFile(file)
		if err != nil {
			panic(err) // a file of this folder is not embedded
		}
		var lines []string
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "--") {
				lines = append(lines, line)
			}
		}
		return names.Replace(strings.TrimSpace(strings.Join(lines, "")))
	}
	return statements{
		acquire:      read("sql/acquire.sql"),
		release:      read("sql/release.sql"),
		extend:       read("sql/extend.sql"),
		forceRelease: read("sql/force_release.sql"),
		inspect:      read("sql/inspect.sql"),
		list:         read("sql/list.sql"),
		columns:      read("sql/columns.sql"),
		schema:       read("schema.sql"),
	}
}

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
		batch := &pgx.Batch{}
		batch.Queue("begin isolation level read committed")
		batch.Queue("SELECT pg_advisory_xact_lock($1::bigint)", schemaLock)
		batch.Queue(p.sql.schema)
		batch.Queue("commit")
		return q.SendBatch(ctx, batch).Close()
	}))
}

// classify marks an error after which the statement may have been carried out.
func classify(err error) error {
	if uncertain(err) {
		return core.Uncertain(err)
	}
	return plain(err)
}
