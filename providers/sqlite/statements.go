package sqlite

import (
	"embed"
	"strings"
)

//go:embed schema.sql sql/*.sql
var files embed.FS

// statements are the files with the table's name and the clock in place.
type statements struct {
	acquire, release, extend, forceRelease, inspect, list, schema string
}

func newStatements(c config) statements {
	names := strings.NewReplacer("{table}", c.table, "{now}", text("sql/now.sql"))
	return statements{
		acquire:      names.Replace(text("sql/acquire.sql")),
		release:      names.Replace(text("sql/release.sql")),
		extend:       names.Replace(text("sql/extend.sql")),
		forceRelease: names.Replace(text("sql/force_release.sql")),
		inspect:      names.Replace(text("sql/inspect.sql")),
		list:         names.Replace(text("sql/list.sql")),
		schema:       names.Replace(text("schema.sql")),
	}
}

// text returns a statement without its comments, which are for readers of the
// file.
func text(file string) string {
	content, err := files.ReadFile(file)
	if err != nil {
		panic(err) // a file of this folder is not embedded
	}
	var lines []string
	for line := range strings.Lines(string(content)) {
		if !strings.HasPrefix(line, "--") {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, ""))
}
