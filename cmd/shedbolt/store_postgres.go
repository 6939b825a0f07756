package main

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/shedbolt/shedbolt/providers/postgres"
)

func openPostgres(ctx context.Context, o storeOptions) (*openStore, error) {
	config, err := pgxpool.ParseConfig(o.url)
	if err != nil {
		if _, ok := errors.AsType[*pgconn.ParseConfigError](err); ok {
			return nil, usageError{"--store", redact(err.Error(), o.url)}
		}
		return nil, err
	}
	// A command may run for hours: no connection is kept for its end.
	config.MaxConns, config.MinConns = 2, 0
	config.MaxConnIdleTime = idleTime
	config.HealthCheckPeriod = 5 * time.Second
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "shedbolt"
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	var opts []postgres.Option
	if o.table != "" {
		opts = append(opts, postgres.WithTable(o.tableParts()...))
	}
	p, err := postgres.New(pool, opts...)
	if err != nil {
		pool.Close()
		return nil, usageError{"--table", err.Error()}
	}
	return &openStore{provider: p, close: pool.Close}, nil
}

// missingPostgresTable reports whether the server says that there is no table.
func missingPostgresTable(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == "42P01"
}
