package postgres

import (
	"embed"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed schema.sql sql/*.sql
var files embed.FS

// statements are the files with the table's and columns' names in place.
type statements struct {
	acquire, release, extend, forceRelease, inspect, list, columns, schema string
}

func newStatements(c config) statements {
	quote := func(column string) string { return pgx.Identifier{column}.Sanitize() }
	pairs := []string{
		"{table}", c.table.Sanitize(),
		"{name}", quote(c.columns.Name),
		"{lock_until}", quote(c.columns.LockUntil),
		"{locked_at}", quote(c.columns.LockedAt),
		"{locked_by}", quote(c.columns.LockedBy),
	}
	record := strings.NewReplacer(pairs...).Replace(read("sql/record.sql"))
	names := strings.NewReplacer(append(pairs, "{record}", record)...)
	return statements{
		acquire:      names.Replace(read("sql/acquire.sql")),
		release:      names.Replace(read("sql/release.sql")),
		extend:       names.Replace(read("sql/extend.sql")),
		forceRelease: names.Replace(read("sql/force_release.sql")),
		inspect:      names.Replace(read("sql/inspect.sql")),
		list:         names.Replace(read("sql/list.sql")),
		columns:      read("sql/columns.sql"),
		schema:       names.Replace(read("schema.sql")),
	}
}

// read returns a statement without its comments, which are for readers of the
// file: the server need not parse them, and a proxy that folds a statement into
// one line would make them swallow it.
func read(file string) string {
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
	return strings.TrimSpace(strings.Join(lines, ""))
}
