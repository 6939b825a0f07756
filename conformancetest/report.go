package conformancetest

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The outcomes of a case.
const (
	passed    = "passed"
	failed    = "failed"
	skipped   = "skipped"
	deviating = "deviates"
)

// line is one case in the report file, as a line of JSON.
type line struct {
	Harness string  `json:"harness"`
	Case    string  `json:"case"`
	Rules   string  `json:"rules"`
	Status  string  `json:"status"`
	Detail  string  `json:"detail,omitempty"`
	Seconds float64 `json:"seconds"`
	// Trips is what contexts_and_faults/round_trips has counted.
	Trips *RoundTrips `json:"trips,omitempty"`
}

// brief fits a detail into the table; the subtest's own message has all of it.
func brief(detail string) string {
	line := []rune(strings.ReplaceAll(detail, "\n", "; "))
	if len(line) > 200 {
		line = append(line[:200], '…')
	}
	return string(line)
}

type report struct {
	harness string
	file    string

	mu    sync.Mutex
	lines []line
}

func (r *report) add(l line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, l)
}

// log writes the table to the test's log and the lines to the report's file.
func (r *report) log(tb testing.TB) {
	tb.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	order := map[string]int{} // parallel cases end in any order
	for i, c := range Cases() {
		order[c.ID()] = i
	}
	slices.SortFunc(r.lines, func(a, b line) int { return order[a.Case] - order[b.Case] })
	counts := map[string]int{}
	var table, jsonLines strings.Builder
	for _, l := range r.lines {
		counts[l.Status]++
		if l.Status == passed {
			fmt.Fprintf(&table, "  %-9s %-45s %s\n", l.Status, l.Case, l.Rules)
		} else {
			fmt.Fprintf(&table, "  %-9s %-45s %-8s %s\n", l.Status, l.Case, l.Rules, brief(l.Detail))
		}
		text, err := json.Marshal(l)
		if err != nil {
			tb.Fatal(err)
		}
		jsonLines.Write(append(text, '\n'))
	}
	tb.Logf("%s: %d passed, %d failed, %d skipped, %d deviate\n%s",
		r.harness, counts[passed], counts[failed], counts[skipped], counts[deviating], table.String())
	if r.file == "" {
		return
	}
	f, err := os.OpenFile(r.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		tb.Fatal(err)
	}
	// One write, so that suites that end at the same time don't mix their lines.
	if _, err := f.WriteString(jsonLines.String()); err != nil {
		tb.Error(err)
	}
	if err := f.Close(); err != nil {
		tb.Error(err)
	}
}
