package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"

	client "github.com/go-sql-driver/mysql"

	"github.com/shedbolt/shedbolt/core"
)

// Error numbers of the servers.
const (
	errDuplicate = 1062
	errNoTable   = 1146
)

var (
	// racing are the errors of a statement that was rolled back because of another
	// one at the same time: a duplicate, a deadlock, a snapshot that has aged
	// (innodb_snapshot_isolation), a conflict in a cluster.
	racing = []uint16{errDuplicate, 1213, 1020, 3101}
	// interrupting are the errors of a statement that was stopped from outside, maybe
	// in the last moment: shutdown, KILL, a time limit, a connection that was ended,
	// which a proxy tells as an error of the server.
	interrupting = []uint16{1053, 1077, 1079, 1158, 1159, 1160, 1161, 1180, 1317, 1927, 1928, 1969, 2006, 2013, 2055, 3024, 3169, 4031}
	// refusing are the errors after which none of several statements has written:
	// the first one that writes would have had them, and later ones only read.
	refusing = append([]uint16{
		1040, 1044, 1045, 1049, 1054, 1064, 1142, 1143, errNoTable, // connections, rights, names
		1048, 1264, 1292, 1364, 1366, 1406, // values
		1223, 1290, 1792, 1836, // read-only
	}, racing...)
)

// unsent is an error before anything was sent that writes.
type unsent struct{ error }

func (e unsent) Unwrap() error { return e.error }

// several is an error of a text of several statements, or of a look after a write.
type several struct{ error }

func (e several) Unwrap() error { return e.error }

func number(err error) uint16 {
	if serverErr, ok := errors.AsType[*client.MySQLError](err); ok {
		return serverErr.Number
	}
	return 0
}

// raced reports whether a statement was refused, and rolled back, because of
// another one at the same time.
func raced(err error) bool { return slices.Contains(racing, number(err)) }

// classify marks the errors after which a statement may have been carried out.
func classify(err error) error {
	if before, ok := errors.AsType[unsent](err); ok {
		return before.error
	}
	after, wrote := errors.AsType[several](err)
	if wrote {
		err = after.error
	}
	n := number(err)
	switch {
	case err == nil, errors.Is(err, driver.ErrBadConn): // the driver says so when it has sent nothing
		return err
	case n == 0, slices.Contains(interrupting, n), wrote && !slices.Contains(refusing, n):
		return core.Uncertain(err)
	}
	return err
}

// plain is an error whose kind does not matter, because nothing was written.
func plain(err error) error {
	if before, ok := errors.AsType[unsent](err); ok {
		return before.error
	}
	return err
}

// ended is ctx's end as an error, before anything is sent.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}
