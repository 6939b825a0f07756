package storeclock

import (
	"sync"
	"time"
)

// Clock is one client's view of a store's clock. It is safe for concurrent use.
type Clock struct {
	local  func() time.Time
	wall   func(from, to time.Time) time.Duration // how far the wall clock went
	drift  int64                                  // in parts per million
	maxAge time.Duration

	mu     sync.Mutex
	known  bool
	source string
	at     time.Time // when store was right, on the local clock
	store  Interval
}

const (
	// DefaultDrift is how far apart the local clock and the store's may run, in
	// parts per million: two clocks that are each being corrected at NTP's highest
	// rate, in opposite directions.
	DefaultDrift = 1000
	// DefaultMaxAge is how long the last answer is good for.
	DefaultMaxAge = 10 * time.Minute
)

// suspended is how far the local clocks may run apart before it counts as a gap in
// the monotonic one. Less, such as the moment between reading the one and the
// other, widens the interval instead.
const suspended = 100 * time.Millisecond

// Option changes a Clock's defaults.
type Option func(*Clock)

// WithDrift sets how far the local clock and the store's may run apart, in parts
// per million, instead of [DefaultDrift].
func WithDrift(ppm int) Option {
	if ppm < 0 || ppm > 100_000 {
		panic("storeclock: a drift is between 0 and 100000 parts per million")
	}
	return func(c *Clock) { c.drift = int64(ppm) }
}

// WithMaxAge sets how long the last answer is good for, instead of [DefaultMaxAge].
func WithMaxAge(d time.Duration) Option {
	if d <= 0 {
		panic("storeclock: a maximum age is more than 0")
	}
	return func(c *Clock) { c.maxAge = d }
}

// WithLocal replaces the local clock, time.Now, whose readings have a monotonic part.
// It is for tests.
func WithLocal(now func() time.Time) Option {
	if now == nil {
		panic("storeclock: a local clock is needed")
	}
	return func(c *Clock) { c.local = now }
}

// New makes a Clock that knows nothing yet. Options panic on values that make no
// sense.
func New(opts ...Option) *Clock {
	c := &Clock{
		local:  time.Now,
		wall:   func(from, to time.Time) time.Duration { return to.Round(0).Sub(from.Round(0)) },
		drift:  DefaultDrift,
		maxAge: DefaultMaxAge,
	}
	for _, opt := range opts {
		opt(c)
	}
	return c
}

// Local reads the local clock, for Observe.
func (c *Clock) Local() time.Time { return c.local() }

// Observe takes in an answer: at some instant between sent and received, which were
// read from Local before the request and after the answer, the store's clock was
// within stamped. source names the server that has answered, as far as servers may
// have clocks of their own; answers of another source replace all before.
func (c *Clock) Observe(source string, sent, received time.Time, stamped Interval) {
	if stamped.Width() < 0 {
		return
	}
	// If the reading was made when the request was sent, it has aged since.
	aged, ok := c.age(stamped, sent, received)
	if !ok {
		return
	}
	seen := Interval{Earliest: stamped.Earliest, Latest: aged.Latest}

	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known || c.source != source {
		c.set(source, received, seen)
		return
	}
	if received.Before(c.at) { // answers to concurrent requests, taken in out of order
		if seen, ok = c.age(seen, received, c.at); ok {
			if both, ok := c.store.intersect(seen); ok {
				c.store = both
			}
		}
		return
	}
	if store, ok := c.age(c.store, c.at, received); ok {
		if both, ok := store.intersect(seen); ok {
			seen = both
		}
	}
	c.set(source, received, seen)
}

func (c *Clock) set(source string, at time.Time, store Interval) {
	c.known, c.source, c.at, c.store = true, source, at, store
}

// Now is where the store's clock is. ok is false if nothing is known that can be
// trusted.
func (c *Clock) Now() (now Interval, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.known {
		return Interval{}, false
	}
	// Under the mutex, so that no answer that was received later comes in between.
	if now, ok = c.age(c.store, c.at, c.local()); !ok {
		c.known = false
	}
	return now, ok
}

// Outrun reports whether it has turned out that the store's clock was beyond
// seen.Latest at the local time at, when Now gave seen. That is how a machine which
// stood still without either of its clocks telling finds out, by the next answer:
// what was written before, counted from seen, ends too soon. What can't be told any
// more counts as outrun.
func (c *Clock) Outrun(seen Interval, at time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	then, ok := c.age(seen, at, c.at)
	return !c.known || !c.at.Before(at) && (!ok || c.store.Earliest.After(then.Latest))
}

// Reset forgets everything.
func (c *Clock) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = false
}

// age is where the store's clock is at the local time to, if it was within i at the
// local time from. ok is false if that can't be told.
func (c *Clock) age(i Interval, from, to time.Time) (aged Interval, ok bool) {
	passed := to.Sub(from)
	gap := (c.wall(from, to) - passed).Abs()
	if passed < 0 || passed > c.maxAge || gap > suspended {
		return Interval{}, false
	}
	drift := passed/1_000_000*time.Duration(c.drift) + passed%1_000_000*time.Duration(c.drift)/1_000_000 + 1
	return Interval{Earliest: i.Earliest.Add(passed), Latest: i.Latest.Add(passed)}.Widen(drift + gap), true
}
