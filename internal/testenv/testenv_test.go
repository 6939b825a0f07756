package testenv

import (
	"runtime"
	"testing"
)

func TestRequired(t *testing.T) {
	for _, test := range []struct {
		require, backend string
		want             bool
	}{
		{"", "postgres", false},
		{"all", "postgres", true},
		{"postgres", "postgres", true},
		{"POSTGRES", "postgres", true},
		{"sqlite, postgres", "postgres", true},
		{"postgres17", "postgres", false},
		{"sqlite,all", "postgres", true},
	} {
		t.Setenv(RequireVar, test.require)
		if got := Required(test.backend); got != test.want {
			t.Errorf("with %s=%q, Required(%q) = %v, want %v", RequireVar, test.require, test.backend, got, test.want)
		}
	}
}

func TestDSN(t *testing.T) {
	const set = "postgres://example.invalid/db"
	for _, test := range []struct {
		name, dsn, require, want string
	}{
		{"set", set, "", "returned"},
		{"set and required", set, "all", "returned"},
		{"missing", "", "", "skipped"},
		{"missing and another required", "", "sqlite", "skipped"},
		{"missing and required", "", "all", "failed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("SHEDBOLT_TEST_POSTGRES17_DSN", test.dsn)
			t.Setenv(RequireVar, test.require)
			r := &recorder{TB: t}
			done := make(chan struct{})
			go func() {
				defer close(done)
				if dsn := DSN(r, "postgres17"); dsn == set {
					r.outcome = "returned"
				}
			}()
			<-done
			if r.outcome != test.want {
				t.Errorf("DSN %s, want %s", r.outcome, test.want)
			}
		})
	}
}

// recorder notes how a test would have ended.
type recorder struct {
	testing.TB
	outcome string
}

func (r *recorder) Skip(...any)           { r.outcome = "skipped"; runtime.Goexit() }
func (r *recorder) Fatalf(string, ...any) { r.outcome = "failed"; runtime.Goexit() }
