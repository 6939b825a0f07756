package conformancetest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shedbolt/shedbolt/conformancetest"
	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/internal/memtest"
	"github.com/shedbolt/shedbolt/providers/memory"
)

func TestMain(m *testing.M) {
	// Cases of mutants wait most of the time: let many wait together. Those that
	// can't end, because what they wait for never comes, need not wait long.
	flag.Parse()
	conformancetest.SetCaseLimit(15 * time.Second)
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// base is the provider that a mutant breaks: memory, or memory behind something
// that fails.
type base struct {
	acquire func(context.Context, core.Claim) (core.Grant, error)
	release func(context.Context, core.Grant, time.Duration) error
	extend  func(context.Context, core.Grant, time.Duration) (core.Grant, error)
}

// client is a memory provider in which a mutant replaces calls.
type client struct {
	*memory.Provider
	base    base
	caps    core.Capabilities
	off     time.Duration                       // of the client's clock
	see     func() (earliest, latest time.Time) // the store's clock, if it is blurred
	acquire func(context.Context, core.Claim) (core.Grant, error)
	release func(context.Context, core.Grant, time.Duration) error
	extend  func(context.Context, core.Grant, time.Duration) (core.Grant, error)
	inspect func(context.Context, string) (core.Record, bool, error)
	list    func(context.Context) iter.Seq2[core.Record, error]
	force   func(context.Context, core.Record) error
}

func newClient(store *memory.Store) *client {
	p := memory.New(store)
	c := &client{Provider: p, caps: p.Capabilities(), inspect: p.Inspect, list: p.List, force: p.ForceRelease}
	c.base = base{p.Acquire, p.Release, p.Extend}
	c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) { return c.base.acquire(ctx, cl) }
	c.release = func(ctx context.Context, g core.Grant, d time.Duration) error { return c.base.release(ctx, g, d) }
	c.extend = func(ctx context.Context, g core.Grant, d time.Duration) (core.Grant, error) {
		return c.base.extend(ctx, g, d)
	}
	return c
}

func (c *client) Capabilities() core.Capabilities { return c.caps }
func (c *client) Acquire(ctx context.Context, cl core.Claim) (core.Grant, error) {
	return c.acquire(ctx, cl)
}

func (c *client) Release(ctx context.Context, g core.Grant, d time.Duration) error {
	return c.release(ctx, g, d)
}

func (c *client) Extend(ctx context.Context, g core.Grant, d time.Duration) (core.Grant, error) {
	return c.extend(ctx, g, d)
}

func (c *client) Inspect(ctx context.Context, name string) (core.Record, bool, error) {
	return c.inspect(ctx, name)
}
func (c *client) List(ctx context.Context) iter.Seq2[core.Record, error] { return c.list(ctx) }
func (c *client) ForceRelease(ctx context.Context, r core.Record) error  { return c.force(ctx, r) }

// record reads the store beside the mutant.
func (c *client) record(name string) (core.Record, bool) {
	r, found, err := c.Provider.Inspect(context.Background(), name)
	if err != nil {
		panic(err)
	}
	return r, found
}

// mutant is one broken provider and the cases that must fail, exactly.
type mutant struct {
	name string
	// harm breaks a fresh client.
	harm  func(c *client)
	fails []string
	// may lists cases that depend on the schedule, or on which of several faults
	// is seen first.
	may []string
	// loose allows any other case to fail as well: which ones meet the instant
	// at which the fault shows is chance.
	loose bool
	// coarse gives the store a clock of 1 ms.
	coarse bool
	// blurred makes the provider one that sees the store's clock as an interval;
	// harm is then for its base.
	blurred bool
	// net breaks the client that reaches the store through a proxy.
	net netHarm
}

var mutants = []mutant{
	{name: "none", harm: func(*client) {}},
	{name: "none, on a coarse clock", harm: func(*client) {}, coarse: true},
	{name: "none, on an interval clock", harm: func(*client) {}, blurred: true},
	{
		name: "takes over at the latest time", blurred: true,
		harm: func(c *client) {
			see := c.see
			c.see = func() (earliest, latest time.Time) {
				_, latest = see()
				return latest, latest
			}
		},
		fails: []string{"expiry/at_lock_until", "minimum_hold/held_until_at_least", "shared_format/reads_java_record"},
		loose: true, // whatever takes a lock that is short
	},
	{
		name: "counts from the earliest time", blurred: true,
		harm: func(c *client) {
			see := c.see
			c.see = func() (earliest, latest time.Time) {
				earliest, _ = see()
				return earliest, earliest
			}
		},
		fails: []string{"expiry/lock_until_is_store_time", "ownership/extend_repeated"},
		loose: true,
	},
	{
		name: "sees less than it declares", blurred: true,
		harm: func(c *client) {
			see := c.see
			c.see = func() (earliest, latest time.Time) {
				earliest, latest = see()
				return earliest.Add(-4 * blur), latest.Add(4 * blur)
			}
		},
		fails: []string{"expiry/at_lock_until", "expiry/lock_until_is_store_time", "minimum_hold/held_until_at_least", "ownership/extend_shorter"},
		loose: true, // whatever waits for a lock to be free
	},
	{
		name: "is moved by the client's clock", blurred: true,
		harm: func(c *client) {
			see := c.see
			c.see = func() (earliest, latest time.Time) {
				earliest, latest = see()
				return earliest.Add(c.off), latest.Add(c.off)
			}
		},
		fails: []string{"store_time/client_clock_ahead", "store_time/client_clock_behind"},
	},
	{
		name: "releases by name only",
		harm: func(c *client) {
			c.release = func(ctx context.Context, g core.Grant, d time.Duration) error {
				if r, found := c.record(g.Name); found && r.Held() {
					g.Owner, g.Token = core.ParseHolder(r.LockedBy)
				}
				return c.base.release(ctx, g, d)
			}
		},
		fails: []string{
			"ownership/stale_release_keeps_successor", "ownership/stale_release_with_at_least", "ownership/same_label",
			"ownership/release_by_token",
		},
		may: []string{"exclusion/linearizable", "inspection/force_release"},
	},
	{
		name: "ignores the minimum hold",
		harm: func(c *client) {
			c.release = func(ctx context.Context, g core.Grant, _ time.Duration) error { return c.base.release(ctx, g, 0) }
		},
		fails: []string{
			"minimum_hold/held_until_at_least", "minimum_hold/at_least_equals_at_most", "minimum_hold/failed_panicked_goexit",
			"minimum_hold/anchor_after_extend", "store_time/client_clock_skew_release",
			"store_time/client_clock_ahead", "store_time/client_clock_behind",
		},
	},
	{
		name: "holds at least from the release",
		harm: func(c *client) {
			c.release = func(ctx context.Context, g core.Grant, d time.Duration) error {
				if r, found := c.record(g.Name); found && d > 0 {
					d += r.StoreTime.Sub(r.LockedAt)
				}
				return c.base.release(ctx, g, d)
			}
		},
		fails: []string{"minimum_hold/job_longer_than_at_least", "minimum_hold/anchor_after_extend"},
		may: []string{
			"minimum_hold/held_until_at_least", "minimum_hold/at_least_equals_at_most", "minimum_hold/failed_panicked_goexit",
			"store_time/client_clock_skew_release", "store_time/client_clock_ahead", "store_time/client_clock_behind",
		},
	},
	{
		name: "releases what has expired",
		harm: func(c *client) {
			c.release = func(ctx context.Context, g core.Grant, d time.Duration) error {
				if r, found := c.record(g.Name); found && !r.Held() && r.LockedBy == g.Holder() {
					r.LockedUntil = r.StoreTime
					c.Store().Put(r)
					return nil
				}
				return c.base.release(ctx, g, d)
			}
		},
		fails: []string{"inspection/force_release", "ownership/double_release", "ownership/release_after_expiry"},
		may:   []string{"exclusion/linearizable"},
	},
	{
		name: "needs its own state to release",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				g, err := c.base.acquire(ctx, cl)
				g.State = "version"
				return g, err
			}
			c.release = func(ctx context.Context, g core.Grant, d time.Duration) error {
				if g.State == nil {
					return core.ErrLost
				}
				return c.base.release(ctx, g, d)
			}
		},
		fails: []string{"ownership/release_by_token", "expiry/late_grant"},
		may:   []string{"contexts_and_faults/cancelled_during", "expiry/round_up"},
	},
	{
		name: "deletes the record on release",
		harm: func(c *client) {
			c.release = func(ctx context.Context, g core.Grant, d time.Duration) error {
				err := c.base.release(ctx, g, d)
				if err == nil && d == 0 {
					c.Store().Remove(g.Name)
				}
				return err
			}
		},
		fails: []string{"ownership/double_release", "ownership/extend_after_release", "inspection/inspect", "inspection/list", "shared_format/record_kept"},
		may:   []string{"expiry/loss_is_told", "exclusion/counter_fuzz", "exclusion/linearizable"},
	},
	{
		name: "releases all names of the holder",
		harm: func(c *client) {
			c.release = func(ctx context.Context, g core.Grant, d time.Duration) error {
				mine.Lock()
				defer mine.Unlock()
				for _, other := range mine.grants[c] {
					if other.Name != g.Name {
						_ = c.base.release(ctx, other, 0)
					}
				}
				return c.base.release(ctx, g, d)
			}
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				g, err := c.base.acquire(ctx, cl)
				mine.Lock()
				defer mine.Unlock()
				if err == nil {
					mine.grants[c] = append(mine.grants[c], g)
				}
				return g, err
			}
		},
		fails: []string{"exclusion/names_are_independent", "names/distinct", "contexts_and_faults/concurrent_use"},
		may:   []string{"exclusion/counter_fuzz", "store_time/client_clock_skew"},
	},
	{
		name: "extends by name only",
		harm: func(c *client) {
			c.extend = func(ctx context.Context, g core.Grant, d time.Duration) (core.Grant, error) {
				theirs := g
				if r, found := c.record(g.Name); found && r.Held() {
					theirs.Owner, theirs.Token = core.ParseHolder(r.LockedBy)
				}
				theirs, err := c.base.extend(ctx, theirs, d)
				g.LockedUntil = theirs.LockedUntil
				return g, err
			}
		},
		fails: []string{"ownership/stale_extend", "ownership/same_label"},
		may:   []string{"exclusion/linearizable"},
	},
	{
		name: "extends what has expired",
		harm: func(c *client) {
			c.extend = func(ctx context.Context, g core.Grant, d time.Duration) (core.Grant, error) {
				if r, found := c.record(g.Name); found && !r.Held() && r.LockedBy == g.Holder() {
					r.LockedUntil = r.StoreTime.Add(d)
					c.Store().Put(r)
					g.LockedUntil = r.LockedUntil
					return g, nil
				}
				return c.base.extend(ctx, g, d)
			}
		},
		fails: []string{"ownership/extend_after_expiry", "ownership/extend_after_release"},
		may:   []string{"exclusion/linearizable"},
	},
	{
		name: "makes a record when it extends",
		harm: func(c *client) {
			c.extend = func(ctx context.Context, g core.Grant, d time.Duration) (core.Grant, error) {
				if _, found := c.record(g.Name); !found {
					return c.base.acquire(ctx, core.Claim{Name: g.Name, Owner: g.Owner, Token: g.Token, AtMostFor: d})
				}
				return c.base.extend(ctx, g, d)
			}
		},
		fails: []string{"ownership/extend_removed"},
	},
	{
		name: "extends from the old end",
		harm: func(c *client) {
			c.extend = func(ctx context.Context, g core.Grant, d time.Duration) (core.Grant, error) {
				if r, found := c.record(g.Name); found && r.Held() {
					d += r.Remaining()
				}
				return c.base.extend(ctx, g, d)
			}
		},
		fails: []string{"ownership/extend_repeated", "ownership/extend_shorter", "store_time/client_clock_skew_release"},
	},
	{
		name: "moves the time of acquisition when it extends",
		harm: func(c *client) {
			c.extend = func(ctx context.Context, g core.Grant, d time.Duration) (core.Grant, error) {
				g, err := c.base.extend(ctx, g, d)
				if r, found := c.record(g.Name); err == nil && found {
					r.LockedAt = r.StoreTime
					c.Store().Put(r)
				}
				return g, err
			}
		},
		fails: []string{"inspection/force_release", "minimum_hold/anchor_after_extend"},
		may:   []string{"ownership/extend_repeated"},
	},
	{
		name: "trusts the client's clock",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				now := time.Now().UTC().Round(0)
				r, found := c.record(cl.Name)
				if found && r.LockedBy != cl.Holder() && r.LockedUntil.After(now) {
					return core.Grant{}, r.HeldError()
				}
				c.Store().Remove(cl.Name)
				g, err := c.base.acquire(ctx, cl)
				if err != nil {
					return g, err
				}
				g.LockedAt, g.LockedUntil = now, now.Add(cl.AtMostFor)
				c.Store().Put(core.Record{Name: cl.Name, LockedBy: cl.Holder(), LockedAt: now, LockedUntil: g.LockedUntil, Fence: g.Fence})
				return g, nil
			}
		},
		fails: []string{"expiry/lock_until_is_store_time", "store_time/client_clock_skew", "store_time/client_clock_skew_release"},
		loose: true, // most of the suite
	},
	{
		name: "frees early",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				if r, found := c.record(cl.Name); found && r.Held() && r.Remaining() < 250*time.Millisecond {
					c.Store().Remove(cl.Name)
				}
				return c.base.acquire(ctx, cl)
			}
		},
		fails: []string{
			"expiry/at_lock_until", "minimum_hold/held_until_at_least", "minimum_hold/at_least_equals_at_most", "minimum_hold/failed_panicked_goexit",
			"minimum_hold/anchor_after_extend", "ownership/extend_shorter", "shared_format/reads_java_record", "store_time/client_clock_skew_release",
		},
		loose: true, // whatever takes a lock that is short
	},
	{
		name: "frees late",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				if r, found := c.record(cl.Name); found && !r.Held() && r.StoreTime.Sub(r.LockedUntil) < 300*time.Millisecond {
					return core.Grant{}, r.HeldError()
				}
				return c.base.acquire(ctx, cl)
			}
		},
		fails: []string{"exclusion/free_after_release", "expiry/at_lock_until", "minimum_hold/held_until_at_least"},
		loose: true, // whatever takes a lock again soon
	},
	{
		name:   "is not free at equality",
		coarse: true,
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				if r, found := c.record(cl.Name); found && r.LockedUntil.Equal(r.StoreTime) {
					return core.Grant{}, r.HeldError()
				}
				return c.base.acquire(ctx, cl)
			}
		},
		fails: []string{"exclusion/free_after_release"},
		loose: true,
	},
	{
		name: "keeps the first absolute end",
		harm: func(c *client) {
			ends := map[string]time.Time{}
			var mu sync.Mutex
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				mu.Lock()
				defer mu.Unlock()
				end, again := ends[cl.Name]
				now := c.Store().Now()
				if !again {
					ends[cl.Name] = now.Add(cl.AtMostFor)
				} else if end.After(now) {
					cl.AtMostFor = min(cl.AtMostFor, end.Sub(now))
				} else if _, found := c.record(cl.Name); found {
					cl.AtMostFor = min(cl.AtMostFor, time.Millisecond)
				}
				return c.base.acquire(ctx, cl)
			}
		},
		fails: []string{"exclusion/reused_lock_value"},
		loose: true, // whatever takes a lock again
	},
	{
		name: "says held on errors",
		harm: func(c *client) {
			unbroken := c.base.acquire
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				g, err := unbroken(ctx, cl)
				if err != nil && ctx.Err() == nil && !errors.Is(err, core.ErrHeld) {
					err = &core.HeldError{Name: cl.Name}
				}
				return g, err
			}
		},
		fails: []string{
			"contexts_and_faults/store_down", "contexts_and_faults/read_only", "contexts_and_faults/no_table",
			"contexts_and_faults/no_permission", "contexts_and_faults/other_breakage",
		},
	},
	{
		name: "says held when its pool is busy",
		harm: func(c *client) {
			unbroken := c.base.acquire
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				g, err := unbroken(ctx, cl)
				if errors.Is(err, context.DeadlineExceeded) {
					err = &core.HeldError{Name: cl.Name}
				}
				return g, err
			}
		},
		fails: []string{"contexts_and_faults/pool_of_one"},
		may:   []string{"contexts_and_faults/cancelled_during"},
	},
	{
		name: "fails when it loses a race",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				key := [2]any{c.Store(), cl.Name}
				if _, busy := racing.LoadOrStore(key, true); busy {
					return core.Grant{}, errors.New("deadlock found")
				}
				defer racing.Delete(key)
				time.Sleep(100 * time.Microsecond)
				return c.base.acquire(ctx, cl)
			}
		},
		fails: []string{"exclusion/first_acquire_race", "exclusion/expired_acquire_race", "exclusion/herd", "exclusion/counter_fuzz"},
		may:   []string{"exclusion/linearizable"},
	},
	{
		name: "grants to two in a race",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				r, found := c.record(cl.Name)
				if found && r.Held() {
					return c.base.acquire(ctx, cl)
				}
				time.Sleep(100 * time.Microsecond) // between the look and the write
				if now, ok := c.record(cl.Name); ok && now.Held() {
					c.Store().Remove(cl.Name)
				}
				return c.base.acquire(ctx, cl)
			}
		},
		fails: []string{"exclusion/first_acquire_race", "exclusion/expired_acquire_race", "exclusion/herd", "exclusion/counter_fuzz"},
		may:   []string{"exclusion/linearizable"},
	},
	{
		name: "serves one call at a time",
		harm: func(c *client) {
			var busy sync.Mutex
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				if !busy.TryLock() {
					return core.Grant{}, errors.New("connection is busy")
				}
				defer busy.Unlock()
				time.Sleep(100 * time.Microsecond)
				return c.base.acquire(ctx, cl)
			}
		},
		fails: []string{
			"contexts_and_faults/concurrent_use", "exclusion/first_acquire_race", "exclusion/expired_acquire_race", "exclusion/herd",
			"exclusion/counter_fuzz",
		},
		may: []string{"exclusion/linearizable"},
	},
	{
		name: "refuses a fresh client's first try",
		harm: func(c *client) {
			first := true
			var mu sync.Mutex
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				mu.Lock()
				defer mu.Unlock()
				if r, found := c.record(cl.Name); first && found && !r.Held() && ctx.Err() == nil {
					first = false
					return core.Grant{}, r.HeldError()
				}
				first = false
				return c.base.acquire(ctx, cl)
			}
		},
		fails: []string{
			"exclusion/crashed_holder_single_try", "exclusion/free_after_release", "ownership/stale_release_keeps_successor",
			"ownership/stale_release_with_at_least", "ownership/stale_extend", "ownership/extend_after_expiry", "minimum_hold/job_longer_than_at_least",
			"contexts_and_faults/release_after_cancel", "fencing/fence_increases", "shared_format/reads_java_record",
			"ownership/double_release", "expiry/late_grant", "contexts_and_faults/reply_lost_release",
			"contexts_and_faults/cancelled_under_way", "contexts_and_faults/reply_never_comes",
		},
		may: []string{"expiry/loss_is_told", "store_time/client_clock_skew", "contexts_and_faults/cancelled_during", "inspection/force_release"},
	},
	{
		name: "remembers that a record exists",
		harm: func(c *client) {
			var known sync.Map
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				if _, found := c.record(cl.Name); !found {
					if _, cached := known.Load(cl.Name); cached {
						return core.Grant{}, &core.HeldError{Name: cl.Name}
					}
				}
				g, err := c.base.acquire(ctx, cl)
				if err == nil {
					known.Store(cl.Name, true)
				}
				return g, err
			}
		},
		fails: []string{"ownership/record_removed_by_operator"},
	},
	{
		name: "is not idempotent by token",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				if r, found := c.record(cl.Name); found && r.Held() {
					return core.Grant{}, r.HeldError()
				}
				return c.base.acquire(ctx, cl)
			}
		},
		fails: []string{"exclusion/idempotent_by_token"},
		may:   []string{"exclusion/first_acquire_race", "exclusion/herd", "exclusion/expired_acquire_race"},
	},
	{
		name: "is re-entrant by label",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				if r, found := c.record(cl.Name); found && r.Held() && r.Owner == cl.Owner && cl.Owner == "pod-1" {
					_, cl.Token = core.ParseHolder(r.LockedBy)
				}
				return c.base.acquire(ctx, cl)
			}
		},
		fails: []string{"ownership/same_label"},
	},
	{
		name: "lets its own client in again",
		harm: func(c *client) {
			var mu sync.Mutex
			last := map[string]core.Grant{}
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				mu.Lock()
				defer mu.Unlock()
				if g, ok := last[cl.Name]; ok && g.Owner != cl.Owner && g.Owner == "holder-label" {
					return c.base.acquire(ctx, core.Claim{Name: g.Name, Owner: g.Owner, Token: g.Token, AtMostFor: cl.AtMostFor})
				}
				g, err := c.base.acquire(ctx, cl)
				if err == nil {
					last[cl.Name] = g
				}
				return g, err
			}
		},
		fails: []string{"exclusion/acquire_then_held"},
	},
	{
		name: "losers write",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				g, err := c.base.acquire(ctx, cl)
				if r, found := c.record(cl.Name); errors.Is(err, core.ErrHeld) && found {
					r.Fence++ // as a row's version would
					c.Store().Put(r)
				}
				return g, err
			}
		},
		fails: []string{
			"exclusion/acquire_then_held", "exclusion/herd", "ownership/same_label", "shared_format/reads_java_record",
		},
		may: []string{"exclusion/counter_fuzz", "exclusion/linearizable", "exclusion/idempotent_by_token"},
	},
	{
		name: "does not know the holder",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				g, err := c.base.acquire(ctx, cl)
				if errors.Is(err, core.ErrHeld) {
					err = &core.HeldError{Name: cl.Name}
				}
				return g, err
			}
		},
		fails: []string{"exclusion/acquire_then_held", "ownership/long_label", "capabilities/declared_both_ways", "shared_format/reads_java_record"},
	},
	{
		name: "declares less than it has",
		harm: func(c *client) { c.caps.Set &^= core.CapExtend },
		fails: []string{
			"capabilities/declared_both_ways",
		},
	},
	{
		name: "speaks local time",
		harm: func(c *client) {
			zone := time.FixedZone("here", 9*3600)
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				g, err := c.base.acquire(ctx, cl)
				g.LockedAt, g.LockedUntil = g.LockedAt.In(zone), g.LockedUntil.In(zone)
				return g, err
			}
		},
		fails: []string{"capabilities/declared_both_ways"},
	},
	{
		name: "truncates names",
		harm: func(c *client) {
			c.rename(func(name string) string { return string([]rune(name)[:min(32, len([]rune(name)))]) })
		},
		fails: []string{"names/long_name_never_truncated"},
		may:   []string{"names/length", "inspection/list_many"},
	},
	{
		name:  "folds case",
		harm:  func(c *client) { c.rename(strings.ToLower) },
		fails: []string{"names/length", "names/distinct"},
	},
	{
		name:  "pads names",
		harm:  func(c *client) { c.rename(func(name string) string { return strings.TrimRight(name, ". /") }) },
		fails: []string{"names/distinct"},
	},
	{
		name:  "nests paths",
		harm:  func(c *client) { c.rename(path.Clean) },
		fails: []string{"names/distinct"},
	},
	{
		name: "counts bytes",
		harm: func(c *client) {
			c.rename(func(name string) string { return strings.ToValidUTF8(name[:min(64, len(name))], "") })
		},
		fails: []string{"names/length", "names/long_name_never_truncated"},
	},
	{
		name: "rounds down",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				cl.AtMostFor = cl.AtMostFor.Truncate(time.Millisecond)
				return c.base.acquire(ctx, cl)
			}
		},
		fails: []string{"expiry/round_up"},
	},
	{
		name: "takes a short time for ever",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				if cl.AtMostFor <= time.Millisecond {
					cl.AtMostFor = core.MaxDuration
				}
				return c.base.acquire(ctx, cl)
			}
			c.release = func(ctx context.Context, g core.Grant, d time.Duration) error {
				if r, found := c.record(g.Name); found && r.Remaining() > core.MaxDuration/2 && g.LockedUntil.IsZero() {
					return core.ErrLost
				}
				return c.base.release(ctx, g, d)
			}
		},
		fails: []string{"expiry/round_up"},
	},
	{
		name: "overflows",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				const width = 1 << 31 * time.Millisecond // about 25 days, in 32 bits of milliseconds
				if cl.AtMostFor >= width {
					cl.AtMostFor %= width
				}
				return c.base.acquire(ctx, cl)
			}
		},
		fails: []string{"expiry/ten_years", "expiry/round_up"},
	},
	{
		name: "measures from the wrong end",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				if cl.AtMostFor == 90*time.Second {
					cl.AtMostFor += 30 * time.Second
				}
				return c.base.acquire(ctx, cl)
			}
		},
		fails: []string{"expiry/lock_until_is_store_time", "store_time/client_clock_skew"},
	},
	{
		name: "gives every grant one fence",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				g, err := c.base.acquire(ctx, cl)
				g.Fence = 7
				return g, err
			}
		},
		fails: []string{"fencing/fence_increases", "fencing/fence_after_removal", "expiry/at_lock_until", "inspection/inspect", "exclusion/linearizable"},
	},
	{
		name: "counts fences in the record",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				before, found := c.record(cl.Name)
				g, err := c.base.acquire(ctx, cl)
				if err != nil || (found && before.LockedBy == cl.Holder()) {
					return g, err
				}
				r, _ := c.record(cl.Name)
				g.Fence = before.Fence + 1
				r.Fence = g.Fence
				c.Store().Put(r)
				return g, nil
			}
		},
		fails: []string{"fencing/fence_after_removal"},
		may: []string{
			"exclusion/linearizable", "exclusion/first_acquire_race", "exclusion/expired_acquire_race", "exclusion/herd",
			"exclusion/counter_fuzz",
		},
	},
	{
		name: "ignores contexts",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				return c.base.acquire(context.WithoutCancel(ctx), cl)
			}
		},
		fails: []string{"contexts_and_faults/cancelled_before"},
		may:   []string{"contexts_and_faults/pool_of_one", "contexts_and_faults/cancelled_during"},
	},
	{
		name: "hides that a cancelled write may have happened",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				g, err := c.base.acquire(ctx, cl)
				if deadline, ok := ctx.Deadline(); err == nil && ok && time.Until(deadline) < 300*time.Millisecond { // core has added to it
					<-ctx.Done()
					return core.Grant{}, ctx.Err() // and not Uncertain
				}
				return g, err
			}
		},
		fails: []string{"contexts_and_faults/cancelled_during"},
	},
	{
		name: "can't release after a cancellation",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				g, err := c.base.acquire(ctx, cl)
				g.State = ctx // keeps the context of the attempt
				return g, err
			}
			c.release = func(ctx context.Context, g core.Grant, d time.Duration) error {
				if attempt, ok := g.State.(context.Context); ok && attempt.Err() != nil {
					return attempt.Err()
				}
				return c.base.release(ctx, g, d)
			}
		},
		fails: []string{"contexts_and_faults/release_after_cancel"},
		loose: true, // the context of an attempt also ends with the attempt
	},
	{
		name: "leaks a goroutine per call",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				go time.Sleep(time.Minute)
				return c.base.acquire(ctx, cl)
			}
		},
		fails: []string{"store_time/client_clock_skew", "store_time/client_clock_skew_release", "contexts_and_faults/nothing_leaks"},
	},
	{
		name: "forces by name only",
		harm: func(c *client) {
			c.force = func(ctx context.Context, r core.Record) error {
				if now, found := c.record(r.Name); found {
					r = now
				}
				return c.Provider.ForceRelease(ctx, r)
			}
		},
		fails: []string{"inspection/force_release"},
	},
	{
		name: "lists the first page only",
		harm: func(c *client) {
			c.list = func(ctx context.Context) iter.Seq2[core.Record, error] {
				return func(yield func(core.Record, error) bool) {
					n := 0
					for r, err := range c.Provider.List(ctx) {
						if n++; n > 1000 || !yield(r, err) {
							return
						}
					}
				}
			}
		},
		fails: []string{"inspection/list_many"},
		may:   []string{"inspection/list"},
	},
	{
		name: "lists twice",
		harm: func(c *client) {
			c.list = func(ctx context.Context) iter.Seq2[core.Record, error] {
				return func(yield func(core.Record, error) bool) {
					for r, err := range c.Provider.List(ctx) {
						if !yield(r, err) || (err == nil && !yield(r, err)) {
							return
						}
					}
				}
			}
		},
		fails: []string{"inspection/list", "inspection/list_many"},
	},
	{
		name: "inspects on the client's clock",
		harm: func(c *client) {
			c.inspect = func(ctx context.Context, name string) (core.Record, bool, error) {
				r, found, err := c.Provider.Inspect(ctx, name)
				r.StoreTime = time.Now()
				return r, found, err
			}
		},
		fails: []string{"inspection/inspect"},
	},
	{
		name: "does not know ShedLock's records",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				if r, found := c.record(cl.Name); found {
					if _, token := core.ParseHolder(r.LockedBy); token == "" {
						c.Store().Remove(cl.Name)
					}
				}
				return c.base.acquire(ctx, cl)
			}
		},
		fails: []string{"shared_format/reads_java_record"},
	},
	{
		name: "cuts the token",
		harm: func(c *client) {
			c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				g, err := c.base.acquire(ctx, cl)
				if r, found := c.record(cl.Name); err == nil && found && len(cl.Owner) > 500 {
					r.LockedBy = cl.Owner
					c.Store().Put(r)
				}
				return g, err
			}
		},
		fails: []string{"shared_format/locked_by", "ownership/long_label"},
	},
	{name: "takes a lost answer for held", net: netHarm{heldOnError: true}, fails: []string{
		"contexts_and_faults/reply_lost_acquire", "contexts_and_faults/black_hole", "contexts_and_faults/connections_cut",
		"contexts_and_faults/reply_never_comes",
	}},
	{name: "does not mark what may have been done", net: netHarm{certain: true}, fails: []string{
		"contexts_and_faults/reply_lost_acquire", "contexts_and_faults/reply_lost_release", "contexts_and_faults/reply_lost_extend", "contexts_and_faults/reply_never_comes",
	}},
	{name: "takes a lost answer for a lost lock", net: netHarm{lostOnError: true}, fails: []string{
		"contexts_and_faults/reply_lost_extend", "contexts_and_faults/black_hole",
	}},
	{name: "takes a lost look for a release", net: netHarm{releasesUnasked: true}, fails: []string{
		"contexts_and_faults/reply_lost_release", "contexts_and_faults/round_trips",
	}, may: []string{
		"contexts_and_faults/reply_lost_acquire", "contexts_and_faults/reply_lost_extend", "contexts_and_faults/black_hole",
	}},
	{name: "never reconnects", net: netHarm{neverReconnects: true}, fails: []string{
		"contexts_and_faults/reply_lost_acquire", "contexts_and_faults/reply_lost_release", "contexts_and_faults/reply_lost_extend",
		"contexts_and_faults/black_hole", "contexts_and_faults/connections_cut", "contexts_and_faults/reply_never_comes",
	}},
	{name: "cuts calls off and calls them undone", net: netHarm{impatient: true}, fails: []string{
		"contexts_and_faults/cancelled_under_way", "contexts_and_faults/reply_lost_acquire", "contexts_and_faults/reply_lost_release", "contexts_and_faults/reply_lost_extend", "contexts_and_faults/reply_never_comes",
	}},
	{name: "does not mark a release that may have been done", net: netHarm{certainOf: "release"}, fails: []string{"contexts_and_faults/reply_lost_release"}},
	{name: "does not mark an extension that may have been done", net: netHarm{certainOf: "extend"}, fails: []string{"contexts_and_faults/reply_lost_extend"}},
	{name: "does not mark a time-out", net: netHarm{certainInTime: true}, fails: []string{"contexts_and_faults/reply_never_comes"}},
	{name: "bypasses the proxy", net: netHarm{bypasses: true}, fails: []string{
		"contexts_and_faults/round_trips", "contexts_and_faults/black_hole", "contexts_and_faults/connections_cut",
	}, may: []string{"contexts_and_faults/cancelled_under_way"}},
	{name: "looks before each call", net: netHarm{looksFirst: true}, fails: []string{"contexts_and_faults/round_trips"}},
}

// mine and racing are what some mutants share between their clients.
var (
	mine = struct {
		sync.Mutex
		grants map[*client][]core.Grant
	}{grants: map[*client][]core.Grant{}}
	racing sync.Map
)

// rename makes every call use another name, as a backend does that folds, trims
// or cuts.
func (c *client) rename(f func(string) string) {
	c.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
		cl.Name = f(cl.Name)
		return c.base.acquire(ctx, cl)
	}
	c.release = func(ctx context.Context, g core.Grant, d time.Duration) error {
		g.Name = f(g.Name)
		return c.base.release(ctx, g, d)
	}
	c.extend = func(ctx context.Context, g core.Grant, d time.Duration) (core.Grant, error) {
		g.Name = f(g.Name)
		return c.base.extend(ctx, g, d)
	}
}

// unproven lists the cases that no broken provider can fail, because what they
// check is done by core before or after the provider's part.
var unproven = map[string]string{
	"expiry/bounds":                  "core refuses before it calls the provider",
	"names/refused":                  "core refuses before it calls the provider",
	"capabilities/extend_undeclared": "it runs only where the capability is not declared",
}

func (m mutant) harness(tb testing.TB) conformancetest.Harness {
	tb.Helper()
	clock := memtest.ServerClock(time.Hour)
	if m.coarse {
		clock = func() time.Time { return memtest.ServerClock(time.Hour)().Truncate(time.Millisecond) }
	}
	store := memory.NewStore(clock)
	h := memtest.Harness(store)
	h.Name = m.name
	open := func(prepare func(*client)) *client {
		c := newClient(store)
		if m.coarse {
			c.caps.Resolution = time.Millisecond
		}
		if m.blurred {
			c.blur()
		}
		prepare(c)
		if m.harm != nil {
			m.harm(c)
		}
		return c
	}
	h.Open = func(testing.TB) core.Provider { return open(func(*client) {}) }
	h.OpenSkewed = func(_ testing.TB, off time.Duration) core.Provider { return open(func(c *client) { c.off = off }) }
	if !m.blurred { // what is served sees the clock
		h.Server = serveNet(tb, store)
	}
	h.Through = func(tb testing.TB, addr string) core.Provider {
		tb.Helper()
		if m.net.bypasses {
			addr = h.Server
		}
		return newNetClient(tb, addr, memory.New(store).Capabilities(), m.net)
	}
	h.RoundTrips = conformancetest.RoundTrips{Won: 1, Refused: 1, First: 1, Release: 1, Extend: 1}
	h.Broken = map[string]conformancetest.Breakage{}
	for _, how := range []string{"down", "read_only", "no_table", "no_permission", "throttled"} {
		h.Broken[how] = conformancetest.Breakage{Open: func(testing.TB) (core.Provider, func()) {
			var mended sync.Map
			fails := func() error {
				if _, ok := mended.Load("yes"); ok {
					return nil
				}
				return errors.New("the store is " + how)
			}
			c := open(func(c *client) {
				c.base.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
					if err := fails(); err != nil {
						return core.Grant{}, err
					}
					return c.Provider.Acquire(ctx, cl)
				}
				c.base.extend = func(ctx context.Context, g core.Grant, d time.Duration) (core.Grant, error) {
					if err := fails(); err != nil {
						return core.Grant{}, err
					}
					return c.Provider.Extend(ctx, g, d)
				}
			})
			return c, func() { mended.Store("yes", true) }
		}}
	}
	h.PoolOfOne = func(testing.TB) (core.Provider, func(testing.TB) func()) {
		pool := make(chan struct{}, 1)
		c := open(func(c *client) {
			c.base.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
				select {
				case pool <- struct{}{}:
					defer func() { <-pool }()
					return c.Provider.Acquire(ctx, cl)
				case <-ctx.Done():
					return core.Grant{}, ctx.Err()
				}
			}
		})
		return c, func(testing.TB) func() {
			pool <- struct{}{}
			return func() { <-pool }
		}
	}
	return h
}

// Every mutant fails exactly the cases it is meant to fail, the provider without
// a fault fails none, and every case is failed by some mutant.
func TestMutants(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]map[string]string{} // mutant → case → what was seen
	check := func(t *testing.T, m mutant, c conformancetest.Case) {
		t.Helper()
		status, detail := conformancetest.Check(t, m.harness(t), c)
		mu.Lock()
		defer mu.Unlock()
		if seen[m.name] == nil {
			seen[m.name] = map[string]string{}
		}
		if status == "failed" {
			seen[m.name][c.ID()] = detail
		}
		if status == "skipped" && m.name == "none" && unproven[c.ID()] == "" {
			t.Errorf("%s is skipped, so no mutant can prove it: %s", c.ID(), detail)
		}
	}
	for _, m := range mutants {
		for _, c := range conformancetest.Cases() {
			if c.Alone() {
				check(t, m, c)
			}
		}
	}
	t.Run("cases", func(t *testing.T) {
		for _, m := range mutants {
			for _, c := range conformancetest.Cases() {
				if !c.Alone() {
					t.Run(m.name+"/"+c.ID(), func(t *testing.T) {
						t.Parallel()
						check(t, m, c)
					})
				}
			}
		}
	})
	// What a fault does depends on when: on a loaded machine a case may miss it, or
	// meet another of its effects. Then the case is run again, by itself.
	cases := map[string]conformancetest.Case{}
	for _, c := range conformancetest.Cases() {
		cases[c.ID()] = c
	}
	again := func(m mutant, id string) (failed bool) {
		delete(seen[m.name], id)
		check(t, m, cases[id])
		_, failed = seen[m.name][id]
		return failed
	}
	proven := map[string]bool{}
	for _, m := range mutants {
		for _, id := range m.fails {
			_, failed := seen[m.name][id]
			for tries := 0; !failed && tries < 3; tries++ {
				failed = again(m, id)
			}
			if !failed {
				t.Errorf("mutant %q passes %s", m.name, id)
			}
		}
		for id, detail := range maps.Clone(seen[m.name]) {
			proven[id] = true
			if m.loose || slices.Contains(m.fails, id) || slices.Contains(m.may, id) {
				continue
			}
			chance := false
			for tries := 0; tries < 2 && !strings.HasPrefix(m.name, "none"); tries++ {
				chance = chance || !again(m, id)
			}
			if !chance {
				t.Errorf("mutant %q fails %s as well: %s", m.name, id, first(detail))
			}
		}
	}
	for _, c := range conformancetest.Cases() {
		if _, excused := unproven[c.ID()]; proven[c.ID()] == excused {
			t.Errorf("case %s: failed by a mutant: %v, listed as unproven: %v", c.ID(), proven[c.ID()], excused)
		}
	}
}

func first(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return fmt.Sprintf("%.200s", line)
}
