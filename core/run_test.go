package core_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/providers/memory"
)

func TestRunOutcomes(t *testing.T) {
	failed := errors.New("disk full")
	for _, c := range []struct {
		name    string
		task    func(ctx context.Context, s *stub) error
		outcome core.Outcome
		errs    []error
		took    time.Duration
	}{
		{"succeeds", func(context.Context, *stub) error { time.Sleep(time.Second); return nil }, core.Ran, nil, time.Second},
		{"fails", func(context.Context, *stub) error { return failed }, core.Ran, []error{failed}, 0},
		{"is cut off and fails", func(ctx context.Context, _ *stub) error {
			<-ctx.Done()
			return errors.Join(failed, context.Cause(ctx))
		}, core.Lost, []error{failed, core.ErrLost}, time.Minute},
		{"overruns and does not notice", func(context.Context, *stub) error { time.Sleep(time.Hour); return nil }, core.Lost, []error{core.ErrLost}, time.Hour},
		{"loses its record", func(_ context.Context, s *stub) error { s.Store().Remove("job"); return nil }, core.Lost, []error{core.ErrLost}, 0},
		{"can't be released", func(_ context.Context, s *stub) error {
			s.release = func(context.Context, core.Grant, time.Duration, func(context.Context, core.Grant, time.Duration) error) error {
				return errors.New("store is down")
			}
			return failed
		}, core.Ran, []error{failed}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStub()
				r, err := newLocker(t, s).Run(t.Context(), job, func(ctx context.Context) error {
					if err := core.AssertLocked(ctx, "job"); err != nil {
						t.Errorf("inside the task: %v", err)
					}
					return c.task(ctx, s)
				})
				if r.Outcome != c.outcome || r.Fence == 0 || r.Held != nil {
					t.Errorf("the result is %+v, want outcome %q and a fence", r, c.outcome)
				}
				if r.Took > c.took || r.Took < c.took*9/10 {
					t.Errorf("took %v, want %v", r.Took, c.took)
				}
				for _, want := range c.errs {
					if !errors.Is(err, want) {
						t.Errorf("the error is %v, want it to include %v", err, want)
					}
				}
				if len(c.errs) == 0 && err != nil {
					t.Errorf("the error is %v, want nil", err)
				}
				if strings.Contains(c.name, "released") && !strings.Contains(err.Error(), "store is down") {
					t.Errorf("the error is %v, want it to include the release's", err)
				}
			})
		})
	}
}

func TestRunReturnsTheTasksErrorAsItIs(t *testing.T) {
	failed := errors.New("disk full")
	if _, err := newLocker(t, memory.New(nil)).Run(t.Context(), job, func(context.Context) error { return failed }); err != failed { //nolint:errorlint // identity is the point
		t.Errorf("Run = %v, want the task's error itself", err)
	}
}

func TestRunSkips(t *testing.T) {
	s := newStub()
	l := newLocker(t, s, core.WithOwner("a"))
	lease := mustLock(t, l, job)
	task := func(context.Context) error { t.Error("the task ran"); return nil }
	r, err := l.Run(t.Context(), job, task)
	if err != nil || r.Outcome != core.Skipped || r.Held == nil || r.Held.Owner != "a" {
		t.Errorf("Run of a held lock = %+v, %v, want skipped, by a", r, err)
	}
	if err := l.Wrap(job, task)(t.Context()); err != nil {
		t.Errorf("Wrap of a held lock = %v, want nil", err)
	}
	_ = lease.Release(t.Context())
	ran := false
	if err := l.Wrap(job, func(context.Context) error { ran = true; return nil })(t.Context()); err != nil || !ran {
		t.Errorf("Wrap of a free lock = %v, ran: %v", err, ran)
	}
}

// A task that fails in any way is released by the rule of one that succeeds.
func TestRunReleasesWhateverHappens(t *testing.T) {
	for _, c := range []struct {
		name string
		task func(context.Context) error
	}{
		{"returns", func(context.Context) error { return nil }},
		{"fails", func(context.Context) error { return errors.New("failed") }},
		{"panics", func(context.Context) error { panic("broken task") }},
		{"exits its goroutine", func(context.Context) error { runtime.Goexit(); return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStub()
				l := newLocker(t, s)
				k := core.Lock{Name: "job", AtMostFor: time.Minute, AtLeastFor: 10 * time.Second}
				recovered := make(chan any, 1)
				go func() {
					defer func() { recovered <- recover() }()
					_, _ = l.Run(t.Context(), k, c.task)
				}()
				if r := <-recovered; (r != nil) != (c.name == "panics") {
					t.Errorf("recovered %v: a panic must go on to the caller, and nothing else may", r)
				}
				time.Sleep(10*time.Second - 1)
				if !s.jobHeld(t) {
					t.Error("the lock was free before AtLeastFor (R5)")
				}
				time.Sleep(time.Nanosecond)
				if s.jobHeld(t) {
					t.Error("the lock was held after AtLeastFor (R5)")
				}
			})
		})
	}
}

func TestOutcomeString(t *testing.T) {
	for o, want := range map[core.Outcome]string{core.NotRun: "not run", core.Skipped: "skipped", core.Ran: "ran", core.Lost: "lost"} {
		if got := o.String(); got != want {
			t.Errorf("String of %d = %q, want %q", o, got, want)
		}
	}
}
