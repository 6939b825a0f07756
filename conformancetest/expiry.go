package conformancetest

import (
	"context"
	"errors"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

var expiryCases = []Case{
	{
		Area: "expiry", Name: "at_lock_until", Rules: "R4",
		Check: "a lock that nobody releases is refused before lock_until and free from then on, on the store's clock", run: atLockUntil,
	},
	{
		Area: "expiry", Name: "lock_until_is_store_time", Rules: "R4 R9",
		Check: "lock_until is the store's time of the acquisition plus AtMostFor", run: lockUntilIsStoreTime,
	},
	{
		Area: "expiry", Name: "round_up", Rules: "R10",
		Check: "AtMostFor is rounded up to the resolution or the attempt fails; it is never shorter, never for ever", run: roundUp,
	},
	{
		Area: "expiry", Name: "bounds", Rules: "R10",
		Check: "durations out of bounds are refused before any I/O", run: bounds,
	},
	{
		Area: "expiry", Name: "ten_years", Rules: "R10",
		Check: "the longest AtMostFor is held, or refused with an error; never shorter", run: tenYears,
	},
	{
		Area: "expiry", Name: "late_grant", Rules: "R12",
		Check: "a grant whose answer comes after AtMostFor is no lease, and is not left in the store", run: lateGrant,
	},
	{
		Area: "expiry", Name: "loss_is_told", Rules: "R13",
		Check: "a task that overruns is told by its context, with cause ErrLost, and the run reports it", run: lossIsTold,
	},
}

func atLockUntil(e *env) {
	name := e.name()
	atMost := e.short()
	before := e.peek(name).StoreTime
	g := e.must(e.a, claim(name, atMost))
	at := e.found(name)
	free := at.LockedUntil
	if free.IsZero() {
		free = before.Add(atMost)
	}
	// Nothing between may change that: neither attempts nor looking.
	won := e.freesAt(e.b, name, free)
	if e.caps.Set.Has(core.CapFence) && won.Fence <= g.Fence {
		e.Errorf("the fence went from %d to %d", g.Fence, won.Fence)
	}
	e.release(e.b, won, 0)
}

func lockUntilIsStoreTime(e *env) {
	name := e.name()
	const atMost = 90 * time.Second
	before := e.peek(name).StoreTime
	g := e.must(e.a, claim(name, atMost))
	at := e.found(name)
	res := e.caps.Resolution
	if !at.LockedAt.IsZero() && (at.LockedAt.Before(before.Add(-res)) || at.LockedAt.After(at.StoreTime.Add(e.ahead()))) {
		e.Errorf("locked_at is %v, want it between %v and %v, when the store's clock was read before and after", at.LockedAt, before, at.StoreTime)
	}
	if at.LockedUntil.Before(before.Add(atMost-res)) || at.LockedUntil.After(at.StoreTime.Add(atMost+e.ahead())) {
		e.Errorf("lock_until is %v, want %v after a time between %v and %v", at.LockedUntil, atMost, before, at.StoreTime)
	}
	if !at.LockedAt.IsZero() && at.LockedUntil.Sub(at.LockedAt) != atMost {
		e.Errorf("lock_until − locked_at is %v, want %v", at.LockedUntil.Sub(at.LockedAt), atMost)
	}
	e.release(e.a, g, 0)
}

func roundUp(e *env) {
	for _, asked := range []time.Duration{1, time.Millisecond, 999 * time.Millisecond, 1500 * time.Millisecond, 1500500 * time.Microsecond, 40 * 24 * time.Hour} {
		name := e.name()
		before := e.peek(name).StoreTime
		lease, err := e.locker(e.a).TryLock(e.ctx, core.Lock{Name: name, AtMostFor: asked})
		if errors.Is(err, core.ErrHeld) {
			e.Fatalf("AtMostFor %v: %v", asked, err)
		}
		at := e.peek(name)
		if err != nil {
			// Too short to be of use, so given back: then it must not be held.
			if at.Found && at.LockedUntil.After(at.StoreTime.Add(e.caps.Resolution)) {
				e.Errorf("AtMostFor %v failed with %v and left a lock until %v", asked, err, at.LockedUntil)
			}
			continue
		}
		if from := at.LockedAt; !from.IsZero() {
			if got := at.LockedUntil.Sub(from); got < asked || got >= asked+e.caps.Resolution {
				e.Errorf("AtMostFor %v is held for %v, want it rounded up to a multiple of %v", asked, got, e.caps.Resolution)
			}
		} else if at.LockedUntil.Before(before.Add(asked-e.caps.Resolution)) || at.LockedUntil.After(at.StoreTime.Add(asked+2*e.caps.Resolution)) {
			e.Errorf("AtMostFor %v is held until %v, taken between %v and %v", asked, at.LockedUntil, before, at.StoreTime)
		}
		if err := lease.Release(e.ctx); err != nil && !errors.Is(err, core.ErrLost) {
			e.Errorf("Release: %v", err)
		}
	}
}

func bounds(e *env) {
	count := &counting{Provider: e.a}
	l := e.locker(count)
	for _, k := range []core.Lock{
		{AtMostFor: 0},
		{AtMostFor: -time.Second},
		{AtMostFor: 200 * 365 * 24 * time.Hour},
		{AtMostFor: time.Minute, AtLeastFor: -1},
		{AtMostFor: time.Minute, AtLeastFor: time.Minute + 1},
	} {
		k.Name = e.name()
		if _, err := l.TryLock(e.ctx, k); !errors.Is(err, core.ErrInvalidDuration) {
			e.Errorf("TryLock with AtMostFor %v and AtLeastFor %v = %v, want ErrInvalidDuration", k.AtMostFor, k.AtLeastFor, err)
		}
	}
	if n := count.calls.Load(); n > 0 {
		e.Errorf("the store was asked %d times about durations out of bounds", n)
	}
}

func tenYears(e *env) {
	name := e.name()
	g, err := e.a.Acquire(e.ctx, claim(name, core.MaxDuration))
	if errors.Is(err, core.ErrHeld) {
		e.Fatalf("Acquire for ten years: %v", err)
	}
	at := e.peek(name)
	if err != nil {
		if at.Found && at.LockedUntil.After(at.StoreTime) {
			e.Errorf("Acquire for ten years failed with %v and left a lock until %v", err, at.LockedUntil)
		}
		return
	}
	if left := at.LockedUntil.Sub(at.StoreTime); left < core.MaxDuration-time.Hour || left > core.MaxDuration+time.Hour {
		e.Errorf("a lock for ten years is held for %v", left)
	}
	e.release(e.a, g, 0)
}

func lateGrant(e *env) {
	atMost := e.short()
	name := e.name()
	// The request takes so long that the store's lease is new when the local one
	// is used up already: what is not given back would stay held.
	late := &slow{counting: counting{Provider: e.a}, on: func() { e.pause(atMost) }}
	_, err := e.locker(late).TryLock(e.ctx, core.Lock{Name: name, AtMostFor: atMost, AtLeastFor: atMost})
	if !errors.Is(err, core.ErrLost) {
		e.Errorf("TryLock that took longer than AtMostFor = %v, want ErrLost", err)
	}
	e.release(e.b, e.must(e.b, claim(name, long)), 0)
}

func lossIsTold(e *env) {
	k := core.Lock{Name: e.name(), AtMostFor: 3 * e.short()}
	// The client connects before its time counts.
	e.release(e.a, e.must(e.a, claim(k.Name, long)), 0)
	r, err := e.locker(e.a).Run(e.ctx, k, func(ctx context.Context) error {
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, core.ErrLost) {
			e.Errorf("the task's context ended with %v, want ErrLost", cause)
		}
		return nil
	})
	if !errors.Is(err, core.ErrLost) || r.Outcome != core.Lost {
		e.Errorf("Run of a task that overruns = %v, %v, want lost", r.Outcome, err)
	}
	e.release(e.b, e.freesAt(e.b, k.Name, e.left(k.Name).LockedUntil), 0)
}
