package conformancetest

import (
	"errors"
	"strings"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

var ownershipCases = []Case{
	{
		Area: "ownership", Name: "stale_release_keeps_successor", Rules: "R6",
		Check: "a release by a holder whose lock has expired and was taken by another is ErrLost and writes nothing", run: staleReleaseKeepsSuccessor,
	},
	{
		Area: "ownership", Name: "stale_release_with_at_least", Rules: "R6",
		Check: "the same with a minimum hold pending", run: staleReleaseWithAtLeast,
	},
	{
		Area: "ownership", Name: "stale_extend", Rules: "R6 R7",
		Check: "an extension by a former holder is ErrLost and writes nothing", needs: needs(core.CapExtend), run: staleExtend,
	},
	{
		Area: "ownership", Name: "same_label", Rules: "R6 R15",
		Check: "two clients with one owner label exclude each other, and can't release or extend for each other", run: sameLabel,
	},
	{
		Area: "ownership", Name: "double_release", Rules: "R6",
		Check: "a second release is ErrLost and writes nothing", run: doubleRelease,
	},
	{
		Area: "ownership", Name: "release_after_expiry", Rules: "R6",
		Check: "a release after expiry is ErrLost and writes nothing, also when nobody took over", run: releaseAfterExpiry,
	},
	{
		Area: "ownership", Name: "release_by_token", Rules: "R3 R6",
		Check: "a grant with only name, owner and token can be released, and another token can't", run: releaseByToken,
	},
	{
		Area: "ownership", Name: "extend_after_expiry", Rules: "R7",
		Check: "an extension after expiry is ErrLost and writes nothing", needs: needs(core.CapExtend), run: extendAfterExpiry,
	},
	{
		Area: "ownership", Name: "extend_after_release", Rules: "R7",
		Check: "an extension after release is ErrLost and writes nothing", needs: needs(core.CapExtend), run: extendAfterRelease,
	},
	{
		Area: "ownership", Name: "extend_removed", Rules: "R7",
		Check: "an extension or release of a record that was removed is ErrLost and makes none", needs: needsRemove, run: extendRemoved,
	},
	{
		Area: "ownership", Name: "extend_repeated", Rules: "R4 R7",
		Check: "each of three extensions holds the lock for its duration from then on", needs: needs(core.CapExtend), run: extendRepeated,
	},
	{
		Area: "ownership", Name: "extend_shorter", Rules: "R4 R7",
		Check: "a shorter extension brings the end nearer", needs: needs(core.CapExtend), run: extendShorter,
	},
	{
		Area: "ownership", Name: "record_removed_by_operator", Rules: "R19",
		Check: "after a record was removed the same client acquires again without a restart", needs: needsRemove, run: recordRemoved,
	},
	{
		Area: "ownership", Name: "long_label", Rules: "R6",
		Check: "owner labels of any length are accepted and cut, and tokens still decide", run: longLabel,
	},
}

// superseded lets A's lock run out and B take it. It returns both grants, and the
// record of the second.
func (e *env) superseded(name string) (stale, g core.Grant, at Peeked) {
	e.Helper()
	stale = e.expired(name)
	g = e.must(e.b, claim(name, long))
	return stale, g, e.found(name)
}

func staleReleaseKeepsSuccessor(e *env) {
	name := e.name()
	stale, g, at := e.superseded(name)
	e.lost(e.a.Release(e.ctx, stale, 0), "Release by the former holder")
	e.unchanged(at, name, "a stale release")
	e.refused(e.a, name, "the successor holds it")
	e.release(e.b, g, 0)
}

func staleReleaseWithAtLeast(e *env) {
	name := e.name()
	stale, g, at := e.superseded(name)
	e.lost(e.a.Release(e.ctx, stale, long), "Release by the former holder, with a minimum hold")
	e.unchanged(at, name, "a stale release")
	e.release(e.b, g, 0)
}

func staleExtend(e *env) {
	name := e.name()
	stale, g, at := e.superseded(name)
	_, err := e.extend(e.a, stale, 2*long)
	e.lost(err, "Extend by the former holder")
	e.unchanged(at, name, "a stale extension")
	e.release(e.b, g, 0)
}

func sameLabel(e *env) {
	name := e.name()
	mine, other := claim(name, long), claim(name, long)
	mine.Owner, other.Owner = "pod-1", "pod-1"
	g := e.must(e.a, mine)
	at := e.found(name)
	if _, err := e.b.Acquire(e.ctx, other); !errors.Is(err, core.ErrHeld) {
		e.Errorf("Acquire with the holder's label and another token = %v, want ErrHeld", err)
	}
	forged := g
	forged.Token, forged.State = other.Token, nil
	e.lost(e.b.Release(e.ctx, forged, 0), "Release with the holder's label and another token")
	if e.caps.Set.Has(core.CapExtend) {
		_, err := e.extend(e.b, forged, 2*long)
		e.lost(err, "Extend with the holder's label and another token")
	}
	e.unchanged(at, name, "a stranger with the holder's label")
	e.release(e.a, g, 0)
}

func doubleRelease(e *env) {
	name := e.name()
	g := e.must(e.a, claim(name, long))
	e.release(e.a, g, 0)
	at := e.left(name)
	e.untilStore(name, at.LockedUntil)
	e.lost(e.a.Release(e.ctx, g, 0), "the second Release")
	e.unchanged(at, name, "the second release")
	e.release(e.b, e.must(e.b, claim(name, long)), 0)
}

func releaseAfterExpiry(e *env) {
	name := e.name()
	g := e.expired(name)
	at := e.left(name)
	e.lost(e.a.Release(e.ctx, g, 0), "Release after expiry")
	e.lost(e.a.Release(e.ctx, g, long), "Release after expiry, with a minimum hold")
	e.unchanged(at, name, "a release after expiry")
}

func releaseByToken(e *env) {
	name := e.name()
	c := claim(name, long)
	e.must(e.a, c)
	at := e.found(name)
	other := core.Grant{Name: name, Owner: c.Owner, Token: claim(name, long).Token}
	e.lost(e.b.Release(e.ctx, other, 0), "Release by a token that took nothing")
	e.unchanged(at, name, "a release by another token")
	e.release(e.b, core.Grant{Name: name, Owner: c.Owner, Token: c.Token}, 0)
	e.release(e.a, e.must(e.a, claim(name, long)), 0)
	e.lost(e.b.Release(e.ctx, core.Grant{Name: e.name(), Owner: c.Owner, Token: c.Token}, 0), "Release of a name that has no record")
}

func extendAfterExpiry(e *env) {
	name := e.name()
	g := e.expired(name)
	at := e.left(name)
	_, err := e.extend(e.a, g, long)
	e.lost(err, "Extend after expiry")
	e.unchanged(at, name, "an extension after expiry")
	e.release(e.b, e.must(e.b, claim(name, long)), 0)
}

func extendAfterRelease(e *env) {
	name := e.name()
	g := e.must(e.a, claim(name, long))
	e.release(e.a, g, 0)
	at := e.left(name)
	e.untilStore(name, at.LockedUntil)
	_, err := e.extend(e.a, g, long)
	e.lost(err, "Extend after release")
	e.unchanged(at, name, "an extension after release")
}

func extendRemoved(e *env) {
	name := e.name()
	g := e.must(e.a, claim(name, long))
	if err := e.h.Remove(e.ctx, name); err != nil {
		e.Fatalf("Harness.Remove: %v", err)
	}
	e.lost(e.a.Release(e.ctx, g, 0), "Release of a removed record")
	if e.caps.Set.Has(core.CapExtend) {
		_, err := e.extend(e.a, g, long)
		e.lost(err, "Extend of a removed record")
	}
	if at := e.peek(name); at.Found {
		e.Errorf("the removed record is back: %s", at.Raw)
	}
}

func extendRepeated(e *env) {
	name := e.name()
	first := e.must(e.a, claim(name, long))
	g := first
	for _, d := range []time.Duration{2 * long, 3 * long, 90 * time.Second} {
		before := e.peek(name).StoreTime
		var err error
		if g, err = e.extend(e.a, g, d); err != nil {
			e.Fatalf("Extend of a live grant: %v", err)
		}
		at := e.found(name)
		res := e.caps.Resolution
		if at.LockedUntil.Before(before.Add(d-res)) || at.LockedUntil.After(at.StoreTime.Add(d+e.ahead())) {
			e.Errorf("extended by %v until %v, want %v after a time between %v and %v", d, at.LockedUntil, d, before, at.StoreTime)
		}
		if e.caps.Set.Has(core.CapTimes) && !g.LockedUntil.Equal(at.LockedUntil) {
			e.Errorf("Extend returned %v, the record says %v", g.LockedUntil, at.LockedUntil)
		}
		if g.Token != first.Token || g.Fence != first.Fence || !g.LockedAt.Equal(first.LockedAt) {
			e.Errorf("Extend made another grant of it: fence %d since %v, was %d since %v", g.Fence, g.LockedAt, first.Fence, first.LockedAt)
		}
		e.refused(e.b, name, "the lock was extended")
	}
	e.release(e.a, g, 0)
}

func extendShorter(e *env) {
	name := e.name()
	g := e.must(e.a, claim(name, long))
	d := e.short()
	before := e.peek(name).StoreTime
	g, err := e.extend(e.a, g, d)
	if err != nil {
		e.Fatalf("Extend of a live grant: %v", err)
	}
	free := g.LockedUntil
	if free.IsZero() {
		free = before.Add(d)
	}
	e.release(e.b, e.freesAt(e.b, name, free), 0)
}

func recordRemoved(e *env) {
	name := e.name()
	e.must(e.a, claim(name, long))
	if err := e.h.Remove(e.ctx, name); err != nil {
		e.Fatalf("Harness.Remove: %v", err)
	}
	g := e.must(e.a, claim(name, long)) // by the client that had seen the record
	e.refused(e.b, name, "it was acquired again")
	e.release(e.a, g, 0)
}

func longLabel(e *env) {
	for _, label := range []string{strings.Repeat("x", 5000), strings.Repeat("ä", 300), "x" + strings.Repeat("😀", 200)} {
		name := e.name()
		c := claim(name, long)
		c.Owner = label
		g := e.must(e.a, c)
		held := e.held(e.b, name, "a holder with a long label has it")
		if e.caps.Set.Has(core.CapHolder) && (held.Owner == "" || !strings.HasPrefix(label, held.Owner)) {
			e.Errorf("the holder's label came back as %q, want the beginning of it", held.Owner)
		}
		e.release(e.a, g, 0)
	}
}
