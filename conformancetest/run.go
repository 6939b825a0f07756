package conformancetest

import "testing"

// Run checks the provider behind h against the contract of package core.
func Run(t *testing.T, h Harness) { t.Helper() }
