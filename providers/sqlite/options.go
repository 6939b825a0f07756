package sqlite

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// DefaultTable is ShedLock's name for the table.
const DefaultTable = "shedlock"

// DefaultBusyLimit is the busy limit unless [WithBusyLimit] sets one.
const DefaultBusyLimit = 5 * time.Second

type config struct {
	table     string // quoted
	busyLimit time.Duration
}

// Option changes a Provider's defaults.
type Option func(*config) error

// WithTable names the table: its name alone, or the name of an attached database
// and the table's. The parts are quoted and may contain any character. The
// default is [DefaultTable].
func WithTable(parts ...string) Option {
	return func(c *config) error {
		if len(parts) < 1 || len(parts) > 2 || slices.ContainsFunc(parts, func(s string) bool { return s == "" || strings.Contains(s, "\x00") }) {
			return errors.New("sqlite: WithTable needs a table, or an attached database and a table")
		}
		c.table = quote(parts)
		return nil
	}
}

// WithBusyLimit sets for how long a call tries again while another connection
// has the database locked. A try that has begun is not cut short: with a
// busy_timeout, SQLite itself may wait for longer. Zero means one try.
func WithBusyLimit(d time.Duration) Option {
	return func(c *config) error {
		if d < 0 {
			return fmt.Errorf("sqlite: the busy limit is %v, it must not be negative", d)
		}
		c.busyLimit = d
		return nil
	}
}

func quote(parts []string) string {
	quoted := make([]string, len(parts))
	for i, part := range parts {
		quoted[i] = `"` + strings.ReplaceAll(part, `"`, `""`) + `"`
	}
	return strings.Join(quoted, ".")
}
