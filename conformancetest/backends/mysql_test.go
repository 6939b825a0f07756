package backends_test

import (
	"testing"

	"github.com/shedbolt/shedbolt/conformancetest"
	"github.com/shedbolt/shedbolt/conformancetest/backends"
	"github.com/shedbolt/shedbolt/internal/mysqltest"
)

func TestMySQL(t *testing.T) {
	eachServer(t, func(t *testing.T, s *backends.Server) {
		t.Helper()
		for _, v := range variants(t, s.Backend, mysqltest.Variants(), func(v mysqltest.Variant) string { return v.Name }) {
			t.Run(v.Name, func(t *testing.T) {
				conformancetest.Run(t, mysqltest.Harness(t, s.Address.DSN, v))
			})
		}
	})
}
