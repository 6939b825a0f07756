package conformancetest_test

import (
	"context"
	"sync"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

// blur is how far a blurred client's view of the store's clock is off to either
// side.
const blur = 50 * time.Millisecond

// writing makes the writes of a store's blurred clients atomic.
var writing sync.Map // *memory.Store to *sync.Mutex

// blur makes a client on a store whose writes can't read its clock, as those are
// that use core/storeclock: what the client knows of the clock is an interval.
func (c *client) blur() {
	store := c.Store()
	lock, _ := writing.LoadOrStore(store, &sync.Mutex{})
	mu := lock.(*sync.Mutex)
	c.caps.ClockWidth = 2 * blur
	c.see = func() (earliest, latest time.Time) {
		now := store.Now()
		return now.Add(-blur), now.Add(blur)
	}
	// change writes lock_until into a record that is held by a holder as seen at now.
	change := func(ctx context.Context, name, holder string, now, until time.Time) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, found := c.record(name)
		if !found || r.LockedBy != holder || !r.LockedUntil.After(now) {
			return core.ErrLost
		}
		r.LockedUntil = until
		store.Put(r)
		return nil
	}
	c.base.acquire = func(ctx context.Context, cl core.Claim) (core.Grant, error) {
		mu.Lock()
		defer mu.Unlock()
		if err := ctx.Err(); err != nil {
			return core.Grant{}, err
		}
		earliest, latest := c.see()
		r, found := c.record(cl.Name)
		switch {
		case found && r.LockedBy == cl.Holder() && r.LockedUntil.After(latest):
		case found && r.LockedBy != cl.Holder() && r.LockedUntil.After(earliest):
			return core.Grant{}, r.HeldError()
		default:
			store.Remove(cl.Name)
			g, err := c.Provider.Acquire(ctx, cl)
			if err != nil {
				return g, err
			}
			r = core.Record{
				Name: cl.Name, LockedBy: cl.Holder(), LockedAt: latest, LockedUntil: latest.Add(cl.AtMostFor), Fence: g.Fence,
			}
			store.Put(r)
		}
		return core.Grant{
			Name: cl.Name, Owner: cl.Owner, Token: cl.Token, LockedAt: r.LockedAt, LockedUntil: r.LockedUntil, Fence: r.Fence,
		}, nil
	}
	c.base.release = func(ctx context.Context, g core.Grant, keepFor time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		earliest, _ := c.see()
		until := earliest.Add(-2 * blur) // past for every client
		if kept := g.LockedAt.Add(keepFor); keepFor > 0 && kept.After(earliest) {
			until = kept
		}
		return change(ctx, g.Name, g.Holder(), earliest, until)
	}
	c.base.extend = func(ctx context.Context, g core.Grant, d time.Duration) (core.Grant, error) {
		mu.Lock()
		defer mu.Unlock()
		_, latest := c.see()
		g.LockedUntil = latest.Add(d)
		return g, change(ctx, g.Name, g.Holder(), latest, g.LockedUntil)
	}
	c.force = func(ctx context.Context, r core.Record) error {
		mu.Lock()
		defer mu.Unlock()
		earliest, _ := c.see()
		if now, found := c.record(r.Name); !found || !now.LockedAt.Equal(r.LockedAt) {
			return core.ErrLost
		}
		return change(ctx, r.Name, r.LockedBy, earliest, earliest.Add(-2*blur))
	}
	c.inspect = func(ctx context.Context, name string) (core.Record, bool, error) {
		r, found, err := c.Provider.Inspect(ctx, name)
		r.StoreTime, _ = c.see()
		return r, found, err
	}
}
