package conformancetest

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

var exclusionCases = []Case{
	{
		Area: "exclusion", Name: "acquire_then_held", Rules: "R1 R3 R15",
		Check: "while A holds, B and A itself are refused, and are told by whom, since and until as far as declared", run: acquireThenHeld,
	},
	{
		Area: "exclusion", Name: "names_are_independent", Rules: "R1",
		Check: "one client holds two names at once", run: namesAreIndependent,
	},
	{
		Area: "exclusion", Name: "free_after_release", Rules: "R4 R5",
		Check: "B acquires at once after A's release, ten times without a pause", run: freeAfterRelease,
	},
	{
		Area: "exclusion", Name: "first_acquire_race", Rules: "R1 R3",
		Check: "of 32 clients on a name never seen before one is granted and 31 are held, without an error", run: firstAcquireRace,
	},
	{
		Area: "exclusion", Name: "expired_acquire_race", Rules: "R1 R3",
		Check: "of 32 clients on an expired lock one is granted and 31 are held, without an error", run: expiredAcquireRace,
	},
	{
		Area: "exclusion", Name: "counter_fuzz", Rules: "R1",
		Check: "counters that only the lock protects end exact", run: counterFuzz,
	},
	{
		Area: "exclusion", Name: "linearizable", Rules: "R1 R6 R14",
		Check: "in a history of random acquire, extend, release and expiry no two leases overlap, and later ones have larger fences", run: linearizable,
	},
	{
		Area: "exclusion", Name: "reused_lock_value", Rules: "R1 R4",
		Check: "one core.Lock value taken again later is held for its whole AtMostFor again", run: reusedLockValue,
	},
	{
		Area: "exclusion", Name: "crashed_holder_single_try", Rules: "R4",
		Check: "one try by a fresh client, after the AtMostFor of a holder that vanished, wins", run: crashedHolder,
	},
	{
		Area: "exclusion", Name: "herd", Rules: "R1 R3",
		Check: "of 500 attempts at one instant one wins, none fails, and those after it write nothing", run: herd,
	},
	{
		Area: "exclusion", Name: "idempotent_by_token", Rules: "R3",
		Check: "a claim repeated under its token gets the grant it has, unchanged and without a write", run: idempotentByToken,
	},
}

func acquireThenHeld(e *env) {
	name := e.name()
	c := claim(name, long)
	c.Owner = "holder-label"
	g := e.must(e.a, c)
	at := e.found(name)
	for who, p := range map[string]core.Provider{"another client": e.b, "the holder's client": e.a} {
		held := e.held(p, name, "the lock was taken a moment ago, and "+who+" tries")
		if e.caps.Set.Has(core.CapHolder) && held.Owner != c.Owner {
			e.Errorf("%s is told that the holder is %q, want %q", who, held.Owner, c.Owner)
		}
		if e.caps.Set.Has(core.CapTimes) && (!held.Since.Equal(at.LockedAt) || !held.Until.Equal(at.LockedUntil)) {
			e.Errorf("%s is told %v to %v, want the record's %v to %v", who, held.Since, held.Until, at.LockedAt, at.LockedUntil)
		}
	}
	if e.caps.Set.Has(core.CapTimes) && (!g.LockedAt.Equal(at.LockedAt) || !g.LockedUntil.Equal(at.LockedUntil)) {
		e.Errorf("the grant says %v to %v, the record %v to %v", g.LockedAt, g.LockedUntil, at.LockedAt, at.LockedUntil)
	}
	e.unchanged(at, name, "a refused attempt")
	e.release(e.a, g, 0)
}

func namesAreIndependent(e *env) {
	one, two := e.name(), e.name()
	g1 := e.must(e.a, claim(one, long))
	g2 := e.must(e.a, claim(two, long))
	e.release(e.a, g1, 0)
	e.refused(e.b, two, "only the other name was released")
	e.release(e.a, g2, 0)
}

func freeAfterRelease(e *env) {
	name := e.name()
	for range 10 {
		e.release(e.a, e.must(e.a, claim(name, long)), 0)
		e.release(e.b, e.must(e.b, claim(name, long)), 0)
	}
}

// race lets n attempts start together, spread over the clients, and returns the
// grants.
func (e *env) race(name string, n int, clients []core.Provider) []core.Grant {
	e.Helper()
	var mu sync.Mutex
	var grants []core.Grant
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			g, err := clients[i%len(clients)].Acquire(e.ctx, claim(name, long))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				grants = append(grants, g)
			case !errors.Is(err, core.ErrHeld):
				e.Errorf("an attempt in the race for %q failed: %v", name, err)
			}
		})
	}
	close(start)
	wg.Wait()
	if len(grants) != 1 {
		e.Errorf("%d attempts at once on %q: %d were granted, want 1", n, name, len(grants))
	}
	return grants
}

func (e *env) clients(n int) []core.Provider {
	e.Helper()
	clients := []core.Provider{e.a, e.b}
	for len(clients) < n {
		clients = append(clients, e.open())
	}
	return clients
}

func firstAcquireRace(e *env) {
	clients := e.clients(8)
	for range 50 {
		e.race(e.name(), 32, clients)
		if e.Failed() {
			return
		}
	}
}

func expiredAcquireRace(e *env) {
	clients := e.clients(8)
	var names []string
	for range 20 {
		names = append(names, e.name())
		e.must(e.a, claim(names[len(names)-1], e.short()))
	}
	e.runOut(names[len(names)-1]) // the last one
	for _, name := range names {
		e.race(name, 32, clients)
		if e.Failed() {
			return
		}
	}
}

func counterFuzz(e *env) {
	const workers, rounds = 8, 40
	clients := e.clients(4)
	names := []string{e.name(), e.name()}
	// Guarded by the locks alone: an addition in two steps, which loses one when
	// two do it at once. Atomic steps, because the lock that orders them is one
	// that Go's race detector can't see.
	counters := make([]atomic.Int64, len(names))
	ran := make([]int, workers*len(names))
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range rounds {
				n := (w + i) % len(names)
				g, err := clients[w%len(clients)].Acquire(e.ctx, claim(names[n], long))
				if errors.Is(err, core.ErrHeld) {
					continue
				}
				if err != nil {
					e.Errorf("Acquire: %v", err)
					return
				}
				before := counters[n].Load()
				if i%3 > 0 { // some tasks take no time at all
					runtime.Gosched()
				}
				counters[n].Store(before + 1)
				ran[w*len(names)+n]++
				if err := clients[w%len(clients)].Release(e.ctx, g, 0); err != nil {
					e.Errorf("Release: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	for n := range names {
		want := int64(0)
		for w := range workers {
			want += int64(ran[w*len(names)+n])
		}
		if got := counters[n].Load(); got != want || want == 0 {
			e.Errorf("the counter is at %d after %d runs: runs overlapped, or none took place", got, want)
		}
	}
}

// lease is one grant in a history, by the local monotonic clock: it was held for
// certain from taken to ended.
type lease struct {
	taken, ended time.Time
	fence        int64
}

func linearizable(e *env) {
	const workers, enough = 6, 40
	clients := e.clients(3)
	name := e.name()
	var mu sync.Mutex
	var history []lease
	done := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(history) >= enough
	}
	var wg sync.WaitGroup
	begin := time.Now()
	for w := range workers {
		wg.Go(func() {
			p := clients[w%len(clients)]
			for i := 0; !done() && time.Since(begin) < 10*time.Second && !e.Failed(); i++ {
				c := claim(name, e.whole(100*time.Millisecond))
				asked := time.Now()
				g, err := p.Acquire(e.ctx, c)
				if errors.Is(err, core.ErrHeld) {
					e.pause(time.Duration(1+(w*7+i*3)%9) * time.Millisecond)
					continue
				}
				if err != nil {
					e.Errorf("Acquire: %v", err)
					return
				}
				l := lease{taken: time.Now(), fence: g.Fence}
				// A store's clock shows a time up to one step ago, so its lock_until
				// may come that much earlier.
				end := asked.Add(c.AtMostFor - e.caps.Resolution)
				switch step := (w + i) % 4; {
				case step == 0: // vanish
				case step == 1 && e.caps.Set.Has(core.CapExtend):
					again := time.Now()
					if extended, err := e.extend(p, g, c.AtMostFor); err == nil {
						g, end = extended, again.Add(c.AtMostFor-e.caps.Resolution)
					} else if !errors.Is(err, core.ErrLost) {
						e.Errorf("Extend: %v", err)
					}
					fallthrough
				default:
					e.pause(time.Duration((w*5+i)%12) * time.Millisecond)
					if now := time.Now(); now.Before(end) {
						end = now
					}
					if err := p.Release(e.ctx, g, 0); err != nil && !errors.Is(err, core.ErrLost) {
						e.Errorf("Release: %v", err)
					}
				}
				l.ended = end
				if l.ended.After(l.taken) { // otherwise the answer came too late to tell anything
					mu.Lock()
					history = append(history, l)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	slices.SortFunc(history, func(a, b lease) int { return a.taken.Compare(b.taken) })
	for i := 1; i < len(history); i++ {
		before, after := history[i-1], history[i]
		if after.taken.Before(before.ended) {
			e.Errorf("a lease began %v before the one before it had ended", before.ended.Sub(after.taken))
		}
		if e.caps.Set.Has(core.CapFence) && after.fence <= before.fence {
			e.Errorf("a later lease has fence %d, the one before it %d", after.fence, before.fence)
		}
	}
	if len(history) < enough/4 {
		e.Errorf("only %d leases were taken by %d workers in %v", len(history), workers, time.Since(begin).Round(time.Millisecond))
	}
}

func reusedLockValue(e *env) {
	k := core.Lock{Name: e.name(), AtMostFor: 3 * e.short()}
	l := e.locker(e.a)
	var first time.Time // the end of the first lease, in store time
	for taken, tries := 0, 0; taken < 3; tries++ {
		before := e.peek(k.Name).StoreTime
		lease, err := l.TryLock(e.ctx, k)
		if errors.Is(err, core.ErrLost) && tries < 20 {
			continue // this machine stalled for all of AtMostFor (R12): inconclusive
		}
		if err != nil {
			e.Fatalf("TryLock: %v", err)
		}
		taken++
		at := e.found(k.Name)
		if at.LockedUntil.Before(before.Add(k.AtMostFor - e.caps.Resolution)) {
			e.Errorf("the lock is held until %v, want %v after %v at least", at.LockedUntil, k.AtMostFor, before)
		}
		if first.IsZero() {
			first = at.LockedUntil
		}
		// A machine that stalls here may find that the lease has run out.
		if err := lease.Release(e.ctx); err != nil && !errors.Is(err, core.ErrLost) {
			e.Errorf("Release: %v", err)
		}
		e.untilStore(k.Name, first)
	}
}

func crashedHolder(e *env) {
	name := e.name()
	e.expired(name)
	e.release(e.b, e.must(e.open(), claim(name, long)), 0)
}

func herd(e *env) {
	clients := e.clients(8)
	name := e.name()
	grants := e.race(name, 500, clients)
	if len(grants) != 1 {
		return
	}
	held := e.found(name)
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			if _, err := clients[i%len(clients)].Acquire(e.ctx, claim(name, long)); !errors.Is(err, core.ErrHeld) {
				e.Errorf("an attempt on the held lock = %v, want ErrHeld", err)
			}
		})
	}
	wg.Wait()
	e.unchanged(held, name, "one of 100 attempts on a held lock")
	e.release(e.a, grants[0], 0)
}

func idempotentByToken(e *env) {
	name := e.name()
	c := claim(name, long)
	g := e.must(e.a, c)
	at := e.found(name)
	again, err := e.b.Acquire(e.ctx, c)
	if err != nil {
		e.Fatalf("the same claim again = %v, want its grant: its first answer may have been lost", err)
	}
	if again.Fence != g.Fence || !again.LockedAt.Equal(g.LockedAt) || !again.LockedUntil.Equal(g.LockedUntil) {
		e.Errorf("the same claim again got another grant: %v, %v to %v; the first was %v, %v to %v",
			again.Fence, again.LockedAt, again.LockedUntil, g.Fence, g.LockedAt, g.LockedUntil)
	}
	e.unchanged(at, name, "the repeated claim")
	e.release(e.b, again, 0)
}
