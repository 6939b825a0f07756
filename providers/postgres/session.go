package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DB is what a Provider needs of pgx: a *pgxpool.Pool, a *pgx.Conn, or something
// that passes these methods on to one.
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
	defer conn.Release()
	return use(ctx, conn.Conn(), f)
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
		return unsent{fmt.Errorf("postgres: the connection is busy: %w", ctx.Err())}
	}
	switch {
	case ctx.Err() != nil:
		return unsent{ctx.Err()}
	case s.conn.IsClosed():
		return unsent{errors.New("postgres: the connection is closed, as pgx leaves it when a context ends during a call: make a new one, or use a pool")}
	case s.conn.PgConn().TxStatus() != idle:
		return unsent{errors.New("postgres: the connection has a transaction open, and a lock needs transactions of its own")}
	}
	return use(ctx, s.conn, f)
}

// idle is the server's word for a connection without a transaction.
const idle = 'I'

// rollbackLimit bounds a rollback, whose caller's context may have ended.
const rollbackLimit = 5 * time.Second

// use runs f, and leaves no transaction open on conn when a statement between
// begin and commit has failed.
func use(ctx context.Context, conn *pgx.Conn, f func(querier) error) error {
	err := f(conn)
	if conn.IsClosed() || conn.PgConn().TxStatus() == idle {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackLimit)
	defer cancel()
	if _, rollbackErr := conn.Exec(ctx, "rollback"); rollbackErr != nil {
		err = errors.Join(err, rollbackErr)
	}
	return err
}

// otherSession serves what passes calls on to a pool or connection. It can't see
// what becomes of them, so that more of its errors count as core.Uncertain.
type otherSession struct{ db DB }

func (s otherSession) do(_ context.Context, f func(querier) error) error { return f(s.db) }
