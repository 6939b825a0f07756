package conformancetest

import (
	"testing"
	"time"
)

// Check runs one case and returns its status and what was seen, without failing t.
func Check(t *testing.T, h Harness, c Case) (status, detail string) {
	t.Helper()
	l := observe(t, h, c)
	return l.Status, l.Detail
}

// Alone reports whether a case must not run beside others.
func (c Case) Alone() bool { return c.alone }

// SetCaseLimit shortens the bound of each case.
func SetCaseLimit(d time.Duration) { caseLimit = d }
