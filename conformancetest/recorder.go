package conformancetest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// recorder is a testing.TB that takes notes of one case, so that the case's
// outcome can be reported, compared with the list of deviations, or expected.
type recorder struct {
	testing.TB // for what is not overridden; it never sees a failure

	mu       sync.Mutex
	failures []string
	skipped  string
	cleanups []func()
}

func newRecorder(tb testing.TB) *recorder { return &recorder{TB: tb} }

// during runs f and then the clean-ups, whatever f does. A panic is a failure of
// the case.
func (r *recorder) during(f func()) {
	run := func(f func()) {
		done := make(chan struct{})
		go func() { // for runtime.Goexit
			defer close(done)
			defer func() {
				if p := recover(); p != nil {
					r.note(fmt.Sprintf("panic: %v\n%s", p, stack()))
				}
			}()
			f()
		}()
		<-done
	}
	run(f)
	for {
		r.mu.Lock()
		n := len(r.cleanups)
		if n == 0 {
			r.mu.Unlock()
			return
		}
		next := r.cleanups[n-1]
		r.cleanups = r.cleanups[:n-1]
		r.mu.Unlock()
		run(next)
	}
}

func stack() []byte {
	buf := make([]byte, 4096)
	return buf[:runtime.Stack(buf, false)]
}

func (r *recorder) note(failure string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, failure)
}

func (r *recorder) outcome() (status, detail string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case len(r.failures) > 0:
		return failed, strings.Join(r.failures, "\n")
	case r.skipped != "":
		return skipped, r.skipped
	}
	return passed, ""
}

// bubble runs f in a synctest bubble, whose clock starts in the year 2000.
func (r *recorder) bubble(f func(tb testing.TB)) {
	outer := r.TB
	for {
		switch tb := outer.(type) {
		case *testing.T:
			synctest.Test(tb, func(t *testing.T) {
				inner := newRecorder(t)
				inner.during(func() { f(inner) })
				if status, detail := inner.outcome(); status == failed {
					r.note(detail)
				}
			})
			return
		case *recorder:
			outer = tb.TB
		default:
			r.Skipf("a bubble needs a *testing.T, not a %T", outer)
		}
	}
}

func (r *recorder) Helper() {}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) Context() context.Context { return context.Background() }

func (r *recorder) Error(args ...any)            { r.note(strings.TrimSpace(fmt.Sprintln(args...))) }
func (r *recorder) Errorf(f string, args ...any) { r.note(fmt.Sprintf(f, args...)) }
func (r *recorder) Fatal(args ...any)            { r.Error(args...); runtime.Goexit() }
func (r *recorder) Fatalf(f string, args ...any) { r.Errorf(f, args...); runtime.Goexit() }
func (r *recorder) Fail()                        { r.note("failed") }
func (r *recorder) FailNow()                     { r.note("failed"); runtime.Goexit() }
func (r *recorder) Log(...any)                   {}
func (r *recorder) Logf(string, ...any)          {}
func (r *recorder) Skip(args ...any)             { r.skip(strings.TrimSpace(fmt.Sprintln(args...))) }
func (r *recorder) Skipf(f string, args ...any)  { r.skip(fmt.Sprintf(f, args...)) }
func (r *recorder) SkipNow()                     { r.skip("skipped") }

func (r *recorder) skip(why string) {
	r.mu.Lock()
	r.skipped = why
	r.mu.Unlock()
	runtime.Goexit()
}

func (r *recorder) Failed() bool {
	status, _ := r.outcome()
	return status == failed
}

func (r *recorder) Skipped() bool {
	status, _ := r.outcome()
	return status == skipped
}
