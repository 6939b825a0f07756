package core_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/providers/memory"
)

func TestHeldSaysWho(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewStore(nil)
		a := newLocker(t, memory.New(store), core.WithOwner("replica-a"))
		b := newLocker(t, memory.New(store), core.WithOwner("replica-b"))
		lease, err := a.TryLock(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		since := store.Now()
		time.Sleep(10 * time.Second)
		for who, l := range map[string]*core.Locker{"another client": b, "the holder itself": a} {
			_, err := l.TryLock(t.Context(), job)
			held, ok := errors.AsType[*core.HeldError](err)
			if !errors.Is(err, core.ErrHeld) || !ok {
				t.Fatalf("TryLock by %s = %v, want ErrHeld (R1, R15)", who, err)
			}
			if held.Name != "job" || held.Owner != "replica-a" || !held.Since.Equal(since) || !held.Until.Equal(since.Add(time.Minute)) {
				t.Errorf("the held error is %+v, want replica-a since %v for a minute (R3)", held, since)
			}
			if text := err.Error(); !strings.Contains(text, `"job" is held by replica-a since`) || strings.Contains(text, lease.Token()) {
				t.Errorf("the held error reads %q; it must name the holder and no token (R18)", text)
			}
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := b.TryLock(t.Context(), job); err != nil {
			t.Errorf("TryLock after release: %v (R4)", err)
		}
	})
}

func TestRefusalsMakeNoIO(t *testing.T) {
	s := newStub()
	l := newLocker(t, s)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		lock core.Lock
		want error
	}{
		{t.Context(), core.Lock{Name: strings.Repeat("x", 65), AtMostFor: 1}, core.ErrInvalidName},
		{t.Context(), core.Lock{Name: "job"}, core.ErrInvalidDuration},
		{t.Context(), core.Lock{Name: "job", AtMostFor: 1, AtLeastFor: 2}, core.ErrInvalidDuration},
		{ended, job, context.Canceled},
	} {
		if _, err := l.TryLock(c.ctx, c.lock); !errors.Is(err, c.want) {
			t.Errorf("TryLock(%+v) = %v, want %v", c.lock, err, c.want)
		}
		if r, err := l.Run(c.ctx, c.lock, func(context.Context) error { t.Error("the task ran"); return nil }); !errors.Is(err, c.want) || r.Outcome != core.NotRun {
			t.Errorf("Run(%+v) = %v, %v, want %v (R17)", c.lock, r.Outcome, err, c.want)
		}
	}
	if calls := s.log(); len(calls) > 0 {
		t.Errorf("the store was asked: %v", calls)
	}
}

func TestDefaultAtMostForIsExplicit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLocker(t, memory.New(nil), core.WithDefaultAtMostFor(time.Hour))
		lease, err := l.TryLock(t.Context(), core.Lock{Name: "job"})
		if err != nil {
			t.Fatal(err)
		}
		if got := lease.Until().Sub(lease.Since()); got != time.Hour {
			t.Errorf("the lock is held for %v, want the default of an hour (R10)", got)
		}
		_ = lease.Release(t.Context())
	})
}

type coarse struct {
	*stub
	resolution time.Duration
}

func (c coarse) Capabilities() core.Capabilities {
	return core.Capabilities{Set: c.stub.Capabilities().Set, Resolution: c.resolution}
}

func TestDurationsAreRoundedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		var got core.Claim
		var kept time.Duration
		s.acquire = func(ctx context.Context, c core.Claim, next func(context.Context, core.Claim) (core.Grant, error)) (core.Grant, error) {
			got = c
			return next(ctx, c)
		}
		s.release = func(ctx context.Context, g core.Grant, d time.Duration, next func(context.Context, core.Grant, time.Duration) error) error {
			kept = d
			return next(ctx, g, d)
		}
		for _, c := range []struct{ resolution, in, want time.Duration }{
			{time.Millisecond, 1, time.Millisecond},
			{time.Millisecond, time.Millisecond, time.Millisecond},
			{time.Second, 1500500 * time.Microsecond, 2 * time.Second},
			{time.Second, 40 * 24 * time.Hour, 40 * 24 * time.Hour},
			{1, 7, 7},
		} {
			l := newLocker(t, coarse{s, c.resolution})
			lease, err := l.TryLock(t.Context(), core.Lock{Name: "job", AtMostFor: c.in, AtLeastFor: c.in})
			// A lease of a single step is rounded up too, and is then of no use: the
			// store's clock may have shown a time up to a step ago.
			if err != nil && (!errors.Is(err, core.ErrLost) || c.want > c.resolution) {
				t.Fatal(err)
			}
			if got.AtMostFor != c.want || got.AtLeastFor != c.want {
				t.Errorf("%v on a store of resolution %v: asked for %v and %v, want %v (R10)", c.in, c.resolution, got.AtMostFor, got.AtLeastFor, c.want)
			}
			if lease == nil {
				continue
			}
			if err := lease.Release(t.Context()); err != nil || kept != c.want {
				t.Errorf("released with %v, %v, want %v", kept, err, c.want)
			}
			s.Store().Remove("job")
		}
	})
}

func TestEveryAcquisitionHasItsOwnToken(t *testing.T) {
	l := newLocker(t, memory.New(nil))
	seen := map[string]bool{}
	for range 1000 {
		lease, err := l.TryLock(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		if seen[lease.Token()] {
			t.Fatalf("the token %s came twice (R6)", lease.Token())
		}
		seen[lease.Token()] = true
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDefaultOwnerIsHostAndPid(t *testing.T) {
	lease, err := newLocker(t, memory.New(nil)).TryLock(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lease.Release(t.Context()) }()
	host, err := os.Hostname()
	if err != nil {
		t.Skip("this machine has no host name")
	}
	if want := fmt.Sprintf("%s/%d", host, os.Getpid()); lease.Owner() != want {
		t.Errorf("the default owner is %q, want %q", lease.Owner(), want)
	}
}

func TestLateGrantIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.acquire = func(ctx context.Context, c core.Claim, next func(context.Context, core.Claim) (core.Grant, error)) (core.Grant, error) {
			time.Sleep(500 * time.Millisecond)
			g, err := next(ctx, c)
			time.Sleep(600 * time.Millisecond) // store's lease still has 400 ms
			return g, err
		}
		_, err := newLocker(t, s).TryLock(t.Context(), core.Lock{Name: "job", AtMostFor: time.Second, AtLeastFor: time.Second})
		if !errors.Is(err, core.ErrLost) || errors.Is(err, core.ErrUncertain) {
			t.Errorf("TryLock whose answer took longer than AtMostFor = %v, want ErrLost (R12)", err)
		}
		if s.jobHeld(t) {
			t.Error("the late grant was not given back (R12)")
		}
	})
}

func TestLostAnswerIsRecognised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		first := true
		s.acquire = func(ctx context.Context, c core.Claim, next func(context.Context, core.Claim) (core.Grant, error)) (core.Grant, error) {
			g, err := next(ctx, c)
			if first {
				first = false
				time.Sleep(time.Second)
				return core.Grant{}, core.Uncertain(errors.New("connection reset"))
			}
			return g, err
		}
		start := time.Now()
		lease, err := newLocker(t, s).TryLock(t.Context(), job)
		if err != nil {
			t.Fatalf("TryLock = %v, want the grant whose answer was lost (R3)", err)
		}
		if !lease.Since().Equal(start.UTC().Round(0)) {
			t.Errorf("the grant is of %v, want the first attempt's %v", lease.Since(), start)
		}
		if late := lease.Deadline().Sub(start.Add(time.Minute)); late > 0 {
			t.Errorf("the local deadline is %v after the store's: it must count from the first attempt (R12)", late)
		}
		if err := lease.Release(t.Context()); err != nil || s.jobHeld(t) {
			t.Errorf("release: %v; held: %v", err, s.jobHeld(t))
		}
	})
}

func TestUncertainAttempts(t *testing.T) {
	broken := errors.New("connection reset")
	type op = func(ctx context.Context, c core.Claim, next func(context.Context, core.Claim) (core.Grant, error)) (core.Grant, error)
	written := func(ctx context.Context, c core.Claim, next func(context.Context, core.Claim) (core.Grant, error)) (core.Grant, error) {
		_, _ = next(ctx, c)
		return core.Grant{}, core.Uncertain(broken)
	}
	unwritten := func(context.Context, core.Claim, func(context.Context, core.Claim) (core.Grant, error)) (core.Grant, error) {
		return core.Grant{}, core.Uncertain(broken)
	}
	releaseFails := func(context.Context, core.Grant, time.Duration, func(context.Context, core.Grant, time.Duration) error) error {
		return errors.New("still down")
	}
	for _, c := range []struct {
		name      string
		acquire   op
		release   func(context.Context, core.Grant, time.Duration, func(context.Context, core.Grant, time.Duration) error) error
		uncertain bool
		held      bool
	}{
		{"written, then taken back", written, nil, false, false},
		{"never written", unwritten, nil, false, false},
		{"can't be taken back", written, releaseFails, true, true},
		{"nobody knows", unwritten, releaseFails, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStub()
				s.acquire, s.release = c.acquire, c.release
				_, err := newLocker(t, s).TryLock(t.Context(), job)
				if !errors.Is(err, broken) || errors.Is(err, core.ErrHeld) {
					t.Errorf("TryLock = %v, want the store's error (R3)", err)
				}
				if errors.Is(err, core.ErrUncertain) != c.uncertain {
					t.Errorf("TryLock = %v, ErrUncertain: %v, want %v (R3)", err, !c.uncertain, c.uncertain)
				}
				if got := s.jobHeld(t); got != c.held {
					t.Errorf("a lock is left: %v, want %v", got, c.held)
				}
			})
		})
	}
}

func TestUncertainThenHeldByAnother(t *testing.T) {
	s := newStub()
	first := true
	s.acquire = func(ctx context.Context, c core.Claim, next func(context.Context, core.Claim) (core.Grant, error)) (core.Grant, error) {
		if first {
			first = false
			other := core.Claim{Name: c.Name, Owner: "other", Token: rand.Text(), AtMostFor: time.Minute}
			_, _ = next(ctx, other)
			return core.Grant{}, core.Uncertain(errors.New("connection reset"))
		}
		return next(ctx, c)
	}
	_, err := newLocker(t, s).TryLock(t.Context(), job)
	if held, ok := errors.AsType[*core.HeldError](err); !ok || held.Owner != "other" {
		t.Errorf("TryLock = %v, want held by the other (R3)", err)
	}
}

// A client library that ignores contexts and a server that hangs.
func TestHungStoreIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 4 * time.Second
		s := newStub()
		thaw := make(chan struct{})
		s.acquire = func(_ context.Context, c core.Claim, next func(context.Context, core.Claim) (core.Grant, error)) (core.Grant, error) {
			<-thaw
			return next(context.Background(), c)
		}
		s.release = func(_ context.Context, g core.Grant, d time.Duration, next func(context.Context, core.Grant, time.Duration) error) error {
			<-thaw
			return next(context.Background(), g, d)
		}
		l := newLocker(t, s, core.WithCleanupLimit(limit))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := l.TryLock(ctx, job)
		if took := time.Since(start); took > time.Second+limit {
			t.Errorf("TryLock took %v, want at most the context's second and the limit of %v (R11)", took, limit)
		}
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, core.ErrUncertain) {
			t.Errorf("TryLock = %v, want DeadlineExceeded and ErrUncertain (R3, R11)", err)
		}
		close(thaw) // the first request reaches the store after all
		synctest.Wait()
		time.Sleep(limit)
		synctest.Wait()
		if s.jobHeld(t) {
			t.Error("the abandoned attempt left a live lock (R11)")
		}
	})
}

func TestCancelledAttempt(t *testing.T) {
	for _, c := range []struct {
		name string
		err  func(error) error
	}{
		{"the client says what it knows", core.Uncertain},
		{"the client had already won", func(error) error { return nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStub()
				s.acquire = func(ctx context.Context, cl core.Claim, next func(context.Context, core.Claim) (core.Grant, error)) (core.Grant, error) {
					g, _ := next(ctx, cl)
					<-ctx.Done()
					return g, c.err(errors.New("operation was canceled"))
				}
				ctx, cancel := context.WithCancelCause(t.Context())
				reason := errors.New("shutting down")
				time.AfterFunc(time.Second, func() { cancel(reason) })
				_, err := newLocker(t, s).TryLock(ctx, job)
				if !errors.Is(err, reason) {
					t.Errorf("TryLock = %v, want the context's cause (R11)", err)
				}
				if s.jobHeld(t) {
					t.Error("the cancelled attempt left a live lock (R11)")
				}
			})
		})
	}
}

// A request that the store has received is carried out whether its caller waits or
// not: the attempt is not cut off at once, so that the answer tells what to give
// back.
func TestAttemptUnderWayIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.acquire = func(ctx context.Context, c core.Claim, next func(context.Context, core.Claim) (core.Grant, error)) (core.Grant, error) {
			select {
			case <-ctx.Done():
				// Cut off, the store would grant it long after it was taken back.
				time.AfterFunc(time.Minute, func() { _, _ = next(context.Background(), c) })
				return core.Grant{}, core.Uncertain(ctx.Err())
			case <-time.After(1100 * time.Millisecond):
				return next(ctx, c)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := newLocker(t, s).TryLock(ctx, job)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, core.ErrUncertain) {
			t.Errorf("TryLock = %v, want DeadlineExceeded (R11)", err)
		}
		if took := time.Since(start); took > 1200*time.Millisecond {
			t.Errorf("TryLock took %v, though the answer came after 1.1 s (R11)", took)
		}
		time.Sleep(2 * time.Minute)
		if s.jobHeld(t) {
			t.Error("the cancelled attempt left a live lock (R11)")
		}
	})
}

// A connection that is cut does not stop the store, which may grant the lock when
// it was looked for already.
func TestClaimThatLandsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		s.acquire = func(ctx context.Context, c core.Claim, next func(context.Context, core.Claim) (core.Grant, error)) (core.Grant, error) {
			<-ctx.Done()
			time.AfterFunc(20*time.Millisecond, func() { _, _ = next(context.Background(), c) })
			return core.Grant{}, core.Uncertain(errors.New("cut"))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := newLocker(t, s).TryLock(ctx, job); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("TryLock = %v, want DeadlineExceeded (R11)", err)
		}
		if s.jobHeld(t) {
			t.Error("the cancelled attempt left a live lock (R11)")
		}
	})
}

func TestProviderPanicReachesTheCaller(t *testing.T) {
	s := newStub()
	s.acquire = func(context.Context, core.Claim, func(context.Context, core.Claim) (core.Grant, error)) (core.Grant, error) {
		panic("broken provider")
	}
	defer func() {
		if r := recover(); r != "broken provider" {
			t.Errorf("recovered %v, want the provider's panic", r)
		}
	}()
	_, _ = newLocker(t, s).TryLock(t.Context(), job)
	t.Error("TryLock returned")
}

func TestErrorsNameOperationAndLockOnce(t *testing.T) {
	s := newStub()
	s.acquire = func(context.Context, core.Claim, func(context.Context, core.Claim) (core.Grant, error)) (core.Grant, error) {
		return core.Grant{}, errors.New("relation does not exist")
	}
	_, err := newLocker(t, s).TryLock(t.Context(), job)
	if got, want := err.Error(), `shedbolt: acquire "job": relation does not exist`; got != want {
		t.Errorf("the error reads %q, want %q", got, want)
	}
}

type noExtend struct{ core.Provider }

type declares struct {
	core.Provider
	caps core.Capabilities
}

func (d declares) Capabilities() core.Capabilities { return d.caps }

func TestNewRefuses(t *testing.T) {
	for what, c := range map[string]struct {
		p    core.Provider
		opts []core.Option
	}{
		"no provider":                       {},
		"CapExtend without Extender":        {p: declares{noExtend{memory.New(nil)}, core.Capabilities{Set: core.CapExtend, Resolution: 1}}},
		"CapInspect without Inspector":      {p: declares{noExtend{memory.New(nil)}, core.Capabilities{Set: core.CapInspect, Resolution: 1}}},
		"no resolution":                     {p: declares{memory.New(nil), core.Capabilities{}}},
		"a negative clock width":            {p: declares{memory.New(nil), core.Capabilities{Resolution: 1, ClockWidth: -1}}},
		"an empty owner":                    {p: memory.New(nil), opts: []core.Option{core.WithOwner("")}},
		"an owner with a control character": {p: memory.New(nil), opts: []core.Option{core.WithOwner("a\nb")}},
		"an owner that is not UTF-8":        {p: memory.New(nil), opts: []core.Option{core.WithOwner("\xff")}},
		"a nil logger":                      {p: memory.New(nil), opts: []core.Option{core.WithLogger(nil)}},
		"a default AtMostFor of 0":          {p: memory.New(nil), opts: []core.Option{core.WithDefaultAtMostFor(0)}},
		"a clean-up limit of 0":             {p: memory.New(nil), opts: []core.Option{core.WithCleanupLimit(0)}},
	} {
		if l, err := core.New(c.p, c.opts...); err == nil || l != nil {
			t.Errorf("New with %s = %v, %v, want an error", what, l, err)
		}
	}
}

func TestLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, logs := newStub(), &records{}
		l := newLocker(t, s, core.WithLogger(slog.New(logs)))
		quiet := newLocker(t, memory.New(s.Store()))
		var token string
		s.acquire = func(ctx context.Context, c core.Claim, next func(context.Context, core.Claim) (core.Grant, error)) (core.Grant, error) {
			token = c.Token
			return next(ctx, c)
		}
		check := func(what string, want ...string) {
			t.Helper()
			if text := logs.text(); token == "" || strings.Contains(text, token) {
				t.Errorf("%s: the log shows the token %q (R18): %s", what, token, text)
			}
			if got := logs.take(); !slices.Equal(got, want) {
				t.Errorf("%s: logged %q, want %q", what, got, want)
			}
		}
		nothing := func(context.Context) error { return nil }

		if _, err := l.Run(t.Context(), job, nothing); err != nil {
			t.Fatal(err)
		}
		check("a run", "INFO shedbolt: ran")

		other, err := quiet.TryLock(t.Context(), job)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Run(t.Context(), job, nothing); err != nil {
			t.Fatal(err)
		}
		check("a skip", "DEBUG shedbolt: skipped")
		_ = other.Release(t.Context())

		s.release = func(context.Context, core.Grant, time.Duration, func(context.Context, core.Grant, time.Duration) error) error {
			return errors.New("down")
		}
		_, _ = l.Run(t.Context(), job, nothing)
		check("a failed release", "WARN shedbolt: release failed", "INFO shedbolt: ran")
		s.release = nil
		s.Store().Remove("job")

		_, _ = l.Run(t.Context(), job, func(ctx context.Context) error { <-ctx.Done(); return nil })
		check("a lost lease", "WARN shedbolt: lease lost", "INFO shedbolt: ran")
	})
}

func TestCapabilityString(t *testing.T) {
	if got := (core.CapExtend | core.CapFence).String(); got != "extend,fence" {
		t.Errorf("String = %q", got)
	}
	if got := core.Capability(0).String(); got != "none" {
		t.Errorf("String = %q", got)
	}
}
