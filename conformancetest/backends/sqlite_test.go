package backends_test

import (
	"testing"

	"github.com/shedbolt/shedbolt/conformancetest"
	"github.com/shedbolt/shedbolt/conformancetest/backends"
	"github.com/shedbolt/shedbolt/internal/sqlitetest"
)

func TestSQLite(t *testing.T) {
	b, err := backends.Find("sqlite")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range variants(t, b, sqlitetest.Variants(), func(v sqlitetest.Variant) string { return v.Name }) {
		t.Run(v.Name, func(t *testing.T) {
			conformancetest.Run(t, sqlitetest.Harness(t, v))
		})
	}
}
