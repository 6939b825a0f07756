package conformancetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

var faultCases = []Case{
	{
		Area: "contexts_and_faults", Name: "reply_lost_acquire", Rules: "R3",
		Check: "an attempt whose answer is lost is granted all the same or leaves no lock, and is never held", needs: needsProxy, run: replyLostAcquire,
	},
	{
		Area: "contexts_and_faults", Name: "reply_lost_release", Rules: "R3",
		Check: "a release whose answer is lost frees the lock", needs: needsProxy, run: replyLostRelease,
	},
	{
		Area: "contexts_and_faults", Name: "reply_lost_extend", Rules: "R3 R7",
		Check: "an extension whose answer is lost is repeated or an error, and its holder can still release", needs: needsAll(needsProxy, needs(core.CapExtend)), run: replyLostExtend,
	},
	{
		Area: "contexts_and_faults", Name: "reply_never_comes", Rules: "R3 R11",
		Check: "an attempt that was carried out and whose answer never comes ends with its context and leaves no lock", needs: needsProxy, run: replyNeverComes,
	},
	{
		Area: "contexts_and_faults", Name: "black_hole", Rules: "R3 R11 R17",
		Check: "on connections that pass nothing, calls end within their limits with an error that is not held, and work once the network is back", needs: needsProxy, run: blackHole,
	},
	{
		Area: "contexts_and_faults", Name: "cancelled_under_way", Rules: "R11",
		Check: "an attempt that is given up while its request is on the way leaves no lock, also when the request arrives later", needs: needsProxy, run: cancelledUnderWay,
	},
	{
		Area: "contexts_and_faults", Name: "connections_cut", Rules: "R3 R17",
		Check: "a client whose connections were cut works on by itself", needs: needsProxy, run: connectionsCut,
	},
	{
		Area: "contexts_and_faults", Name: "round_trips", Rules: "R2",
		Check: "calls need no more round trips than the harness says", alone: true, needs: needsProxy, run: roundTrips,
	},
}

func needsProxy(h Harness, _ core.Capabilities) string {
	if h.Server == "" || h.Through == nil {
		return "the harness has no Server or no Through"
	}
	return ""
}

// throughProxy makes a client behind a proxy, with its connections open.
func (e *env) throughProxy() (*Proxy, core.Provider) {
	e.Helper()
	proxy := NewProxy(e, e.h.Server)
	p := e.h.Through(e, proxy.Addr())
	e.release(p, e.must(p, claim(e.name(), long)), 0)
	return proxy, p
}

// mostTrips is more than any call should need; answers are lost at each.
const mostTrips = 3

func replyLostAcquire(e *env) {
	proxy, p := e.throughProxy()
	l := e.locker(p)
	for _, known := range []bool{false, true} { // whether the name has a record
		for skip := range mostTrips {
			name := e.name()
			if known {
				e.release(e.b, e.must(e.b, claim(name, long)), 0)
			}
			proxy.DropAnswer(skip)
			lease, err := l.TryLock(e.ctx, core.Lock{Name: name, AtMostFor: long})
			proxy.DropAnswer(-1)
			switch {
			case err == nil:
				e.refused(e.b, name, "it was granted although an answer was lost")
				if err := lease.Release(e.ctx); err != nil {
					e.Errorf("Release after an answer was lost: %v", err)
				}
			case errors.Is(err, core.ErrHeld):
				e.Errorf("TryLock whose answer no. %d was lost = %v; nobody holds it", skip+1, err)
			case errors.Is(err, core.ErrUncertain):
				e.Errorf("TryLock whose answer no. %d was lost = %v: the store answers and can tell", skip+1, err)
			}
			e.release(e.b, e.must(e.b, claim(name, long)), 0)
		}
	}
}

func replyLostRelease(e *env) {
	proxy, p := e.throughProxy()
	l := e.locker(p)
	for skip := range mostTrips {
		name := e.name()
		lease, err := l.TryLock(e.ctx, core.Lock{Name: name, AtMostFor: long})
		if err != nil {
			e.Fatalf("TryLock: %v", err)
		}
		proxy.DropAnswer(skip)
		err = lease.Release(e.ctx)
		proxy.DropAnswer(-1)
		if err != nil { // also not ErrLost: the lease is live
			e.Errorf("Release whose answer no. %d was lost = %v, want it to be settled", skip+1, err)
		}
		e.release(e.b, e.must(e.b, claim(name, long)), 0)
	}
}

func replyLostExtend(e *env) {
	proxy, p := e.throughProxy()
	l := e.locker(p)
	for skip := range mostTrips {
		name := e.name()
		lease, err := l.TryLock(e.ctx, core.Lock{Name: name, AtMostFor: long})
		if err != nil {
			e.Fatalf("TryLock: %v", err)
		}
		proxy.DropAnswer(skip)
		err = lease.Extend(e.ctx, 2*long)
		proxy.DropAnswer(-1)
		if errors.Is(err, core.ErrHeld) || errors.Is(err, core.ErrLost) {
			e.Errorf("Extend whose answer no. %d was lost = %v; its lock is live", skip+1, err)
		}
		proxy.DropAnswer(skip)
		err = lease.Extend(e.ctx, long/2)
		proxy.DropAnswer(-1)
		at := e.found(name)
		left, trusted := at.LockedUntil.Sub(at.StoreTime), time.Until(lease.Deadline())
		if !at.LockedUntil.IsZero() && trusted > left+e.ahead() {
			e.Errorf("Extend to less whose answer no. %d was lost = %v; the lease counts on %v, and the store has %v", skip+1, err, trusted, left)
		}
		e.refused(e.b, name, "its holder has extended it")
		if err := lease.Release(e.ctx); err != nil {
			e.Errorf("Release: %v", err)
		}
		e.release(e.b, e.must(e.b, claim(name, long)), 0)
	}
}

func replyNeverComes(e *env) {
	for _, known := range []bool{false, true} {
		for skip := range mostTrips {
			// A new client each time: the connection is of no more use, but may take up
			// a place in a small pool for a while.
			proxy, p := e.throughProxy()
			l := e.locker(p)
			name := e.name()
			if known {
				e.release(e.b, e.must(e.b, claim(name, long)), 0)
			}
			proxy.MuteAnswer(skip)
			ctx, cancel := context.WithTimeout(e.ctx, 100*time.Millisecond)
			lease, err := l.TryLock(ctx, core.Lock{Name: name, AtMostFor: long})
			cancel()
			proxy.MuteAnswer(-1)
			switch {
			case err == nil:
				if err := lease.Release(e.ctx); err != nil {
					e.Errorf("Release: %v", err)
				}
			case errors.Is(err, core.ErrHeld) || errors.Is(err, core.ErrUncertain) || !errors.Is(err, context.DeadlineExceeded):
				e.Errorf("TryLock whose answer no. %d never came = %v, want context.DeadlineExceeded alone", skip+1, err)
			}
			e.release(e.b, e.must(e.b, claim(name, long)), 0)
		}
	}
}

func blackHole(e *env) {
	proxy, p := e.throughProxy()
	const cleanup = 2 * time.Second
	const patience = 300 * time.Millisecond
	l, err := core.New(p, core.WithCleanupLimit(cleanup))
	if err != nil {
		e.Fatal(err)
	}
	lease, err := l.TryLock(e.ctx, core.Lock{Name: e.name(), AtMostFor: long})
	if err != nil {
		e.Fatalf("TryLock: %v", err)
	}
	bounded := func(what string, limit time.Duration, f func(ctx context.Context) error) {
		ctx, cancel := context.WithTimeout(e.ctx, patience)
		defer cancel()
		start := time.Now()
		err := f(ctx)
		if err == nil || errors.Is(err, core.ErrHeld) || errors.Is(err, core.ErrLost) {
			e.Errorf("%s on a connection that passes nothing = %v, want an error of its own", what, err)
		}
		if took := time.Since(start); took > limit {
			e.Errorf("%s on a connection that passes nothing took %v, want at most %v", what, took, limit)
		}
	}
	proxy.Stall()
	// An overloaded machine may add something, but not much more than the limits.
	bounded("TryLock", patience+2*cleanup, func(ctx context.Context) error {
		_, err := l.TryLock(ctx, core.Lock{Name: e.name(), AtMostFor: long})
		return err
	})
	if e.caps.Set.Has(core.CapExtend) {
		bounded("Extend", patience+2*cleanup, func(ctx context.Context) error { return lease.Extend(ctx, long) })
	}
	bounded("Release", 2*cleanup, lease.Release)
	proxy.Resume()
	e.works(p, "the network is back")
}

// works checks that a client takes a lock, if not at once then soon.
func (e *env) works(p core.Provider, since string) {
	e.Helper()
	var err error
	for range 50 {
		var r core.Result
		r, err = e.locker(p).Run(e.ctx, core.Lock{Name: e.name(), AtMostFor: long}, func(context.Context) error { return nil })
		if err == nil && r.Outcome == core.Ran {
			return
		}
		if errors.Is(err, core.ErrHeld) {
			e.Fatalf("a lock that nobody has taken is said to be held: %v", err)
		}
		e.pause(100 * time.Millisecond)
	}
	e.Errorf("%s, and the same client still fails: %v", since, err)
}

func cancelledUnderWay(e *env) {
	proxy, p := e.throughProxy()
	l := e.locker(p)
	const way = 100 * time.Millisecond
	for _, patience := range []time.Duration{way / 5, way / 2, way} {
		name := e.name()
		proxy.SetLatency(way)
		ctx, cancel := context.WithTimeout(e.ctx, patience)
		lease, err := l.TryLock(ctx, core.Lock{Name: name, AtMostFor: long})
		cancel()
		switch {
		case err == nil: // the last may be in time
			if err := lease.Release(e.ctx); err != nil {
				e.Errorf("Release: %v", err)
			}
		case errors.Is(err, core.ErrHeld) || errors.Is(err, core.ErrUncertain) || !errors.Is(err, context.DeadlineExceeded):
			e.Errorf("TryLock given up after %v on a network that takes %v = %v, want context.DeadlineExceeded alone", patience, way, err)
		}
		proxy.SetLatency(0)
		// Whatever is on the way has arrived by then.
		e.pause(3 * way)
		e.release(e.b, e.must(e.b, claim(name, long)), 0)
	}
}

func connectionsCut(e *env) {
	proxy, p := e.throughProxy()
	for range 3 {
		proxy.Cut()
		e.works(p, "its connections were cut")
	}
	// With the store's end closed at once too, as at a restart.
	proxy.Down()
	if _, err := p.Acquire(e.ctx, claim(e.name(), long)); err == nil || errors.Is(err, core.ErrHeld) {
		e.Errorf("Acquire on a store that is down = %v, want an error", err)
	}
	proxy.Up()
	e.works(p, "the store is up again")
}

func roundTrips(e *env) {
	proxy, p := e.throughProxy()
	known, held, extended := e.name(), e.name(), e.name()
	e.release(p, e.must(p, claim(known, long)), 0)
	e.must(e.b, claim(held, long))
	e.refused(p, held, "B holds it")
	lease := e.must(p, claim(extended, 100*long))
	const rounds = 5
	counted := map[string][]int{}
	count := func(what string, f func()) {
		before := proxy.Trips()
		f()
		counted[what] = append(counted[what], proxy.Trips()-before)
	}
	for range rounds {
		var first, won core.Grant
		fresh := e.name()
		count("first", func() { first = e.must(p, claim(fresh, long)) })
		e.release(p, first, 0)
		count("won", func() { won = e.must(p, claim(known, long)) })
		count("release", func() { e.release(p, won, 0) })
		count("refused", func() { e.refused(p, held, "B holds it") })
		if e.caps.Set.Has(core.CapExtend) {
			count("extend", func() {
				var err error
				if lease, err = e.extend(p, lease, 200*long); err != nil {
					e.Fatalf("Extend: %v", err)
				}
			})
		}
	}
	if proxy.Trips() == 0 {
		e.Fatal("nothing has gone through the proxy: Harness.Through must connect to the address that it is given")
	}
	e.trips = &RoundTrips{}
	for _, f := range []struct {
		what     string
		got      *int
		declared int
	}{
		{"first", &e.trips.First, e.h.RoundTrips.First},
		{"won", &e.trips.Won, e.h.RoundTrips.Won},
		{"refused", &e.trips.Refused, e.h.RoundTrips.Refused},
		{"release", &e.trips.Release, e.h.RoundTrips.Release},
		{"extend", &e.trips.Extend, e.h.RoundTrips.Extend},
	} {
		trips := counted[f.what]
		if len(trips) == 0 {
			continue
		}
		slices.Sort(trips)
		*f.got = trips[len(trips)/2] // a client may look after its connections in between
		if f.declared > 0 && *f.got > f.declared {
			e.Errorf("%s: %d round trips, want at most %d", f.what, *f.got, f.declared)
		}
	}
}
