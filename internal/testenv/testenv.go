// Package testenv is how tests find the servers they run on: by environment
// variables, which `make test` sets for the servers that it starts.
package testenv

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Environment variables of the tests.
const (
	// RequireVar lists the backends that must not be skipped, separated by
	// commas, or says "all".
	RequireVar = "SHEDBOLT_TEST_REQUIRE"
	// ReportVar names the file to which the conformance suite appends its
	// results.
	ReportVar = "SHEDBOLT_TEST_REPORT"
)

// DSNVar is the name of the variable with a backend's DSN: for "postgres17" it
// is SHEDBOLT_TEST_POSTGRES17_DSN.
func DSNVar(backend string) string {
	return "SHEDBOLT_TEST_" + strings.ToUpper(backend) + "_DSN"
}

// DirectVar is the name of the variable with the DSN of the server behind a
// pooler, which itself is named by DSNVar.
func DirectVar(pooler string) string { return DSNVar(pooler + "_direct") }

// DSN returns the DSN of a backend from the environment. Where there is none it
// skips the test, or fails it if the backend is required: a test that did not
// run must not look like one that passed.
func DSN(tb testing.TB, backend string) string {
	tb.Helper()
	dsn := os.Getenv(DSNVar(backend))
	if dsn != "" {
		return dsn
	}
	why := "no " + backend + " server: set " + DSNVar(backend) + ", or let `make test` start one"
	if Required(backend) {
		tb.Fatalf("%s; and %s=%s does not let it be skipped", why, RequireVar, os.Getenv(RequireVar))
	}
	tb.Skip(why)
	return ""
}

// Required reports whether a backend must not be skipped.
func Required(backend string) bool { return Named("all") || Named(backend) }

// Named reports whether a backend is required by its own name.
func Named(backend string) bool {
	return slices.ContainsFunc(strings.Split(os.Getenv(RequireVar), ","), func(entry string) bool {
		return strings.EqualFold(strings.TrimSpace(entry), backend)
	})
}
