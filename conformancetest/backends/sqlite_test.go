package backends_test

import (
	"testing"

	"github.com/shedbolt/shedbolt/conformancetest"
	"github.com/shedbolt/shedbolt/internal/sqlitetest"
)

func TestSQLite(t *testing.T) {
	for _, v := range sqlitetest.Variants() {
		t.Run(v.Name, func(t *testing.T) {
			conformancetest.Run(t, sqlitetest.Harness(t, v))
		})
	}
}
