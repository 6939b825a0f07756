package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/shedbolt/shedbolt/core"
)

func TestClassify(t *testing.T) {
	server := func(severity, code string) error { return &pgconn.PgError{Severity: severity, Code: code} }
	for _, test := range []struct {
		what      string
		err       error
		uncertain bool
	}{
		{"the table is missing", server("ERROR", "42P01"), false},
		{"the server is read-only", server("ERROR", "25006"), false},
		{"a deadlock", server("ERROR", "40P01"), false},
		{"the server's own time limit", server("ERROR", "57014"), false},
		{"a server that speaks German", &pgconn.PgError{Severity: "FEHLER", SeverityUnlocalized: "ERROR", Code: "42P01"}, false},
		{"completion unknown", server("ERROR", "40003"), true},
		{"a proxy's connection failure", server("ERROR", "08006"), true},
		{"the server shuts down", server("FATAL", "57P01"), true},
		{"the server crashed", server("WARNING", "57P02"), true},
		{"the connection was lost", fmt.Errorf("read: %w", io.ErrUnexpectedEOF), true},
		{"the context ended during the call", context.DeadlineExceeded, true},
		{"the context ended while waiting for a connection", unsent{context.DeadlineExceeded}, false},
		{"no connection", fmt.Errorf("pool: %w", &pgconn.ConnectError{}), false},
	} {
		err := classify(test.err)
		if got := errors.Is(err, core.ErrUncertain); got != test.uncertain {
			t.Errorf("%s: uncertain: %v, want %v", test.what, got, test.uncertain)
		}
		if _, marked := errors.AsType[unsent](test.err); !marked && !errors.Is(err, test.err) {
			t.Errorf("%s: %v hides %v", test.what, err, test.err)
		}
	}
}
