package conformancetest

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

// Case is one check of the suite.
type Case struct {
	// Area and Name make the subtest's name, "area/name".
	Area, Name string
	// Rules are the rules of package core that the case checks, such as "R1 R3".
	Rules string
	// Check says in a sentence what must hold.
	Check string

	// needs says why the case can't run on a store, or "".
	needs func(h Harness, caps core.Capabilities) string
	// alone keeps other cases from running at the same time.
	alone bool
	run   func(e *env)
}

// ID is "area/name".
func (c Case) ID() string { return c.Area + "/" + c.Name }

// Cases lists the suite in the order in which it runs.
func Cases() []Case {
	return slices.Concat(
		exclusionCases, expiryCases, minimumHoldCases, ownershipCases, nameCases, storeTimeCases,
		contextCases, faultCases, fencingCases, inspectionCases, capabilityCases, formatCases,
	)
}

// caseLimit bounds one case, so that a provider that hangs fails it.
var caseLimit = 60 * time.Second

// Run checks the provider behind h. Its cases are subtests of t, grouped by area.
// When t has ended, a table of what was seen is logged; if the environment names
// a file in SHEDBOLT_TEST_REPORT, each case is appended to it as a line of JSON.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Name == "" || h.Open == nil || h.Peek == nil {
		t.Fatal("conformancetest: a Harness needs Name, Open and Peek")
	}
	cases := Cases()
	for id := range h.Deviations {
		if !slices.ContainsFunc(cases, func(c Case) bool { return c.ID() == id }) {
			t.Errorf("Harness.Deviations names %q, which is no case", id)
		}
	}
	report := &report{harness: h.Name, file: os.Getenv("SHEDBOLT_TEST_REPORT")}
	t.Cleanup(func() { report.log(t) })
	for len(cases) > 0 {
		area := cases[0].Area
		n := slices.IndexFunc(cases, func(c Case) bool { return c.Area != area })
		if n < 0 {
			n = len(cases)
		}
		t.Run(area, func(t *testing.T) {
			for _, c := range cases[:n] {
				t.Run(c.Name, func(t *testing.T) {
					if !c.alone {
						t.Parallel()
					}
					l := observe(t, h, c)
					report.add(l)
					switch l.Status {
					case failed:
						t.Errorf("%s\n%s: %s", l.Detail, c.Rules, c.Check)
					case skipped:
						t.Skip(l.Detail)
					case deviating:
						t.Skip("deviates: " + l.Detail)
					}
				})
			}
		})
		cases = cases[n:]
	}
}

// observe runs one case and says what became of it. tb itself never fails.
func observe(tb testing.TB, h Harness, c Case) line {
	tb.Helper()
	deviation, deviates := h.Deviations[c.ID()]
	rec := newRecorder(tb)
	var trips *RoundTrips
	start := time.Now()
	rec.during(func() {
		ctx, cancel := context.WithTimeout(context.Background(), caseLimit)
		rec.Cleanup(cancel)
		e := newEnv(rec, ctx, h)
		if c.needs != nil {
			if why := c.needs(h, e.caps); why != "" {
				rec.Skip(why)
			}
		}
		c.run(e)
		trips = e.trips
	})
	status, detail := rec.outcome()
	switch {
	case deviates && status == failed:
		status, detail = deviating, deviation+"; seen: "+detail
	case deviates && status == passed:
		status, detail = failed, "it is listed as a deviation and passes: take it off the list"
	}
	return line{
		Harness: h.Name, Case: c.ID(), Rules: c.Rules, Status: status, Detail: detail,
		Seconds: time.Since(start).Seconds(), Trips: trips,
	}
}

// env is what a case works with.
type env struct {
	testing.TB
	ctx  context.Context
	h    Harness
	a, b core.Provider // two independent clients
	caps core.Capabilities
	// trips is for the report.
	trips *RoundTrips
}

func newEnv(tb testing.TB, ctx context.Context, h Harness) *env {
	tb.Helper()
	e := &env{TB: tb, ctx: ctx, h: h}
	e.a, e.b = e.open(), e.open()
	if e.a == e.b {
		tb.Fatal("Harness.Open returned the same client twice: it must make independent ones")
	}
	e.caps = e.a.Capabilities()
	return e
}

func (e *env) open() core.Provider {
	e.Helper()
	p := e.h.Open(e.TB)
	if p == nil {
		e.Fatal("Harness.Open returned nil")
	}
	return p
}

var unique struct {
	sync.Mutex
	n int
}

// name makes a lock name that no other case uses: locks of an earlier run on the
// same store may be held still.
func (e *env) name() string {
	unique.Lock()
	defer unique.Unlock()
	unique.n++
	return fmt.Sprintf("suite-%s-%d", randomText(10), unique.n)
}
