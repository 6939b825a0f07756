package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"slices"

	client "github.com/go-sql-driver/mysql"

	"github.com/shedbolt/shedbolt/core"
)

// Error numbers of the servers.
const (
	errDuplicate = 1062
	errDeadlock  = 1213 // also what a cluster answers when it rolls back at commit
	errSyntax    = 1064
	errNoTable   = 1146
)

// interrupting are the errors of a statement that was stopped from outside, maybe
// in the last moment: shutdown, KILL, a time limit, a connection that was ended.
var interrupting = []uint16{1053, 1077, 1079, 1158, 1159, 1160, 1161, 1317, 1927, 1928, 1969, 3024, 3169, 4031}

func number(err error) uint16 {
	if serverErr, ok := errors.AsType[*client.MySQLError](err); ok {
		return serverErr.Number
	}
	return 0
}

// raced reports whether a statement was refused, and rolled back, because of
// another one at the same time.
func raced(err error) bool { return number(err) == errDuplicate || number(err) == errDeadlock }

// classify marks the errors after which a statement may have been carried out.
func classify(err error) error {
	if uncertain(err) {
		return core.Uncertain(err)
	}
	return err
}

func uncertain(err error) bool {
	if err == nil {
		return false
	}
	if n := number(err); n != 0 {
		return slices.Contains(interrupting, n)
	}
	// The driver says ErrBadConn when it has sent nothing.
	if errors.Is(err, driver.ErrBadConn) {
		return false
	}
	if opErr, ok := errors.AsType[*net.OpError](err); ok && opErr.Op == "dial" {
		return false
	}
	return true
}

// ended is ctx's end as an error, before anything is sent.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}
