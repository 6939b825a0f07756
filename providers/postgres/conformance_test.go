package postgres_test

import (
	"testing"

	"github.com/shedbolt/shedbolt/conformancetest"
	"github.com/shedbolt/shedbolt/internal/pgtest"
	"github.com/shedbolt/shedbolt/internal/testenv"
)

// dsn names a server on which the tests may create and drop schemas and roles.
func dsn(tb testing.TB) string {
	tb.Helper()
	return testenv.DSN(tb, "postgres")
}

func TestConformance(t *testing.T) {
	server := dsn(t)
	for _, v := range pgtest.Variants() {
		t.Run(v.Name, func(t *testing.T) {
			conformancetest.Run(t, pgtest.Harness(t, server, server, v))
		})
	}
}

// TestConformancePgBouncer has a PgBouncer in transaction mode, with
// max_prepared_statements set, between the clients and the server.
func TestConformancePgBouncer(t *testing.T) {
	pooler, server := testenv.DSN(t, "pgbouncer"), testenv.DSN(t, "pgbouncer_direct")
	for _, v := range pgtest.PoolerVariants() {
		t.Run(v.Name, func(t *testing.T) {
			conformancetest.Run(t, pgtest.Harness(t, pooler, server, v))
		})
	}
}
