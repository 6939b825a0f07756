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
	{
		Area: "store_time", Name: "client_clock_ahead", Rules: "R5 R9",
		Check: "a client whose clock is ten minutes, or a day, ahead holds, is refused, releases and takes over by the store's clock alone", run: clientClockAhead,
		needs: needsOpenSkewed,
	},
	{
		Area: "store_time", Name: "client_clock_behind", Rules: "R5 R9",
		Check: "a client whose clock is ten minutes, or a day, behind holds, is refused, releases and takes over by the store's clock alone", run: clientClockBehind,
		needs: needsOpenSkewed,
	},
}

func needsOpenSkewed(h Harness, _ core.Capabilities) string {
	if h.OpenSkewed == nil {
		return "the harness has no OpenSkewed"
	}
	return ""
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
	if left := at.LockedUntil.Sub(at.StoreTime); left > 90*time.Second+e.ahead() || left < 60*time.Second {
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
		if left := at.LockedUntil.Sub(at.StoreTime); left > 90*time.Second+e.ahead() || left < 60*time.Second {
			e.Errorf("a client with a slow clock extended by 90 s, and %v are left on the store's", left)
		}
	}
	e.release(e.b, e.freesAt(e.b, name, e.acquired(name, before).Add(atLeast)), 0)
}

func clientClockAhead(e *env) { e.skewed(10*time.Minute, 24*time.Hour) }

func clientClockBehind(e *env) { e.skewed(-10*time.Minute, -24*time.Hour) }

// skewed checks clients with wrong clocks against those with true ones.
func (e *env) skewed(offs ...time.Duration) {
	e.Helper()
	for _, off := range offs {
		wrong := e.h.OpenSkewed(e.TB, off)
		name := e.name()
		g := e.must(e.a, claim(name, long))
		e.refused(wrong, name, "a client with a true clock holds it")
		e.release(e.a, g, 0)

		g = e.must(wrong, claim(name, long))
		e.refused(e.b, name, "a client with a wrong clock holds it")
		at := e.found(name)
		if left := at.LockedUntil.Sub(at.StoreTime); left > long+e.ahead() || left < long-time.Minute {
			e.Errorf("a client whose clock is off by %v took %v, and %v are left on the store's", off, long, left)
		}
		atLeast := e.short()
		e.release(wrong, g, atLeast)
		e.release(e.b, e.freesAt(e.b, name, e.acquired(name, at.StoreTime).Add(atLeast)), 0)

		for _, pair := range [][2]core.Provider{{e.a, wrong}, {wrong, e.b}} {
			name := e.name()
			before := e.peek(name).StoreTime
			g := e.must(pair[0], claim(name, e.short()))
			free := g.LockedUntil
			if free.IsZero() {
				free = before.Add(e.short())
			}
			e.release(pair[1], e.freesAt(pair[1], name, free), 0)
		}
	}
}
