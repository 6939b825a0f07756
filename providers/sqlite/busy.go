package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

// The pauses between tries on a database that is busy.
const (
	minPause = time.Millisecond
	maxPause = 10 * time.Millisecond
)

// patience is the busy timeout that a connection without one is lent when it has
// to try again. Without any, a rollback journal's writer gives up at the sight of
// one reader, and under many readers never gets to its commit; with one it keeps
// new readers out while it waits for the others.
const patience = 100 * time.Millisecond

// whileBusy makes a call again and again while SQLite says that the database is
// busy: then the call has changed nothing. A busy timeout alone would not do:
// SQLite does not wait where waiting could be in vain.
//
// A call that writes, or has to be made again, waits for its turn: SQLite has one
// writer at a time, and many that try at once keep each other from it. The limit
// counts from before the turn, so that those behind a call that gave up give up
// soon; but each gets a try. The call is told if it comes late.
func (p *Provider) whileBusy(ctx context.Context, a access, call func(conn *sql.Conn, late bool) error) error {
	try := func(lent time.Duration, late bool) error {
		return p.onConn(ctx, lent, func(conn *sql.Conn) error { return call(conn, late) })
	}
	if p.config.busyLimit == 0 {
		return try(0, false)
	}
	var err error
	if a == reading {
		if err = try(0, false); !busy(err) {
			return err
		}
	}
	end := time.NewTimer(p.config.busyLimit)
	defer end.Stop()
	lent, late := time.Duration(0), false
	select {
	case p.turn <- struct{}{}:
	default:
		select {
		case p.turn <- struct{}{}:
			late = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-p.turn }()
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		if err = try(lent, late); !busy(err) {
			return err
		}
		lent, late = min(patience, p.config.busyLimit), true
		wait := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-wait.C:
		case <-ctx.Done():
			wait.Stop()
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-end.C:
			wait.Stop()
			return fmt.Errorf("sqlite: busy for %v: %w", p.config.busyLimit, err)
		}
	}
}

// onConn makes a call on a connection of the pool, which has at least the busy
// timeout d meanwhile. It takes the connection by itself, rather than let the pool
// do it, because only so an exhausted pool can be told from a lost result.
func (p *Provider) onConn(ctx context.Context, d time.Duration, call func(*sql.Conn) error) error {
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // back to the pool
	if d > 0 {
		var own int64
		if err := conn.QueryRowContext(ctx, "PRAGMA busy_timeout").Scan(&own); err != nil {
			return err
		}
		if own == 0 {
			if _, err := conn.ExecContext(ctx, fmt.Sprintf("PRAGMA busy_timeout = %d", max(1, d.Milliseconds()))); err != nil {
				return err
			}
			defer func() {
				if _, err := conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA busy_timeout = 0"); err != nil {
					// Not as it was: the pool must not hand it out again.
					_ = conn.Raw(func(any) error { return driver.ErrBadConn })
				}
			}()
		}
	}
	return call(conn)
}

// SQLite's primary result codes that decide something here.
const (
	codeBusy      = 5  // another connection has the database locked
	codeLocked    = 6  // another connection of a shared cache has the table locked
	codeInterrupt = 9  // the driver broke off, because the context had ended
	codeIO        = 10 // the operating system refused a write, or its commit
)

// code finds SQLite's primary result code in a driver's error, where the driver
// has it as a method, as modernc.org/sqlite does. Of other drivers' errors it
// knows SQLite's own words for those codes that are told apart here.
func code(err error) (c int, known bool) {
	if coded, ok := errors.AsType[interface {
		error
		Code() int
	}](err); ok {
		return coded.Code() & 0xff, true // the rest is the extended code
	}
	for text, c := range map[string]int{
		"database is locked":        codeBusy,
		"database table is locked":  codeLocked,
		"database schema is locked": codeLocked,
		"interrupted":               codeInterrupt,
		"disk I/O error":            codeIO,
	} {
		if strings.Contains(err.Error(), text) {
			return c, true
		}
	}
	return 0, false
}

// busy reports whether a statement did not begin, or was rolled back, because
// another connection was in its way.
func busy(err error) bool {
	if err == nil {
		return false
	}
	c, _ := code(err)
	return c == codeBusy || c == codeLocked
}

// classify marks a writing statement's error as core.Uncertain if it may have been
// carried out. What SQLite answers with an error it has rolled back; but it can't
// tell whether a commit that the operating system refused has reached the disk,
// and an interrupt or the end of the context can come after the commit.
func classify(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	c, known := code(err)
	if ctx.Err() != nil && !busy(err) || known && (c == codeInterrupt || c == codeIO) {
		return core.Uncertain(err)
	}
	return err
}
