package backends

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/testcontainers/testcontainers-go"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"
)

const (
	pgxModule  = "github.com/jackc/pgx/v5"
	pgUser     = "shedbolt"
	pgDatabase = "shedbolt"
	pgData     = "/pgdata" // outside of the image's own volume, so that it can be in memory
)

func postgresBackend(name, major, clock string) Backend {
	return Backend{
		Name: name, Provider: "postgres", Known: "postgres", Client: pgxModule, Test: "TestPostgres",
		Command:  "^TestPostgres",
		Variants: []string{"plain", "serializable"},
		Server: &Recipe{
			Official: "postgres:" + major, Lab: "postgres:" + major, Clock: clock,
			start: func(s *starting) (Address, error) {
				dsn, err := startPostgres(s, s.image)
				return Address{DSN: dsn}, err
			},
			version: postgresVersion,
			now:     postgresNow,
		},
	}
}

func postgresNow(ctx context.Context, a Address) (now time.Time, err error) {
	conn, err := pgx.Connect(ctx, a.DSN)
	if err != nil {
		return now, err
	}
	defer func() { _ = conn.Close(ctx) }()
	err = conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now)
	return now, err
}

// startPostgres starts a server that is quick rather than durable.
func startPostgres(s *starting, image string, options ...testcontainers.ContainerCustomizer) (string, error) {
	password := rand.Text()
	env := map[string]string{
		"POSTGRES_USER": pgUser, "POSTGRES_PASSWORD": password, "POSTGRES_DB": pgDatabase, "PGDATA": pgData,
	}
	c, endpoint, err := s.run(image, "5432", append(options,
		testcontainers.WithEnv(env),
		testcontainers.WithTmpfs(map[string]string{pgData: "rw"}),
		testcontainers.WithCmd("postgres", "-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=300"),
	)...)
	if err != nil {
		return "", err
	}
	dsn := postgresURL(endpoint, password, pgDatabase)
	return dsn, s.await(c, func(ctx context.Context) error { return postgresPing(ctx, dsn) })
}

func postgresURL(endpoint, password, database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(pgUser, password), Host: endpoint,
		Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

func postgresPing(ctx context.Context, dsn string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	return conn.Ping(ctx)
}

func postgresVersion(a Address) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	conn, err := pgx.Connect(ctx, a.DSN)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	version, _, _ := strings.Cut(conn.PgConn().ParameterStatus("server_version"), " ")
	return "PostgreSQL " + version, nil
}

// PgBouncer listens on this port, so that it does not look like the server.
const pgbouncerPort = "6432"

// pgbouncerBackend is PgBouncer in transaction mode before a PostgreSQL server
// of its own.
func pgbouncerBackend() Backend {
	return Backend{
		Name: "pgbouncer", Provider: "postgres", Known: "pgbouncer", Run: "^TestConformancePgBouncer$",
		Client: pgxModule, Test: "TestPgBouncer",
		Server: &Recipe{
			Official: "edoburu/pgbouncer:v1.24.1-p1", Lab: "pgbouncer:1",
			start:   startPgBouncer,
			version: pgbouncerVersion,
		},
	}
}

func startPgBouncer(s *starting) (Address, error) {
	upstream, err := Find("postgres17")
	if err != nil {
		return Address{}, err
	}
	image, err := s.server.fleet.images.find(s, upstream)
	if err != nil {
		return Address{}, err
	}
	n, err := s.network()
	if err != nil {
		return Address{}, err
	}
	direct, err := startPostgres(s, image, tcnetwork.WithNetwork([]string{"upstream"}, n))
	if err != nil {
		return Address{}, fmt.Errorf("upstream: %w", err)
	}
	u, err := url.Parse(direct)
	if err != nil {
		return Address{}, err
	}
	password, _ := u.User.Password()
	c, endpoint, err := s.run(s.image, pgbouncerPort,
		tcnetwork.WithNetwork([]string{"pgbouncer"}, n),
		testcontainers.WithEnv(map[string]string{
			// The lab image's variables, and those of the image from Docker Hub.
			"PGBOUNCER_UPSTREAM_HOST": "upstream", "DB_HOST": "upstream",
			"PGBOUNCER_UPSTREAM_USER": pgUser, "DB_USER": pgUser, "STATS_USERS": pgUser,
			"PGBOUNCER_UPSTREAM_PASSWORD": password, "DB_PASSWORD": password,
			"PGBOUNCER_UPSTREAM_DATABASE": pgDatabase, "DB_NAME": pgDatabase,
			"PGBOUNCER_POOL_MODE": "transaction", "POOL_MODE": "transaction",
			"PGBOUNCER_MAX_PREPARED_STATEMENTS": "100", "MAX_PREPARED_STATEMENTS": "100",
			"AUTH_TYPE": "plain", "LISTEN_PORT": pgbouncerPort,
			"DEFAULT_POOL_SIZE": "20", "MAX_CLIENT_CONN": "500",
		}),
	)
	if err != nil {
		return Address{}, err
	}
	a := Address{DSN: postgresURL(endpoint, password, pgDatabase), Direct: direct}
	return a, s.await(c, func(ctx context.Context) error { return postgresPing(ctx, a.DSN) })
}

// pgbouncerVersion asks PgBouncer's console, which not every user may enter.
func pgbouncerVersion(a Address) (string, error) {
	upstream, err := postgresVersion(a)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	config, err := pgx.ParseConfig(a.DSN)
	if err != nil {
		return "", err
	}
	config.Database = "pgbouncer"
	config.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // the console knows no other
	version := "PgBouncer"
	if conn, err := pgx.ConnectConfig(ctx, config); err == nil {
		var text string
		if conn.QueryRow(ctx, "SHOW VERSION").Scan(&text) == nil {
			version = text
		}
		_ = conn.Close(ctx)
	}
	return fmt.Sprintf("%s before %s", version, upstream), nil
}
