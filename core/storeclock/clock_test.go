package storeclock_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/shedbolt/shedbolt/core/storeclock"
)

// world is a client's machine and a store, each with a clock of its own, over a
// stretch of true time. Its history is made up beforehand, so that readings at any
// instant can be asked for in any order.
type world struct {
	rnd     *rand.Rand
	spans   []span
	asked   map[time.Time]time.Duration // the true time of each reading of the local clock
	present time.Duration
}

// span is a stretch of true time in which both clocks run evenly.
type span struct {
	begin             time.Duration // in true time
	mono, wall, store time.Duration // readings at the beginning
	monoRate          float64       // 0 while the machine is suspended
	storeRate         float64
	source            string
}

var epoch = time.Now()

// drift is the bound on how far the clocks run apart, in parts per million.
const drift = 400

func newWorld(seed uint64, spans int) *world {
	w := &world{rnd: rand.New(rand.NewPCG(seed, 1)), asked: map[time.Time]time.Duration{}}
	s := span{store: w.upTo(time.Hour) - 30*time.Minute, source: "a"}
	for range spans {
		s.monoRate = 1 + (w.rnd.Float64()-0.5)*drift/1e6*0.99
		s.storeRate = 1 + (w.rnd.Float64()-0.5)*drift/1e6*0.99
		w.spans = append(w.spans, s)
		s = s.after(time.Second + w.upTo(40*time.Second))
		switch w.rnd.IntN(8) {
		case 0, 1: // the machine is suspended: for moments, or for long
			s.monoRate = 0
			w.spans = append(w.spans, s)
			if w.rnd.IntN(2) == 0 {
				s = s.after(1 + w.upTo(200*time.Millisecond))
			} else {
				s = s.after(1 + w.upTo(time.Hour))
			}
		case 2: // somebody sets the local wall clock
			s.wall += w.upTo(48*time.Hour) - 24*time.Hour
		case 3: // the client is moved to a server whose clock is a little different
			s.source += "'"
			s.store += w.upTo(2*time.Second) - time.Second
		case 4: // somebody sets the store's clock, by more than its width
			s.store += time.Minute + w.upTo(time.Hour)
		case 5:
			s.store -= time.Minute + w.upTo(time.Hour)
		}
	}
	s.monoRate = 1
	w.spans = append(w.spans, s)
	return w
}

func (w *world) upTo(d time.Duration) time.Duration { return time.Duration(w.rnd.Int64N(int64(d))) }

// after is the span that follows after d.
func (s span) after(d time.Duration) span {
	s.begin += d
	s.mono += time.Duration(float64(d) * s.monoRate)
	s.store += time.Duration(float64(d) * s.storeRate)
	if s.monoRate == 0 {
		s.wall += d
	} else {
		s.wall += time.Duration(float64(d) * s.monoRate)
	}
	return s
}

// at is all clocks at an instant of true time.
func (w *world) at(t time.Duration) span {
	i := len(w.spans) - 1
	for w.spans[i].begin > t {
		i--
	}
	return w.spans[i].after(t - w.spans[i].begin)
}

// awake is an instant after t at which the machine runs.
func (w *world) awake(t time.Duration) time.Duration {
	for i, s := range w.spans {
		if s.begin <= t && s.monoRate == 0 && (i+1 == len(w.spans) || w.spans[i+1].begin > t) {
			return w.spans[i+1].begin + time.Microsecond
		}
	}
	return t
}

func (w *world) local(t time.Duration) time.Time {
	reading := epoch.Add(w.at(t).mono)
	w.asked[reading] = t
	return reading
}

func (w *world) wall(from, to time.Time) time.Duration {
	return w.at(w.asked[to]).wall - w.at(w.asked[from]).wall
}

func (w *world) store(t time.Duration) time.Time {
	return time.Unix(1_800_000_000, 0).Add(w.at(t).store)
}

// request is one answer of the store.
type request struct{ sent, stamped, received time.Duration }

func (w *world) request(t time.Duration) request {
	r := request{sent: w.awake(t)}
	r.stamped = r.sent + w.upTo(200*time.Millisecond)
	r.received = w.awake(r.stamped + w.upTo(200*time.Millisecond))
	return r
}

func (w *world) observe(c *storeclock.Clock, r request, step time.Duration) {
	c.Observe(w.at(r.stamped).source, w.local(r.sent), w.local(r.received), storeclock.Truncated(w.store(r.stamped).Truncate(step), step))
}

// The store's time is never outside the interval, whatever happens to the clocks.
func TestTrueTimeIsWithin(t *testing.T) {
	for _, step := range []time.Duration{time.Second, time.Millisecond} {
		t.Run(step.String(), func(t *testing.T) {
			told, asked := 0, 0
			for seed := range uint64(300) {
				w := newWorld(seed, 40)
				c := storeclock.New(storeclock.WithDrift(drift), storeclock.WithMaxAge(5*time.Minute),
					storeclock.WithLocal(func() time.Time { return w.local(w.present) }), storeclock.WithWall(w.wall))
				end := w.spans[len(w.spans)-1].begin
				stale := "" // the store's clock as it was last heard of
				for w.present < end {
					// One request, or several at once, whose answers are taken in in any order.
					var batch []request
					for range 1 + w.rnd.IntN(3) {
						batch = append(batch, w.request(w.present+w.upTo(100*time.Millisecond)))
					}
					w.rnd.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
					last := w.present
					steady := true
					for _, r := range batch {
						last = max(last, r.received)
						steady = steady && w.era(r.sent) == w.era(batch[0].received) && w.era(r.received) == w.era(batch[0].sent)
					}
					w.present = last + time.Microsecond
					for _, r := range batch {
						w.observe(c, r, step)
					}
					if stale = ""; steady {
						stale = w.era(batch[0].received)
					}
					for range w.rnd.IntN(6) {
						if w.present = w.awake(w.present + w.upTo(10*time.Second)); w.present >= end {
							break
						}
						if w.era(w.present) != stale {
							break // the store's clock was set, and no answer has told
						}
						asked++
						now, ok := c.Now()
						if !ok {
							continue
						}
						told++
						if truth := w.store(w.present); truth.Before(now.Earliest) || truth.After(now.Latest) {
							t.Fatalf("seed %d: the store's clock is at %v, outside of %v to %v", seed, truth, now.Earliest, now.Latest)
						}
					}
				}
			}
			if told < asked/2 || told < 1000 {
				t.Errorf("the clock was known %d times of %d: is anything tested?", told, asked)
			}
		})
	}
}

// era tells apart the stretches between which the store's clock was set.
func (w *world) era(t time.Duration) string {
	n := 0
	for i := 1; i < len(w.spans) && w.spans[i].begin <= t; i++ {
		before := w.spans[i-1].after(w.spans[i].begin - w.spans[i-1].begin)
		if before.store != w.spans[i].store || before.source != w.spans[i].source {
			n = i
		}
	}
	return fmt.Sprint(n)
}

// even is a client's clock that shows what it is told.
type even struct {
	*storeclock.Clock
	now time.Time
}

func newEven(opts ...storeclock.Option) *even {
	e := &even{now: epoch}
	e.Clock = storeclock.New(append(opts, storeclock.WithLocal(func() time.Time { return e.now }))...)
	return e
}

// answer lets an answer come, after delay, whose stamp was made halfway.
func (e *even) answer(source string, delay, step, offset time.Duration) {
	sent := e.now
	e.now = e.now.Add(delay)
	e.Observe(source, sent, e.now, storeclock.Truncated(sent.Add(delay/2+offset).Round(0).Truncate(step), step))
}

func (e *even) width(t *testing.T) time.Duration {
	t.Helper()
	now, ok := e.Now()
	if !ok {
		t.Fatal("the clock is not known")
	}
	return now.Width()
}

func TestNarrowsWithAnswers(t *testing.T) {
	const trip = 5 * time.Millisecond
	e := newEven()
	e.answer("", trip, time.Millisecond, time.Hour)
	if got := e.width(t); got > trip+2*time.Millisecond {
		t.Errorf("after one answer in milliseconds the width is %v, want about the round trip, %v", got, trip)
	}
	// Seconds, at a different fraction of a second each time: the widths of the
	// intervals between the fractions, the time of the answer and the drift.
	e = newEven()
	for range 10 {
		e.answer("", trip, time.Second, time.Hour)
		e.now = e.now.Add(1095 * time.Millisecond)
	}
	if got := e.width(t); got > 100*time.Millisecond+2*trip+20*time.Millisecond {
		t.Errorf("after ten answers in seconds the width is %v, want about 100ms", got)
	}
	// And it grows with age.
	before := e.width(t)
	e.now = e.now.Add(time.Minute)
	if got := e.width(t) - before; got < 2*60*time.Millisecond || got > 2*61*time.Millisecond {
		t.Errorf("in a minute the width grew by %v, want 1000 ppm to both sides", got)
	}
}

func TestForgets(t *testing.T) {
	known := func(e *even) bool {
		_, ok := e.Now()
		return ok
	}
	e := newEven(storeclock.WithMaxAge(time.Minute))
	if known(e) {
		t.Error("a new clock is known")
	}
	e.answer("a", time.Millisecond, time.Second, 0)
	e.now = e.now.Add(time.Minute)
	if !known(e) {
		t.Error("the clock is not known, a minute after an answer that is good for one")
	}
	e.now = e.now.Add(1)
	if known(e) {
		t.Error("the clock is known, more than a minute after an answer that is good for one")
	}
	e.answer("a", time.Millisecond, time.Second, 0)
	e.Reset()
	if known(e) {
		t.Error("the clock is known after Reset")
	}
	e.answer("a", time.Millisecond, time.Second, 0)
	e.Observe("b", e.now, e.now, storeclock.Interval{Earliest: epoch, Latest: epoch})
	if now, ok := e.Now(); !ok || !now.Earliest.Equal(epoch.Add(-1)) {
		t.Errorf("after an answer from another server the clock is %v, %v, want what that one said", now, ok)
	}
}

func TestOutrun(t *testing.T) {
	e := newEven()
	e.answer("", time.Millisecond, time.Second, 0)
	seen, _ := e.Now()
	at := e.Local()
	check := func(want bool, when string) {
		t.Helper()
		if got := e.Outrun(seen, at); got != want {
			t.Errorf("%s: outrun: %v, want %v", when, got, want)
		}
	}
	check(false, "nothing was heard since")
	e.now = e.now.Add(3 * time.Second)
	check(false, "nothing was heard for seconds")
	e.answer("", time.Millisecond, time.Second, 0)
	check(false, "an answer said what was expected")
	e.answer("", time.Millisecond, time.Second, -time.Minute)
	check(false, "the store's clock was set back")
	e.answer("", time.Millisecond, time.Second, 3*time.Second)
	check(true, "an answer said that more time has passed than here")
	e.Reset()
	check(true, "nothing is known any more")
}

// What can't be is not taken in.
func TestIgnoresNonsense(t *testing.T) {
	e := newEven()
	e.Observe("", e.now, e.now, storeclock.Interval{Earliest: epoch, Latest: epoch.Add(-1)})
	e.Observe("", e.now, e.now.Add(-1), storeclock.Interval{Earliest: epoch, Latest: epoch})
	if now, ok := e.Now(); ok {
		t.Errorf("the clock is %v after an interval, or an answer, that ends before it begins", now)
	}
}

func TestConcurrentUse(t *testing.T) {
	c := storeclock.New()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				sent := c.Local()
				stamped := storeclock.Truncated(time.Now().Truncate(time.Millisecond), time.Millisecond)
				c.Observe("", sent, c.Local(), stamped)
				before := time.Now()
				now, ok := c.Now()
				if after := time.Now(); !ok || now.Earliest.After(after) || now.Latest.Before(before) {
					t.Errorf("Now = %v, %v between %v and %v", now, ok, before, after)
				}
			}
		})
	}
	wg.Wait()
}

func TestOptionsPanic(t *testing.T) {
	for name, option := range map[string]func(){
		"a negative drift":        func() { storeclock.WithDrift(-1) },
		"a drift beyond sense":    func() { storeclock.WithDrift(1_000_000) },
		"no age":                  func() { storeclock.WithMaxAge(0) },
		"a clock that is missing": func() { storeclock.WithLocal(nil) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s did not panic", name)
				}
			}()
			option()
		}()
	}
}
