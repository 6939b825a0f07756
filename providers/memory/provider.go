package memory

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

// Store holds the records, as a server would.
type Store struct {
	now func() time.Time

	mu      sync.Mutex
	fence   int64 // the last one given, for any name
	records map[string]record
}

type record struct {
	lockedBy            string
	lockedAt, lockUntil time.Time
	fence               int64
}

// NewStore makes an empty store. now is its clock; nil means time.Now.
func NewStore(now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{now: now, records: map[string]record{}}
}

// Now reads the store's clock, in UTC.
func (s *Store) Now() time.Time {
	// Round takes the monotonic reading off: a store's clock is a wall clock.
	return s.now().Round(0).UTC()
}

// Remove deletes a record, as an operator might on a real store. It reports
// whether there was one.
func (s *Store) Remove(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, found := s.records[name]
	delete(s.records, name)
	return found
}

// Put writes a record, held or free, as another program might.
func (s *Store) Put(r core.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[r.Name] = record{lockedBy: r.LockedBy, lockedAt: r.LockedAt, lockUntil: r.LockedUntil, fence: r.Fence}
}

// Clock is a clock that stands still until it is moved. It is safe for
// concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock makes a clock that shows t.
func NewClock(t time.Time) *Clock { return &Clock{now: t} }

// Now is the time the clock shows. Give it to [NewStore].
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock by d, backwards if d is negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// Set makes the clock show t.
func (c *Clock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

// Provider is one client of a [Store]. It implements core.Provider,
// core.Extender and core.Inspector.
type Provider struct{ store *Store }

// New makes a client of a store; with nil, of a new store of its own.
func New(store *Store) *Provider {
	if store == nil {
		store = NewStore(nil)
	}
	return &Provider{store: store}
}

// Store returns the store that the client uses.
func (p *Provider) Store() *Store { return p.store }

// Capabilities implements core.Provider.
func (p *Provider) Capabilities() core.Capabilities {
	return core.Capabilities{
		Set:        core.CapExtend | core.CapInspect | core.CapFence | core.CapHolder | core.CapTimes,
		Resolution: 1,
	}
}

// Acquire implements core.Provider.
func (p *Provider) Acquire(ctx context.Context, c core.Claim) (core.Grant, error) {
	if err := ctx.Err(); err != nil {
		return core.Grant{}, err
	}
	s := p.store
	s.mu.Lock()
	defer s.mu.Unlock()
	now, holder := s.Now(), c.Holder()
	r, found := s.records[c.Name]
	live := found && r.lockUntil.After(now)
	switch {
	case live && r.lockedBy != holder:
		return core.Grant{}, r.export(c.Name, now).HeldError()
	case !live:
		s.fence++
		r = record{lockedBy: holder, lockedAt: now, lockUntil: now.Add(c.AtMostFor), fence: s.fence}
		s.records[c.Name] = r
	}
	return core.Grant{
		Name: c.Name, Owner: c.Owner, Token: c.Token,
		LockedAt: r.lockedAt, LockedUntil: r.lockUntil, Fence: r.fence,
	}, nil
}

// Release implements core.Provider.
func (p *Provider) Release(ctx context.Context, g core.Grant, keepFor time.Duration) error {
	return p.change(ctx, g.Name, func(r record, now time.Time) (time.Time, bool) {
		return r.freeAt(now, keepFor), r.lockedBy == g.Holder()
	})
}

// Extend implements core.Extender.
func (p *Provider) Extend(ctx context.Context, g core.Grant, d time.Duration) (core.Grant, error) {
	err := p.change(ctx, g.Name, func(r record, now time.Time) (time.Time, bool) {
		g.LockedUntil = now.Add(d)
		return g.LockedUntil, r.lockedBy == g.Holder()
	})
	return g, err
}

// ForceRelease implements core.Inspector.
func (p *Provider) ForceRelease(ctx context.Context, seen core.Record) error {
	return p.change(ctx, seen.Name, func(r record, now time.Time) (time.Time, bool) {
		return r.freeAt(now, 0), r.lockedBy == seen.LockedBy && r.lockedAt.Equal(seen.LockedAt)
	})
}

// change sets a live record's lock_until if decide says that it is the one
// meant.
func (p *Provider) change(ctx context.Context, name string, decide func(r record, now time.Time) (until time.Time, ok bool)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := p.store
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.Now()
	r, found := s.records[name]
	if !found || !r.lockUntil.After(now) {
		return core.ErrLost
	}
	until, ok := decide(r, now)
	if !ok {
		return core.ErrLost
	}
	r.lockUntil = until
	s.records[name] = r
	return nil
}

// Inspect implements core.Inspector.
func (p *Provider) Inspect(ctx context.Context, name string) (core.Record, bool, error) {
	if err := ctx.Err(); err != nil {
		return core.Record{}, false, err
	}
	s := p.store
	s.mu.Lock()
	defer s.mu.Unlock()
	r, found := s.records[name]
	if !found {
		return core.Record{}, false, nil
	}
	return r.export(name, s.Now()), true, nil
}

// List implements core.Inspector.
func (p *Provider) List(ctx context.Context) iter.Seq2[core.Record, error] {
	return func(yield func(core.Record, error) bool) {
		p.store.mu.Lock()
		names := slices.Sorted(maps.Keys(p.store.records))
		p.store.mu.Unlock()
		for _, name := range names {
			r, found, err := p.Inspect(ctx, name)
			if !found && err == nil {
				continue // removed meanwhile
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// freeAt is the lock_until after a release (R5).
func (r record) freeAt(now time.Time, keepFor time.Duration) time.Time {
	if until := r.lockedAt.Add(keepFor); until.After(now) {
		return until
	}
	return now
}

func (r record) export(name string, now time.Time) core.Record {
	owner, _ := core.ParseHolder(r.lockedBy)
	return core.Record{
		Name: name, Owner: owner, LockedBy: r.lockedBy,
		LockedAt: r.lockedAt, LockedUntil: r.lockUntil, StoreTime: now, Fence: r.fence,
	}
}
