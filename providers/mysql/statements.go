package mysql

import (
	"embed"
	"encoding/hex"
	"strconv"
	"strings"
)

//go:embed schema.sql sql/*.sql
var files embed.FS

// statements are the files with the table's and columns' names in place.
type statements struct {
	read, inspect, list, take, insert, block, batch, release, extend, forceRelease, columns, indexes, session, zones, probe, schema template
}

func newStatements(c config) statements {
	table := quote(c.table)
	if c.database != "" {
		table = quote(c.database) + "." + table
	}
	const now = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3))"
	names := map[string]string{
		"table": table,
		"name":  quote(c.columns.Name), "lock_until": quote(c.columns.LockUntil),
		"locked_at": quote(c.columns.LockedAt), "locked_by": quote(c.columns.LockedBy),
		"fence": quote(c.columns.Fence), "fence_or_zero": "0", "fence_column": "", "first_fence": "", "next_fence": "",
	}
	if c.fencing {
		// At least the time, so that the number rises also over the removal of a
		// record, and at least the next one, so that it does within a millisecond.
		names["fence_or_zero"], names["fence_column"], names["first_fence"] = "COALESCE({fence}, 0)", ", {fence}", ", "+now
		names["next_fence"] = ",\n\t{fence} = GREATEST(COALESCE({fence}, 0) + 1, " + now + ")"
	}
	// Files may name other files, which stand before them here.
	file := func(name string) template { return compile(text(name), names) }
	for _, part := range []string{"record", "exact", "take", "insert", "read"} {
		names[part] = text("sql/" + part + ".sql")
	}
	return statements{
		read: file("sql/read.sql"), inspect: file("sql/inspect.sql"), list: file("sql/list.sql"),
		take: file("sql/take.sql"), insert: file("sql/insert.sql"),
		block: file("sql/acquire_block.sql"), batch: file("sql/acquire_batch.sql"),
		release: file("sql/release.sql"), extend: file("sql/extend.sql"), forceRelease: file("sql/force_release.sql"),
		columns: file("sql/columns.sql"), indexes: file("sql/indexes.sql"), session: file("sql/session.sql"),
		zones: file("sql/zones.sql"), probe: file("sql/probe.sql"), schema: file("schema.sql"),
	}
}

// text returns a statement without its comments, which are for readers of the
// file: a proxy that folds a statement into one line would make them swallow it.
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

func quote(identifier string) string {
	return "`" + strings.ReplaceAll(identifier, "`", "``") + "`"
}

// template is a statement with gaps for values: texts and gaps in turn.
type template struct {
	texts, gaps []string // one text more than gaps
}

// compile fills in {names}, and leaves {$values} as gaps. A name's own text is not
// looked into unless it is a part of statements itself, so that a column called
// "{$name}" is only a column.
func compile(s string, names map[string]string) template {
	t := template{texts: []string{""}}
	add := func(s string) { t.texts[len(t.texts)-1] += s }
	for {
		before, rest, found := strings.Cut(s, "{")
		add(before)
		if !found {
			return t
		}
		var key string
		key, s, _ = strings.Cut(rest, "}")
		switch value, isName := names[key]; {
		case strings.HasPrefix(key, "$"):
			t.gaps = append(t.gaps, key[1:])
			t.texts = append(t.texts, "")
		case !isName:
			panic("no value for {" + key + "}")
		case strings.HasPrefix(value, "`"), value == "":
			add(value)
		default: // a part
			part := compile(value, names)
			add(part.texts[0])
			t.gaps = append(t.gaps, part.gaps...)
			t.texts = append(t.texts, part.texts[1:]...)
		}
	}
}

// values are what fills a statement's gaps. They are written into the statement:
// as a parameter of the protocol each value would need a second trip to prepare
// the statement, or the client's interpolateParams. Texts are written in
// hexadecimal, so nothing in them is special, whatever the session's sql_mode and
// character set.
type values struct {
	name, holder  string
	micros, limit int64
	all           bool
}

func (v values) gap(name string) string {
	switch name {
	case "name":
		return literal(v.name)
	case "name_bytes":
		return "X'" + hex.EncodeToString([]byte(v.name)) + "'"
	case "holder":
		return literal(v.holder)
	case "micros":
		return strconv.FormatInt(v.micros, 10)
	case "limit":
		return strconv.FormatInt(v.limit, 10)
	case "all":
		return strings.ToUpper(strconv.FormatBool(v.all))
	}
	panic("no value for {$" + name + "}")
}

func literal(s string) string { return "_utf8mb4 X'" + hex.EncodeToString([]byte(s)) + "'" }

// with is the statement with its gaps filled.
func (t template) with(v values) string {
	var b strings.Builder
	for i, text := range t.texts {
		b.WriteString(text)
		if i < len(t.gaps) {
			b.WriteString(v.gap(t.gaps[i]))
		}
	}
	return b.String()
}
