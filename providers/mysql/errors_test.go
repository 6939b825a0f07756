package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"testing"

	client "github.com/go-sql-driver/mysql"

	"github.com/shedbolt/shedbolt/core"
)

func TestClassify(t *testing.T) {
	server := func(number uint16) error { return &client.MySQLError{Number: number} }
	for _, c := range []struct {
		err       error
		uncertain bool
	}{
		{nil, false},
		{server(1290), false}, // read-only servers
		{server(1792), false},
		{server(1836), false},
		{server(1146), false}, // no table
		{server(1142), false}, // no right
		{server(1045), false}, // wrong password
		{server(1040), false}, // too many connections
		{server(1205), false}, // a lock wait that timed out is rolled back
		{server(1317), true},  // KILL QUERY
		{server(1053), true},  // shutdown
		{server(3024), true},  // max_execution_time
		{client.ErrInvalidConn, true},
		{driver.ErrBadConn, false},
		{context.DeadlineExceeded, true},
		{fmt.Errorf("wrapped: %w", client.ErrInvalidConn), true},
		{unsent{errors.New("the pool is exhausted")}, false},
		{unsent{client.ErrInvalidConn}, false},
		{several{server(1205)}, true}, // by the last statement, or by the one that writes
		{several{server(1290)}, false},
		{several{server(1142)}, false},
		{several{client.ErrInvalidConn}, true},
		{&net.OpError{Op: "read", Err: errors.New("reset")}, true},
	} {
		if got := errors.Is(classify(c.err), core.ErrUncertain); got != c.uncertain {
			t.Errorf("classify(%v) is uncertain: %v, want %v", c.err, got, c.uncertain)
		}
		if cause := errors.Unwrap(c.err); !errors.Is(classify(c.err), c.err) && (cause == nil || !errors.Is(classify(c.err), cause)) {
			t.Errorf("classify(%v) hides it", c.err)
		}
	}
}
