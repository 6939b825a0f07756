package conformancetest

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

var contextCases = []Case{
	{
		Area: "contexts_and_faults", Name: "cancelled_before", Rules: "R11",
		Check: "calls whose context has ended are errors that say so, and take nothing", run: cancelledBefore,
	},
	{
		Area: "contexts_and_faults", Name: "cancelled_during", Rules: "R11",
		Check: "an attempt cancelled at any moment ends soon and leaves no live lock", run: cancelledDuring,
	},
	{
		Area: "contexts_and_faults", Name: "release_after_cancel", Rules: "R11",
		Check: "a task whose context was cancelled releases its lock", run: releaseAfterCancel,
	},
	{
		Area: "contexts_and_faults", Name: "store_down", Rules: "R3 R17",
		Check: "a store that is down is an error, not held, and works again when it is up, without a new client", needs: needsBroken("down"), run: broken("down"),
	},
	{
		Area: "contexts_and_faults", Name: "read_only", Rules: "R3 R17",
		Check: "a store that is read-only is an error, not held", needs: needsBroken("read_only"), run: broken("read_only"),
	},
	{
		Area: "contexts_and_faults", Name: "no_table", Rules: "R3 R17",
		Check: "a missing table is an error, not held, and works once it exists, without a new client", needs: needsBroken("no_table"), run: broken("no_table"),
	},
	{
		Area: "contexts_and_faults", Name: "no_permission", Rules: "R3 R17",
		Check: "missing rights are an error, not held, and work once granted, without a new client", needs: needsBroken("no_permission"), run: broken("no_permission"),
	},
	{
		Area: "contexts_and_faults", Name: "other_breakage", Rules: "R3 R17",
		Check: "every further way of failing that the harness has is an error, not held", needs: needsOtherBreakage, run: otherBreakage,
	},
	{
		Area: "contexts_and_faults", Name: "nothing_leaks", Rules: "R16",
		Check: "after 1,000 successful and 1,000 refused attempts no goroutine and nothing the harness counts is left", alone: true, run: nothingLeaks,
	},
	{
		Area: "contexts_and_faults", Name: "pool_of_one", Rules: "R11",
		Check: "on a pool whose one connection is busy, calls end with their context, and work once it is free", run: poolOfOne,
		needs: func(h Harness, _ core.Capabilities) string {
			if h.PoolOfOne == nil {
				return "the harness has no PoolOfOne"
			}
			return ""
		},
	},
	{
		Area: "contexts_and_faults", Name: "concurrent_use", Rules: "R1",
		Check: "one client serves many goroutines on many names at once", run: concurrentUse,
	},
}

func cancelledBefore(e *env) {
	name := e.name()
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	if _, err := e.a.Acquire(ctx, claim(name, long)); !errors.Is(err, context.Canceled) || errors.Is(err, core.ErrHeld) {
		e.Errorf("Acquire with a cancelled context = %v, want context.Canceled", err)
	}
	if at := e.peek(name); at.Found && at.LockedUntil.After(at.StoreTime) {
		e.Errorf("it took the lock: %s", at.Raw)
	}
	g := e.must(e.a, claim(name, long))
	at := e.found(name)
	if err := e.a.Release(ctx, g, 0); !errors.Is(err, context.Canceled) {
		e.Errorf("Release with a cancelled context = %v, want context.Canceled", err)
	}
	if e.caps.Set.Has(core.CapExtend) {
		if _, err := e.a.(core.Extender).Extend(ctx, g, 2*long); !errors.Is(err, context.Canceled) {
			e.Errorf("Extend with a cancelled context = %v, want context.Canceled", err)
		}
	}
	e.unchanged(at, name, "a call with a cancelled context")
	e.release(e.a, g, 0)
}

func cancelledDuring(e *env) {
	l := e.locker(e.a)
	begin := time.Now()
	lease, err := l.TryLock(e.ctx, core.Lock{Name: e.name(), AtMostFor: long})
	if err != nil {
		e.Fatalf("TryLock: %v", err)
	}
	usual := max(time.Since(begin), 50*time.Microsecond)
	if err := lease.Release(e.ctx); err != nil {
		e.Fatalf("Release: %v", err)
	}
	for i := range 40 {
		// From before the request is sent until after its answer has come.
		name := e.name()
		ctx, cancel := context.WithTimeout(e.ctx, usual*time.Duration(i)/20)
		start := time.Now()
		lease, err := l.TryLock(ctx, core.Lock{Name: name, AtMostFor: long})
		took := time.Since(start)
		cancel()
		switch {
		case err == nil:
			if err := lease.Release(e.ctx); err != nil {
				e.Errorf("Release: %v", err)
			}
		case errors.Is(err, core.ErrHeld) || !errors.Is(err, context.DeadlineExceeded):
			e.Errorf("TryLock whose context ended = %v, want context.DeadlineExceeded", err)
		case errors.Is(err, core.ErrUncertain):
			e.Errorf("TryLock whose context ended = %v: a store that answers can take the lock back", err)
		}
		if limit := usual + 2*core.DefaultCleanupLimit; took > limit {
			e.Errorf("TryLock took %v, want at most %v", took, limit)
		}
		g, err := e.b.Acquire(e.ctx, claim(name, long))
		if err != nil {
			e.Fatalf("after a cancelled attempt B can't acquire: %v", err)
		}
		e.release(e.b, g, 0)
	}
}

func releaseAfterCancel(e *env) {
	name := e.name()
	ctx, cancel := context.WithCancel(e.ctx)
	r, err := e.locker(e.a).Run(ctx, core.Lock{Name: name, AtMostFor: long}, func(ctx context.Context) error {
		cancel()
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, core.ErrLost) || r.Outcome != core.Ran {
		e.Errorf("Run of a task that was cancelled = %v, %v, want the task's own error", r.Outcome, err)
	}
	e.release(e.b, e.must(e.b, claim(name, long)), 0)
}

func needsBroken(how string) func(Harness, core.Capabilities) string {
	return func(h Harness, _ core.Capabilities) string {
		if _, ok := h.Broken[how]; !ok {
			return "the harness has no Broken[" + how + "]"
		}
		return ""
	}
}

func needsOtherBreakage(h Harness, _ core.Capabilities) string {
	for how := range h.Broken {
		if !wellKnown(how) {
			return ""
		}
	}
	return "the harness has no other Broken"
}

func wellKnown(how string) bool {
	return how == "down" || how == "read_only" || how == "no_table" || how == "no_permission"
}

func broken(how string) func(e *env) { return func(e *env) { e.broken(how) } }

func otherBreakage(e *env) {
	for how := range e.h.Broken {
		if !wellKnown(how) {
			e.broken(how)
		}
	}
}

// broken checks a client of a store that fails in one way.
func (e *env) broken(how string) {
	e.Helper()
	p, mend := e.h.Broken[how].Open(e.TB)
	name := e.name()
	limit := 10 * time.Second
	ran := false
	for range 2 { // the second time on whatever the first left behind
		ctx, cancel := context.WithTimeout(e.ctx, limit)
		start := time.Now()
		r, err := e.locker(p).Run(ctx, core.Lock{Name: name, AtMostFor: long}, func(context.Context) error { ran = true; return nil })
		if err == nil || errors.Is(err, core.ErrHeld) || r.Outcome != core.NotRun || ran {
			e.Errorf("%s: Run = %v, %v, want an error and no run", how, r.Outcome, err)
		}
		if took := time.Since(start); took > limit+core.DefaultCleanupLimit {
			e.Errorf("%s: Run took %v, want at most %v", how, took, limit+core.DefaultCleanupLimit)
		}
		cancel()
	}
	if _, ok := p.(core.Extender); ok && p.Capabilities().Set.Has(core.CapExtend) {
		ctx, cancel := context.WithTimeout(e.ctx, limit)
		g := core.Grant{Name: name, Owner: "suite", Token: claim(name, long).Token}
		if _, err := p.(core.Extender).Extend(ctx, g, long); err == nil {
			e.Errorf("%s: Extend succeeded", how)
		}
		cancel()
	}
	if mend == nil {
		return
	}
	mend()
	var err error
	for range 50 { // a pool may need a moment to find out
		var r core.Result
		r, err = e.locker(p).Run(e.ctx, core.Lock{Name: name, AtMostFor: long}, func(context.Context) error { return nil })
		if err == nil && r.Outcome == core.Ran {
			return
		}
		e.pause(100 * time.Millisecond)
	}
	e.Errorf("%s: the cause is gone, and the same client still fails: %v", how, err)
}

func nothingLeaks(e *env) {
	held := e.name()
	g := e.must(e.b, claim(held, long))
	name := e.name()
	round := func(n int) {
		for range n {
			e.release(e.a, e.must(e.a, claim(name, long)), 0)
			if _, err := e.a.Acquire(e.ctx, claim(held, long)); !errors.Is(err, core.ErrHeld) {
				e.Fatalf("Acquire of a held lock = %v, want ErrHeld", err)
			}
		}
	}
	count := func() (goroutines int, resources int64) {
		if e.h.Resources != nil {
			var err error
			if resources, err = e.h.Resources(e.ctx); err != nil {
				e.Fatalf("Harness.Resources: %v", err)
			}
		}
		return runtime.NumGoroutine(), resources
	}
	round(50) // connections and caches that stay are made here
	goroutines, resources := count()
	round(1000)
	// What ends by itself needs a moment; a leak of one per call doesn't end.
	const spare = 20
	for range 100 {
		g2, r2 := count()
		if g2 <= goroutines+spare && r2 <= resources+spare {
			e.release(e.b, g, 0)
			return
		}
		e.pause(50 * time.Millisecond)
	}
	g2, r2 := count()
	e.Errorf("after 2,000 attempts there are %d goroutines, before %d; resources %d, before %d", g2, goroutines, r2, resources)
}

func poolOfOne(e *env) {
	p, occupy := e.h.PoolOfOne(e.TB)
	name := e.name()
	e.release(p, e.must(p, claim(name, long)), 0)
	free := occupy(e.TB)
	ctx, cancel := context.WithTimeout(e.ctx, 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := e.locker(p).TryLock(ctx, core.Lock{Name: name, AtMostFor: long})
	if err == nil || errors.Is(err, core.ErrHeld) {
		e.Errorf("TryLock on an exhausted pool = %v, want an error", err)
	}
	if limit := 200*time.Millisecond + 2*core.DefaultCleanupLimit; time.Since(start) > limit {
		e.Errorf("TryLock on an exhausted pool took %v, want at most %v", time.Since(start), limit)
	}
	free()
	e.release(p, e.must(p, claim(name, long)), 0)
}

func concurrentUse(e *env) {
	const workers = 16
	var wg, holding sync.WaitGroup
	holding.Add(workers)
	for range workers {
		wg.Go(func() {
			name := e.name()
			for i := range 10 {
				g, err := e.a.Acquire(e.ctx, claim(name, long))
				if i == 0 { // all hold a lock before the first releases his
					holding.Done()
					holding.Wait()
				}
				if err != nil {
					e.Errorf("Acquire: %v", err)
					return
				}
				if err := e.a.Release(e.ctx, g, 0); err != nil {
					e.Errorf("Release: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
}
