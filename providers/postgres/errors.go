package postgres

import (
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/shedbolt/shedbolt/core"
)

// unsent marks an error before which no statement was sent.
type unsent struct{ cause error }

func (e unsent) Error() string { return e.cause.Error() }
func (e unsent) Unwrap() error { return e.cause }

// plain takes that mark off.
func plain(err error) error {
	if u, ok := errors.AsType[unsent](err); ok {
		return u.cause
	}
	return err
}

// classify marks an error after which the statement may have been carried out.
func classify(err error) error {
	if uncertain(err) {
		return core.Uncertain(err)
	}
	return plain(err)
}

func uncertain(err error) bool {
	if _, ok := errors.AsType[unsent](err); ok {
		return false
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return false
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		// What the server answers with an ordinary error it has rolled back. An
		// error that ends the connection can come after the commit; class 08 can
		// come from a proxy; 40003 says by itself that it can't tell.
		ordinary := pgErr.Severity == "ERROR" || pgErr.SeverityUnlocalized == "ERROR"
		return !ordinary || strings.HasPrefix(pgErr.Code, "08") || pgErr.Code == "40003"
	}
	return !pgconn.SafeToRetry(err)
}

func serializationFailure(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == "40001"
}
