package mysql

import (
	"cmp"
	"errors"
	"slices"
)

// DefaultTable is ShedLock's name for the table.
const DefaultTable = "shedlock"

// Columns names the table's columns.
type Columns struct {
	Name, LockUntil, LockedAt, LockedBy string
	// Fence is used by [WithFencing] alone. ShedLock does not know it.
	Fence string
}

// DefaultColumns are ShedLock's names for its columns, and "fence".
func DefaultColumns() Columns {
	return Columns{Name: "name", LockUntil: "lock_until", LockedAt: "locked_at", LockedBy: "locked_by", Fence: "fence"}
}

type config struct {
	database, table string // database may be empty
	columns         Columns
	fencing         bool
}

// Option changes a Provider's defaults.
type Option func(*config) error

// WithTable names the table: its name alone, which is looked up in the
// connection's database, or the database and the name. The parts are quoted, so
// they may contain any character. The default is [DefaultTable].
func WithTable(parts ...string) Option {
	return func(c *config) error {
		if len(parts) < 1 || len(parts) > 2 || slices.Contains(parts, "") {
			return errors.New("mysql: WithTable needs a table, or a database and a table")
		}
		c.database, c.table = "", parts[len(parts)-1]
		if len(parts) == 2 {
			c.database = parts[0]
		}
		return nil
	}
}

// WithColumns names the columns; empty fields keep their defaults. The names are
// quoted, so they may contain any character.
func WithColumns(columns Columns) Option {
	return func(c *config) error {
		c.columns = Columns{
			Name:      cmp.Or(columns.Name, c.columns.Name),
			LockUntil: cmp.Or(columns.LockUntil, c.columns.LockUntil),
			LockedAt:  cmp.Or(columns.LockedAt, c.columns.LockedAt),
			LockedBy:  cmp.Or(columns.LockedBy, c.columns.LockedBy),
			Fence:     cmp.Or(columns.Fence, c.columns.Fence),
		}
		return nil
	}
}

// WithFencing makes grants carry fencing numbers, which the table keeps in a
// BIGINT column, by default "fence". All clients that rely on the numbers must use
// it; others, such as ShedLock, leave the column as it is.
func WithFencing() Option {
	return func(c *config) error {
		c.fencing = true
		return nil
	}
}
