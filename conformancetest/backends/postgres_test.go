package backends_test

import (
	"testing"

	"github.com/shedbolt/shedbolt/conformancetest"
	"github.com/shedbolt/shedbolt/conformancetest/backends"
	"github.com/shedbolt/shedbolt/internal/pgtest"
	"github.com/shedbolt/shedbolt/internal/testenv"
)

func TestPostgres(t *testing.T) {
	eachServer(t, func(t *testing.T, s *backends.Server) {
		t.Helper()
		for _, v := range variants(t, s.Backend, pgtest.Variants(), func(v pgtest.Variant) string { return v.Name }) {
			t.Run(v.Name, func(t *testing.T) {
				conformancetest.Run(t, pgtest.Harness(t, s.Address.DSN, s.Address.DSN, v))
			})
		}
	})
}

func TestPgBouncer(t *testing.T) {
	eachServer(t, func(t *testing.T, s *backends.Server) {
		t.Helper()
		if s.Address.Direct == "" {
			t.Fatalf("%s names a pooler, and %s not the server behind it", s.Backend.DSNVar(), testenv.DirectVar(s.Backend.Name))
		}
		t.Run("pooled", func(t *testing.T) {
			v := pgtest.Plain
			v.Name = "pgbouncer"
			conformancetest.Run(t, pgtest.Harness(t, s.Address.DSN, s.Address.Direct, v))
		})
	})
}
