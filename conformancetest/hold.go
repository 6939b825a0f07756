package conformancetest

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

var minimumHoldCases = []Case{
	{
		Area: "minimum_hold", Name: "held_until_at_least", Rules: "R5",
		Check: "after an early release the lock is refused until the acquisition plus AtLeastFor, and free from then on", run: heldUntilAtLeast,
	},
	{
		Area: "minimum_hold", Name: "job_longer_than_at_least", Rules: "R5",
		Check: "a release after AtLeastFor frees the lock at once", run: jobLongerThanAtLeast,
	},
	{
		Area: "minimum_hold", Name: "at_least_equals_at_most", Rules: "R5",
		Check: "with AtLeastFor equal to AtMostFor a release changes nothing of when the lock is free", run: atLeastEqualsAtMost,
	},
	{
		Area: "minimum_hold", Name: "failed_panicked_goexit", Rules: "R5",
		Check: "a task that fails, panics or exits its goroutine is held and freed by the same rule", run: failedPanickedGoexit,
	},
	{
		Area: "minimum_hold", Name: "anchor_after_extend", Rules: "R5",
		Check: "after an extension AtLeastFor still counts from the original acquisition", needs: needs(core.CapExtend), run: anchorAfterExtend,
	},
}

// acquired is when a lock was acquired, on the store's clock.
func (e *env) acquired(name string, before time.Time) time.Time {
	if at := e.found(name).LockedAt; !at.IsZero() {
		return at
	}
	return before
}

// anchored takes a lock on A, and says when it was acquired.
func (e *env) anchored(name string, atMost time.Duration) (g core.Grant, at time.Time) {
	e.Helper()
	before := e.peek(name).StoreTime
	g = e.must(e.a, claim(name, atMost))
	return g, e.acquired(name, before)
}

func heldUntilAtLeast(e *env) {
	name := e.name()
	atLeast := e.short()
	g, anchor := e.anchored(name, long)
	e.release(e.a, g, atLeast)
	e.release(e.b, e.freesAt(e.b, name, anchor.Add(atLeast)), 0)
}

func jobLongerThanAtLeast(e *env) {
	name := e.name()
	atLeast := e.whole(50 * time.Millisecond)
	g, anchor := e.anchored(name, long)
	e.untilStore(name, anchor.Add(2*atLeast+e.late()))
	e.release(e.a, g, atLeast)
	e.release(e.b, e.must(e.b, claim(name, long)), 0)
}

func atLeastEqualsAtMost(e *env) {
	name := e.name()
	atMost := e.short()
	g, anchor := e.anchored(name, atMost)
	// A machine that stalls for all of AtMostFor has lost its lease already.
	if err := e.a.Release(e.ctx, g, atMost); err != nil && !errors.Is(err, core.ErrLost) {
		e.Fatalf("Release: %v", err)
	}
	e.release(e.b, e.freesAt(e.b, name, anchor.Add(atMost)), 0)
}

func failedPanickedGoexit(e *env) {
	for _, task := range []func(context.Context) error{
		func(context.Context) error { return errors.New("the task failed") },
		func(context.Context) error { panic("the task panicked") },
		func(context.Context) error { runtime.Goexit(); return nil },
	} {
		k := core.Lock{Name: e.name(), AtMostFor: long, AtLeastFor: e.short()}
		before := e.peek(k.Name).StoreTime
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer func() { _ = recover() }()
			_, _ = e.locker(e.a).Run(e.ctx, k, task)
		}()
		<-done
		e.release(e.b, e.freesAt(e.b, k.Name, e.acquired(k.Name, before).Add(k.AtLeastFor)), 0)
	}
}

func anchorAfterExtend(e *env) {
	name := e.name()
	atLeast := 3 * e.short()
	g, anchor := e.anchored(name, long)
	e.untilStore(name, anchor.Add(atLeast/9))
	g, err := e.extend(e.a, g, long)
	if err != nil {
		e.Fatalf("Extend of a live grant: %v", err)
	}
	e.release(e.a, g, atLeast)
	e.release(e.b, e.freesAt(e.b, name, anchor.Add(atLeast)), 0)
}
