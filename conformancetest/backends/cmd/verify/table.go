package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/shedbolt/shedbolt/conformancetest"
)

// row is what became of one backend with one module.
type row struct {
	backend, module, server, client string
	// plain rows are of tests outside the conformance suite: go test's exit code
	// alone tells how they went.
	plain  bool
	failed bool
	note   string // why it failed or was not run
	took   time.Duration

	suites []string // names of the harnesses
	counts map[string]int
	cases  []reported // all but those that passed
	trips  []reported // those that counted round trips
}

// reported is a line of the conformance suite's report.
type reported struct {
	Harness string `json:"harness"`
	Case    string `json:"case"`
	Rules   string `json:"rules"`
	Status  string `json:"status"`
	Detail  string `json:"detail"`

	Trips *conformancetest.RoundTrips `json:"trips"`
}

// The statuses that a report knows.
const (
	casePassed    = "passed"
	caseFailed    = "failed"
	caseSkipped   = "skipped"
	caseDeviating = "deviates"
)

func (r *row) fail(why string) {
	r.failed = true
	if r.note != "" {
		r.note += "; "
	}
	r.note += why
}

// add adds up a report's file. A report that is missing or empty, or in which no
// case passed, is a failure: the suite did not run.
func (r *row) add(file string) error {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return errors.New("the conformance suite did not run")
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	return r.read(f)
}

func (r *row) read(report io.Reader) error {
	r.counts = map[string]int{}
	lines := json.NewDecoder(report)
	for {
		var c reported
		if err := lines.Decode(&c); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return fmt.Errorf("the conformance suite's report: %w", err)
		}
		if r.server == "" { // an embedded store, which the suite's harness names
			r.server, _, _ = strings.Cut(c.Harness, ",")
		}
		if !slices.Contains(r.suites, c.Harness) {
			r.suites = append(r.suites, c.Harness)
		}
		if c.Trips != nil {
			r.trips = append(r.trips, c)
		}
		switch c.Status {
		case casePassed:
		case caseFailed, caseSkipped, caseDeviating:
			r.cases = append(r.cases, c)
		default:
			return fmt.Errorf("the conformance suite's report has a status %q", c.Status)
		}
		r.counts[c.Status]++
	}
	switch {
	case r.counts[casePassed] == 0:
		return errors.New("the conformance suite did not run")
	case r.counts[caseFailed] > 0 && !r.failed:
		return errors.New("go test does not say that cases failed")
	}
	return nil
}

// ran reports whether tests were run at all.
func (r *row) ran() bool { return r.took > 0 }

// printTable shows what was run, and reports whether all is well.
func printTable(w io.Writer, rows []row) (ok bool) {
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "BACKEND\tSERVER\tCLIENT\tMODULE\tSUITES\tPASSED\tFAILED\tSKIPPED\tDEVIATE\tTIME\tRESULT")
	total := map[string]int{}
	for _, r := range rows {
		result := "ok"
		switch {
		case r.failed:
			result = "FAILED"
		case !r.ran():
			result = "not run"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t", r.backend, cmp.Or(r.server, "-"), cmp.Or(r.client, "-"), r.module)
		if r.counts == nil {
			fmt.Fprint(tw, "-\t-\t-\t-\t-\t")
		} else {
			fmt.Fprintf(tw, "%d\t%d\t%d\t%d\t%d\t", len(r.suites),
				r.counts[casePassed], r.counts[caseFailed], r.counts[caseSkipped], r.counts[caseDeviating])
		}
		fmt.Fprintf(tw, "%.0fs\t%s\n", r.took.Seconds(), result)
		for status, n := range r.counts {
			total[status] += n
		}
	}
	_ = tw.Flush()

	ok = true
	for _, r := range rows {
		if r.failed {
			ok = false
			fmt.Fprintf(w, "\nFAILED   %s, %s: %s\n", r.backend, r.module, indent(r.note))
		} else if !r.ran() {
			fmt.Fprintf(w, "\nnot run  %s: %s\n", r.backend, indent(r.note))
		}
	}
	printCases(w, rows, caseFailed, "Failed cases")
	printCases(w, rows, caseDeviating, "Deviating cases")
	printCases(w, rows, caseSkipped, "Skipped cases")
	printTrips(w, rows)

	notRun := len(slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r.ran() || r.failed }))
	fmt.Fprintf(w, "\nConformance cases, all backends: %d deviate, %d backends not run\n%d passed, %d failed, %d skipped\n",
		total[caseDeviating], notRun, total[casePassed], total[caseFailed], total[caseSkipped])
	if !ok {
		fmt.Fprintln(w, "\nFAILED")
	}
	return ok
}

// printCases lists the cases of one status, those with the same reason together.
func printCases(w io.Writer, rows []row, status, title string) {
	type reason struct{ id, detail string }
	where := map[reason][]string{}
	var order []reason
	for _, r := range rows {
		for _, c := range r.cases {
			if c.Status != status {
				continue
			}
			key := reason{fmt.Sprintf("%s (%s)", c.Case, c.Rules), indent(c.Detail)}
			if where[key] == nil {
				order = append(order, key)
			}
			where[key] = append(where[key], fmt.Sprintf("%s [%s]", c.Harness, r.module))
		}
	}
	if len(order) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s:\n", title)
	for _, key := range order {
		places := where[key]
		fmt.Fprintf(w, "  %s: %s\n", key.id, key.detail)
		if len(places) > 3 {
			places = append(slices.Clone(places[:2]), fmt.Sprintf("and %d more", len(places)-2))
		}
		fmt.Fprintf(w, "      on %s\n", strings.Join(places, "; "))
	}
}

// printTrips shows how many round trips calls took, those of a server's variants
// that took the same together.
func printTrips(w io.Writer, rows []row) {
	type measured struct {
		server string
		trips  conformancetest.RoundTrips
	}
	variants := map[measured][]string{}
	var order []measured
	for _, r := range rows {
		for _, c := range r.trips {
			server, variant, _ := strings.Cut(c.Harness, ", ")
			key := measured{server, *c.Trips}
			if variants[key] == nil {
				order = append(order, key)
			}
			if !slices.Contains(variants[key], variant) {
				variants[key] = append(variants[key], variant)
			}
		}
	}
	if len(order) == 0 {
		return
	}
	// In the order of the table, all of a server together.
	first := func(server string) int {
		return slices.IndexFunc(order, func(m measured) bool { return m.server == server })
	}
	sorted := slices.Clone(order)
	slices.SortStableFunc(sorted, func(a, b measured) int { return first(a.server) - first(b.server) })

	fmt.Fprint(w, "\nRound trips of calls on an open connection:\n\n")
	tw := tabwriter.NewWriter(w, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintln(tw, "\t server\t variants\t won\t refused\t first\t release\t extend\t")
	fmt.Fprintln(tw, "\t---\t---\t---\t---\t---\t---\t---\t")
	for _, m := range sorted {
		names := variants[m]
		if len(names) > 3 {
			names = append(slices.Clone(names[:2]), fmt.Sprintf("%d more", len(names)-2))
		}
		t := m.trips
		fmt.Fprintf(tw, "\t %s\t %s\t %s\t %s\t %s\t %s\t %s\t\n", m.server, strings.Join(names, ", "),
			count(t.Won), count(t.Refused), count(t.First), count(t.Release), count(t.Extend))
	}
	_ = tw.Flush()
}

// count is a number of round trips, of which 0 means that it was not counted.
func count(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// indent sets off all lines of a text but the first.
func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n      ") }
