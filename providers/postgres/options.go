package postgres

import (
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
)

// DefaultTable is ShedLock's name for the table.
const DefaultTable = "shedlock"

// Columns names the table's columns.
type Columns struct {
	Name, LockUntil, LockedAt, LockedBy string
}

// DefaultColumns are ShedLock's names for the columns.
func DefaultColumns() Columns {
	return Columns{Name: "name", LockUntil: "lock_until", LockedAt: "locked_at", LockedBy: "locked_by"}
}

type config struct {
	table   pgx.Identifier
	columns Columns
}

// Option changes a Provider's defaults.
type Option func(*config) error

// WithTable names the table: its name alone, which is looked up along the
// session's search_path, or the schema and the name. The parts are quoted, so
// they are case-sensitive and may contain any character. The default is
// [DefaultTable].
func WithTable(parts ...string) Option {
	return func(c *config) error {
		if len(parts) < 1 || len(parts) > 2 || slices.Contains(parts, "") {
			return errors.New("postgres: WithTable needs a table, or a schema and a table")
		}
		c.table = parts
		return nil
	}
}

// WithColumns names the columns; empty fields keep their defaults. The names are
// quoted, so they are case-sensitive.
func WithColumns(columns Columns) Option {
	return func(c *config) error {
		for _, field := range []struct{ have, want *string }{
			{&c.columns.Name, &columns.Name},
			{&c.columns.LockUntil, &columns.LockUntil},
			{&c.columns.LockedAt, &columns.LockedAt},
			{&c.columns.LockedBy, &columns.LockedBy},
		} {
			if *field.want != "" {
				*field.have = *field.want
			}
		}
		return nil
	}
}
