package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DB is what a Provider needs of pgx: a *pgxpool.Pool or a *pgx.Conn.
type DB interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

type querier = DB

// session runs a function with something to send statements on.
type session interface {
	do(ctx context.Context, f func(querier) error) error
}

func newSession(db DB) (session, error) {
	switch db := db.(type) {
	case nil:
		return nil, errors.New("postgres: New needs a pool or a connection")
	case pgx.Tx:
		return nil, errors.New("postgres: a lock needs transactions of its own: give New a pool or a connection, not a transaction")
	case *pgxpool.Pool:
		return poolSession{db}, nil
	case *pgx.Conn:
		return connSession{db, make(chan struct{}, 1)}, nil
	case interface{ Conn() *pgx.Conn }: // *pgxpool.Conn
		return connSession{db.Conn(), make(chan struct{}, 1)}, nil
	}
	return otherSession{db}, nil
}

// poolSession takes a connection by itself, rather than let the pool do it,
// because only so an exhausted pool can be told from a lost answer.
type poolSession struct{ pool *pgxpool.Pool }

func (s poolSession) do(ctx context.Context, f func(querier) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return unsent{err}
	}
	// The pool closes a connection that comes back inside a transaction.
	defer conn.Release()
	return f(conn.Conn())
}

// connSession makes one call at a time, because a pgx.Conn can't do more.
type connSession struct {
	conn *pgx.Conn
	busy chan struct{}
}

func (s connSession) do(ctx context.Context, f func(querier) error) error {
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-ctx.Done():
		return unsent{fmt.Errorf("postgres: the connection is busy: %w", context.Cause(ctx))}
	}
	if s.conn.IsClosed() {
		return unsent{errors.New("postgres: the connection is closed")}
	}
	if status := s.conn.PgConn().TxStatus(); status != 'I' {
		return unsent{errors.New("postgres: the connection has a transaction open, and a lock needs transactions of its own")}
	}
	err := f(s.conn)
	if err != nil && !s.conn.IsClosed() && s.conn.PgConn().TxStatus() != 'I' {
		_, rollbackErr := s.conn.Exec(context.WithoutCancel(ctx), "rollback")
		err = errors.Join(err, rollbackErr)
	}
	return err
}

// otherSession serves decorators of a pool or connection.
type otherSession struct{ db DB }

func (s otherSession) do(_ context.Context, f func(querier) error) error { return f(s.db) }

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

// uncertain reports whether the statement may have been carried out although err
// came back.
func uncertain(err error) bool {
	if _, ok := errors.AsType[unsent](err); ok {
		return false
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return false
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		// The server, or a proxy, answered: what it answers with an ordinary
		// error it has rolled back. An end of the connection is none: it can
		// come after the commit. 40003 says by itself that it can't tell.
		return pgErr.Severity != "ERROR" && pgErr.SeverityUnlocalized != "ERROR" ||
			strings.HasPrefix(pgErr.Code, "08") || pgErr.Code == "40003"
	}
	return !pgconn.SafeToRetry(err)
}

func serializationFailure(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == "40001"
}
