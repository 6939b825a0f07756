package conformancetest

import (
	"context"
	"testing"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

var storeTimeCases = []Case{
	{
		Area: "store_time", Name: "client_clock_skew", Rules: "R9",
		Check: "clients whose wall clock is decades behind hold, are refused and take over by the store's clock alone", run: clientClockSkew,
		needs: func(h Harness, _ core.Capabilities) string { return h.NoBubble },
	},
	{
		Area: "store_time", Name: "client_clock_skew_release", Rules: "R5 R9",
		Check: "a minimum hold, and an extension, set by a client whose wall clock is decades behind end by the store's clock", run: clientClockSkewRelease,
		needs: func(h Harness, _ core.Capabilities) string { return h.NoBubble },
	},
}

// behind runs f with a client in a bubble, where time.Now begins in the year
// 2000, while the store's clock goes on.
func (e *env) behind(f func(e *env)) {
	e.Helper()
	e.TB.(*recorder).bubble(func(tb testing.TB) {
		inner := *e
		inner.TB = tb
		// Neither may a context of outside be, whose end would reach in.
		inner.ctx = context.Background()
		inner.a = e.h.Open(tb)
		inner.b = nil // a client of outside must not be used in a bubble
		f(&inner)
	})
}

func clientClockSkew(e *env) {
	heldOutside, expiredOutside, heldInside := e.name(), e.name(), e.name()
	outside := e.must(e.a, claim(heldOutside, long))
	e.expired(expiredOutside)
	var inside core.Grant
	e.behind(func(e *env) {
		e.refused(e.a, heldOutside, "a client with a true clock holds it")
		e.must(e.a, claim(expiredOutside, long))
		inside = e.must(e.a, claim(heldInside, 90*time.Second))
	})
	if e.Failed() {
		return
	}
	for _, name := range []string{heldInside, expiredOutside} {
		e.refused(e.b, name, "a client with a slow clock took it a moment ago")
	}
	at := e.found(heldInside)
	if left := at.LockedUntil.Sub(at.StoreTime); left > 90*time.Second+e.caps.Resolution || left < 60*time.Second {
		e.Errorf("a client with a slow clock took 90 s, and %v are left on the store's", left)
	}
	e.release(e.b, inside, 0)
	e.release(e.a, outside, 0)
}

func clientClockSkewRelease(e *env) {
	name, extended := e.name(), e.name()
	atLeast := e.short() * 3
	before := e.peek(name).StoreTime
	e.behind(func(e *env) {
		e.release(e.a, e.must(e.a, claim(name, long)), atLeast)
		if e.caps.Set.Has(core.CapExtend) {
			if _, err := e.extend(e.a, e.must(e.a, claim(extended, long)), 90*time.Second); err != nil {
				e.Fatalf("Extend by a client with a slow clock: %v", err)
			}
		}
	})
	if e.Failed() {
		return
	}
	if e.caps.Set.Has(core.CapExtend) {
		at := e.found(extended)
		if left := at.LockedUntil.Sub(at.StoreTime); left > 90*time.Second+e.caps.Resolution || left < 60*time.Second {
			e.Errorf("a client with a slow clock extended by 90 s, and %v are left on the store's", left)
		}
	}
	e.release(e.b, e.freesAt(e.b, name, e.acquired(name, before).Add(atLeast)), 0)
}
