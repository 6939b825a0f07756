package conformancetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

var fencingCases = []Case{
	{
		Area: "fencing", Name: "fence_increases", Rules: "R14",
		Check: "fences rise strictly over release, expiry and other clients, and stay over an extension", needs: needs(core.CapFence), run: fenceIncreases,
	},
	{
		Area: "fencing", Name: "fence_after_removal", Rules: "R14",
		Check: "a fence is larger than the one before also when the record was removed in between", run: fenceAfterRemoval,
		needs: needsAll(needsRemove, needs(core.CapFence)),
	},
}

func fenceIncreases(e *env) {
	name := e.name()
	last := int64(0)
	take := func(p core.Provider, atMost time.Duration) core.Grant {
		e.Helper()
		g := e.must(p, claim(name, atMost))
		if g.Fence <= last {
			e.Errorf("the fence went from %d to %d", last, g.Fence)
		}
		last = g.Fence
		return g
	}
	for range 10 {
		e.release(e.a, take(e.a, long), 0)
		e.release(e.b, take(e.b, long), 0)
	}
	take(e.a, e.short())
	e.runOut(name)
	g := take(e.b, long)
	if e.caps.Set.Has(core.CapExtend) {
		extended, err := e.extend(e.b, g, long)
		if err != nil || extended.Fence != g.Fence {
			e.Errorf("an extension's fence is %d, %v, want the grant's %d", extended.Fence, err, g.Fence)
		}
	}
	e.release(e.b, g, 0)
}

func fenceAfterRemoval(e *env) {
	name := e.name()
	g := e.must(e.a, claim(name, long))
	if err := e.h.Remove(e.ctx, name); err != nil {
		e.Fatalf("Harness.Remove: %v", err)
	}
	// Without the record the number can only come from the clock.
	e.untilStore(name, e.peek(name).StoreTime.Add(2*e.caps.ClockWidth))
	again := e.must(e.b, claim(name, long))
	if again.Fence <= g.Fence {
		e.Errorf("after the removal the fence went from %d to %d", g.Fence, again.Fence)
	}
	e.release(e.b, again, 0)
}

var inspectionCases = []Case{
	{
		Area: "inspection", Name: "inspect", Rules: "R9",
		Check: "Inspect shows what the store has: holder, times, state, on the store's clock", needs: needs(core.CapInspect), run: inspect,
	},
	{
		Area: "inspection", Name: "list", Rules: "R16",
		Check: "List shows every record once, stops when the caller does, and ends with an error when it can't go on", needs: needs(core.CapInspect), run: list,
	},
	{
		Area: "inspection", Name: "list_many", Rules: "R16",
		Check: "List shows each of 2,500 records once", run: listMany,
		needs: needsAll(needsPut, needs(core.CapInspect)),
	},
	{
		Area: "inspection", Name: "force_release", Rules: "R6",
		Check: "ForceRelease frees exactly the grant that was looked at, also after an extension; a successor survives", needs: needs(core.CapInspect), run: forceRelease,
	},
}

func inspect(e *env) {
	in := e.b.(core.Inspector)
	name := e.name()
	if _, found, err := in.Inspect(e.ctx, name); found || err != nil {
		e.Errorf("Inspect of an unknown name = %v, %v, want not found", found, err)
	}
	c := claim(name, long)
	g := e.must(e.a, c)
	check := func(held bool) {
		e.Helper()
		before := e.found(name)
		r, found, err := in.Inspect(e.ctx, name)
		after := e.found(name)
		if err != nil || !found {
			e.Fatalf("Inspect = %v, %v, want the record", found, err)
		}
		if r.Name != name || r.Owner != c.Owner || r.LockedBy != before.LockedBy || !r.LockedAt.Equal(before.LockedAt) ||
			!r.LockedUntil.Equal(before.LockedUntil) || r.Fence != g.Fence {
			e.Errorf("Inspect = %+v, want what the store has: %s", r, before.Raw)
		}
		if r.StoreTime.Before(before.StoreTime.Add(-e.ahead())) || r.StoreTime.After(after.StoreTime.Add(e.ahead())) {
			e.Errorf("Inspect says that the store's time is %v, want it between %v and %v", r.StoreTime, before.StoreTime, after.StoreTime)
		}
		if r.Held() != held || (r.Remaining() > 0) != held {
			e.Errorf("Inspect says held: %v, %v remain, want held: %v", r.Held(), r.Remaining(), held)
		}
	}
	check(true)
	e.release(e.a, g, 0)
	e.untilStore(name, e.left(name).LockedUntil)
	if e.h.Forgets == "" {
		check(false)
	} else if r, found, err := in.Inspect(e.ctx, name); found || err != nil {
		e.Errorf("Inspect of what the store has forgotten = %+v, %v, %v, want not found", r, found, err)
	}
}

func list(e *env) {
	in := e.b.(core.Inspector)
	var names []string
	for range 5 {
		name := e.name()
		g := e.must(e.a, claim(name, long))
		if e.h.Forgets == "" {
			e.release(e.a, g, 0)
		}
		names = append(names, name)
	}
	seen := map[string]int{}
	for r, err := range in.List(e.ctx) {
		if err != nil {
			e.Fatalf("List: %v", err)
		}
		seen[r.Name]++
	}
	for _, name := range names {
		if seen[name] != 1 {
			e.Errorf("List shows %q %d times, want once", name, seen[name])
		}
	}
	n := 0
	for _, err := range in.List(e.ctx) {
		if err != nil {
			e.Errorf("List: %v", err)
		}
		n++
		if n == 2 {
			break
		}
	}
	ctx, cancel := context.WithCancel(e.ctx)
	cancel()
	var last error
	for _, err := range in.List(ctx) {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		e.Errorf("List with a cancelled context ends with %v, want context.Canceled", last)
	}
}

func listMany(e *env) {
	const many = 2500
	stem, until := e.name(), -time.Minute
	if e.h.Forgets != "" {
		until = long
	}
	for i := range many {
		if err := e.h.Put(e.ctx, fmt.Sprintf("%s-%05d", stem, i), "jvm-host", -time.Hour, until); err != nil {
			e.Fatalf("Harness.Put: %v", err)
		}
	}
	var names []string
	for r, err := range e.b.(core.Inspector).List(e.ctx) {
		if err != nil {
			e.Fatalf("List: %v", err)
		}
		if strings.HasPrefix(r.Name, stem) {
			names = append(names, r.Name)
		}
	}
	slices.Sort(names)
	if n := len(slices.Compact(slices.Clone(names))); len(names) != many || n != many {
		e.Errorf("List shows %d records, %d of them different, want %d", len(names), n, many)
	}
}

func forceRelease(e *env) {
	in := e.b.(core.Inspector)
	look := func(name string) core.Record {
		e.Helper()
		r, found, err := in.Inspect(e.ctx, name)
		if err != nil || !found {
			e.Fatalf("Inspect = %v, %v", found, err)
		}
		return r
	}
	name := e.name()
	g := e.must(e.a, claim(name, long))
	if err := in.ForceRelease(e.ctx, look(name)); err != nil {
		e.Fatalf("ForceRelease of a held lock: %v", err)
	}
	e.lost(e.a.Release(e.ctx, g, 0), "Release after ForceRelease")
	first := e.must(e.b, claim(name, long))
	seen := look(name)
	e.release(e.b, first, 0)
	e.must(e.a, claim(name, long))
	at := e.found(name)
	e.lost(in.ForceRelease(e.ctx, seen), "ForceRelease of a record that has a successor")
	e.unchanged(at, name, "ForceRelease of a record that has a successor")

	name = e.name()
	g = e.must(e.a, claim(name, long))
	seen = look(name)
	if e.caps.Set.Has(core.CapExtend) {
		if _, err := e.extend(e.a, g, 2*long); err != nil {
			e.Fatalf("Extend: %v", err)
		}
	}
	if err := in.ForceRelease(e.ctx, seen); err != nil {
		e.Errorf("ForceRelease of a grant that was extended meanwhile: %v", err)
	}
	at = e.left(name)
	e.lost(in.ForceRelease(e.ctx, seen), "ForceRelease of a lock that is free")
	e.unchanged(at, name, "ForceRelease of a lock that is free")
}

var capabilityCases = []Case{
	{
		Area: "capabilities", Name: "declared_both_ways", Rules: "R14",
		Check: "what a provider declares it has, what it does not declare it has not, and both stay", run: declaredBothWays,
	},
	{
		Area: "capabilities", Name: "extend_undeclared", Rules: "R7",
		Check: "without the capability, Lease.Extend answers ErrUnsupported", run: extendUndeclared,
		needs: func(_ Harness, caps core.Capabilities) string {
			if caps.Set.Has(core.CapExtend) {
				return "the provider declares extend"
			}
			return ""
		},
	},
}

func declaredBothWays(e *env) {
	if e.caps.Resolution < 1 {
		e.Errorf("the resolution is %v, want at least 1 ns", e.caps.Resolution)
	}
	if other := e.b.Capabilities(); other != e.caps || e.a.Capabilities() != e.caps {
		e.Errorf("two clients declare %v and %v", e.caps, other)
	}
	if _, ok := e.a.(core.Extender); ok != e.caps.Set.Has(core.CapExtend) {
		e.Errorf("declares extend: %v, has the method: %v", !ok, ok)
	}
	if _, ok := e.a.(core.Inspector); ok != e.caps.Set.Has(core.CapInspect) {
		e.Errorf("declares inspect: %v, has the methods: %v", !ok, ok)
	}
	name := e.name()
	g := e.must(e.a, claim(name, long))
	if (g.Fence != 0) != e.caps.Set.Has(core.CapFence) {
		e.Errorf("declares fence: %v, the grant's is %d", e.caps.Set.Has(core.CapFence), g.Fence)
	}
	held := e.held(e.b, name, "it was just taken")
	if (held.Owner != "") != e.caps.Set.Has(core.CapHolder) {
		e.Errorf("declares holder: %v, the held error has %q", e.caps.Set.Has(core.CapHolder), held.Owner)
	}
	if (!held.Since.IsZero() && !held.Until.IsZero()) != e.caps.Set.Has(core.CapTimes) {
		e.Errorf("declares times: %v, the held error has %v to %v", e.caps.Set.Has(core.CapTimes), held.Since, held.Until)
	}
	for _, t := range []time.Time{g.LockedAt, g.LockedUntil, held.Since, held.Until} {
		if t.Location() != time.UTC {
			e.Errorf("a time is in %v, want UTC", t.Location())
		}
	}
	e.release(e.a, g, 0)
}

func extendUndeclared(e *env) {
	lease, err := e.locker(e.a).TryLock(e.ctx, core.Lock{Name: e.name(), AtMostFor: long})
	if err != nil {
		e.Fatalf("TryLock: %v", err)
	}
	if err := lease.Extend(e.ctx, long); !errors.Is(err, core.ErrUnsupported) {
		e.Errorf("Extend = %v, want ErrUnsupported", err)
	}
	if err := lease.Release(e.ctx); err != nil {
		e.Errorf("Release: %v", err)
	}
}

var formatCases = []Case{
	{
		Area: "shared_format", Name: "reads_java_record", Rules: "R19",
		Check: "a record in ShedLock's format is honoured: held, expired, released with a minimum hold", needs: needsPut, run: readsJavaRecord,
	},
	{
		Area: "shared_format", Name: "record_kept", Rules: "R19",
		Check: "a release keeps the record, with its holder and time of acquisition", run: recordKept,
	},
	{
		Area: "shared_format", Name: "locked_by", Rules: "R6 R19",
		Check: "locked_by is at most 255 characters and ends in the token, so that no other holder's equals it", run: lockedBy,
	},
}

func readsJavaRecord(e *env) {
	const host = "jvm-host-7"
	put := func(since, until time.Duration) string {
		e.Helper()
		name := e.name()
		if err := e.h.Put(e.ctx, name, host, since, until); err != nil {
			e.Fatalf("Harness.Put: %v", err)
		}
		return name
	}
	name := put(-time.Minute, long)
	at := e.found(name)
	held := e.held(e.b, name, "a JVM holds it")
	// ShedLock's record for ZooKeeper does not say who holds the lock.
	if want := at.LockedBy; e.caps.Set.Has(core.CapHolder) && held.Owner != want {
		e.Errorf("the holder is %q, want %q", held.Owner, want)
	}
	e.lost(e.a.Release(e.ctx, core.Grant{Name: name, Owner: host, Token: claim(name, long).Token}, 0), "Release of a JVM's lock under its host name")
	e.unchanged(at, name, "an attempt, or a stranger's release, on a JVM's lock")

	name = put(-time.Hour, -time.Minute)
	e.release(e.a, e.must(e.a, claim(name, long)), 0)

	name = put(-time.Second, e.short()) // released, with a minimum hold pending
	e.release(e.b, e.freesAt(e.b, name, e.found(name).LockedUntil), 0)
}

func recordKept(e *env) {
	name := e.name()
	g := e.must(e.a, claim(name, long))
	at := e.found(name)
	e.release(e.a, g, 0)
	after := e.peek(name)
	if e.h.Forgets != "" {
		if after.Found {
			e.Fatalf("the harness says that the store forgets, and it has kept %q", after.Raw)
		}
		e.Skip(e.h.Forgets)
	}
	if !after.Found || after.LockedBy != at.LockedBy || !after.LockedAt.Equal(at.LockedAt) {
		e.Errorf("after the release the record is %q, before it was %q", after.Raw, at.Raw)
	}
}

func lockedBy(e *env) {
	name := e.name()
	c := claim(name, long)
	c.Owner = strings.Repeat("ö", 300)
	g := e.must(e.a, c)
	by := e.found(name).LockedBy
	if by != "" && (len([]rune(by)) > 255 || !strings.Contains(by, c.Token)) {
		e.Errorf("locked_by is %q, of %d characters, want at most 255 with the token in it", by, len([]rune(by)))
	}
	e.release(e.a, g, 0)
}
