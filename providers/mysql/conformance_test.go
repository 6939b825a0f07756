package mysql_test

import (
	"testing"

	"github.com/shedbolt/shedbolt/conformancetest"
	"github.com/shedbolt/shedbolt/internal/mysqltest"
	"github.com/shedbolt/shedbolt/internal/testenv"
)

func TestConformance(t *testing.T) {
	dsn := testenv.DSN(t, "mysql")
	for _, v := range mysqltest.Variants() {
		t.Run(v.Name, func(t *testing.T) {
			conformancetest.Run(t, mysqltest.Harness(t, dsn, v))
		})
	}
}
