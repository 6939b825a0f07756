package conformancetest

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

// long is for locks that must not expire during a case.
const long = 10 * time.Minute

// short is for locks that must: some multiples of the resolution.
func (e *env) short() time.Duration { return e.whole(max(300*time.Millisecond, 20*e.caps.Resolution)) }

// late is how much later than its time a lock may be found free: the store's clock
// shows a time up to a step ago; and a provider that only knows about where it is
// may have written too much by its width, and notices too late by it again.
func (e *env) late() time.Duration { return e.caps.Resolution + 2*e.caps.ClockWidth }

// ahead is how much later than the store's clock a time may be that was written as
// its now.
func (e *env) ahead() time.Duration { return e.caps.Resolution + e.caps.ClockWidth }

// whole rounds up to the store's resolution, as core would.
func (e *env) whole(d time.Duration) time.Duration {
	r := e.caps.Resolution
	return (d + r - 1) / r * r
}

func randomText(n int) string { return strings.ToLower(rand.Text()[:n]) }

func claim(name string, atMost time.Duration) core.Claim {
	return core.Claim{Name: name, Owner: "suite", Token: rand.Text(), AtMostFor: atMost}
}

// must takes a lock that has to be free.
func (e *env) must(p core.Provider, c core.Claim) core.Grant {
	e.Helper()
	g, err := p.Acquire(e.ctx, c)
	if err != nil {
		e.Fatalf("Acquire of a free lock %q: %v", c.Name, err)
	}
	if g.Name != c.Name || g.Owner != c.Owner || g.Token != c.Token {
		e.Errorf("the grant is for %q/%q, want the claim's name, owner and token", g.Name, g.Owner)
	}
	return g
}

// refused tries a lock that has to be held.
func (e *env) refused(p core.Provider, name, why string) {
	e.Helper()
	e.held(p, name, why) //nolint:errcheck // it is no error here that the lock is held
}

// held is refused, and returns what the store has said.
func (e *env) held(p core.Provider, name, why string) *core.HeldError {
	e.Helper()
	_, err := p.Acquire(e.ctx, claim(name, long))
	held, ok := errors.AsType[*core.HeldError](err)
	if !ok {
		e.Fatalf("Acquire = %v, want ErrHeld: %s", err, why)
	}
	if held.Name != name {
		e.Errorf("the held error is about %q, want %q", held.Name, name)
	}
	return held
}

func (e *env) release(p core.Provider, g core.Grant, keepFor time.Duration) {
	e.Helper()
	if err := p.Release(e.ctx, g, keepFor); err != nil {
		e.Fatalf("Release of a live grant: %v", err)
	}
}

func (e *env) peek(name string) Peeked {
	e.Helper()
	p, err := e.h.Peek(e.ctx, name)
	if err != nil {
		e.Fatalf("Harness.Peek: %v", err)
	}
	return p
}

// found is peek of a record that has to be there.
func (e *env) found(name string) Peeked {
	e.Helper()
	p := e.peek(name)
	if !p.Found {
		e.Fatalf("the store has no record of %q", name)
	}
	return p
}

// left is the record of a lock that is free, if the store keeps those.
func (e *env) left(name string) Peeked {
	e.Helper()
	if e.h.Forgets != "" {
		return e.peek(name)
	}
	return e.found(name)
}

// unchanged checks that nothing has been written to a record since before.
func (e *env) unchanged(before Peeked, name, by string) {
	e.Helper()
	if after := e.peek(name); after.Raw != before.Raw {
		e.Errorf("%s changed the record\nfrom %s\nto   %s", by, before.Raw, after.Raw)
	}
}

// lost checks that an operation answered ErrLost.
func (e *env) lost(err error, what string) {
	e.Helper()
	if !errors.Is(err, core.ErrLost) {
		e.Errorf("%s = %v, want ErrLost", what, err)
	}
}

// untilStore waits until the store's clock, as Peek reads it, has reached t.
func (e *env) untilStore(name string, t time.Time) {
	e.Helper()
	for {
		left := t.Sub(e.peek(name).StoreTime)
		if left <= 0 {
			return
		}
		if !e.pause(min(left, 20*time.Millisecond)) {
			e.Fatalf("the store's clock has not reached %v", t)
		}
	}
}

// pause sleeps for d, and reports false when the case's time is up.
func (e *env) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.ctx.Done():
		return false
	}
}

// runOut waits until a lock of length short, whose holder has vanished, is free
// without doubt.
func (e *env) runOut(name string) {
	e.Helper()
	at := e.left(name)
	until := at.LockedUntil
	if until.IsZero() { // the store does not tell, or it has run out already
		until = at.StoreTime.Add(e.short())
	}
	e.untilStore(name, until.Add(e.late()))
}

// expired takes a lock on A, lets it run out, and returns its grant.
func (e *env) expired(name string) core.Grant {
	e.Helper()
	g := e.must(e.a, claim(name, e.short()))
	e.runOut(name)
	return g
}

// freesAt tries a held lock again and again until it is granted, and checks both
// sides of the instant at which it must become free, on the store's clock: no
// grant before free, and no refusal at an attempt that began later than it may.
func (e *env) freesAt(p core.Provider, name string, free time.Time) core.Grant {
	e.Helper()
	for {
		before := e.peek(name).StoreTime
		g, err := p.Acquire(e.ctx, claim(name, long))
		switch {
		case err == nil:
			after := e.found(name)
			at := after.StoreTime
			if !after.LockedAt.IsZero() {
				at = after.LockedAt
			}
			if at.Before(free) {
				e.Errorf("the lock was granted at %v, %v before it became free", at, free.Sub(at))
			}
			if after.StoreTime.Before(free.Add(-e.caps.Resolution)) { // whatever its provider has written
				e.Errorf("the lock was granted before %v, and became free at %v only", after.StoreTime, free)
			}
			return g
		case !errors.Is(err, core.ErrHeld):
			e.Fatalf("Acquire of a held lock: %v", err)
		case before.After(free.Add(e.late())):
			e.Fatalf("the lock was refused at %v, %v after it had become free", before, before.Sub(free))
		}
		if !e.pause(10 * time.Millisecond) {
			e.Fatal("the lock did not become free in time")
		}
	}
}

// locker makes a core.Locker on a provider.
func (e *env) locker(p core.Provider) *core.Locker {
	e.Helper()
	l, err := core.New(p)
	if err != nil {
		e.Fatal(err)
	}
	return l
}

// extend uses the optional ability, which the case's needs have checked.
func (e *env) extend(p core.Provider, g core.Grant, d time.Duration) (core.Grant, error) {
	return p.(core.Extender).Extend(e.ctx, g, d)
}

// counting passes everything through and counts the calls.
type counting struct {
	core.Provider
	calls atomic.Int64
}

func (c *counting) Acquire(ctx context.Context, cl core.Claim) (core.Grant, error) {
	c.calls.Add(1)
	return c.Provider.Acquire(ctx, cl)
}

func (c *counting) Release(ctx context.Context, g core.Grant, d time.Duration) error {
	c.calls.Add(1)
	return c.Provider.Release(ctx, g, d)
}

// Capabilities hides the optional interfaces, which counting does not have.
func (c *counting) Capabilities() core.Capabilities {
	caps := c.Provider.Capabilities()
	caps.Set &^= core.CapExtend | core.CapInspect
	return caps
}

// slow passes everything through, after on has run before each Acquire.
type slow struct {
	counting
	on func()
}

func (s *slow) Acquire(ctx context.Context, c core.Claim) (core.Grant, error) {
	s.on()
	return s.counting.Acquire(ctx, c)
}

func needs(set core.Capability) func(Harness, core.Capabilities) string {
	return func(_ Harness, caps core.Capabilities) string {
		if caps.Set.Has(set) {
			return ""
		}
		return "the provider does not declare " + set.String()
	}
}

// needsAll joins conditions: the first that is not met counts.
func needsAll(conditions ...func(Harness, core.Capabilities) string) func(Harness, core.Capabilities) string {
	return func(h Harness, caps core.Capabilities) string {
		for _, needs := range conditions {
			if why := needs(h, caps); why != "" {
				return why
			}
		}
		return ""
	}
}

func needsRemove(h Harness, _ core.Capabilities) string {
	if h.Remove == nil {
		return "the harness has no Remove"
	}
	return ""
}

func needsPut(h Harness, _ core.Capabilities) string {
	if h.Put == nil {
		return "the harness has no Put"
	}
	return ""
}
