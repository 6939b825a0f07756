package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/providers/memory"
)

func mustLock(t *testing.T, l *core.Locker, k core.Lock) *core.Lease {
	t.Helper()
	lease, err := l.TryLock(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

func TestLossIsToldBeforeTheStoreFreesTheLock(t *testing.T) {
	for _, atMost := range []time.Duration{time.Millisecond, 100 * time.Millisecond, time.Second, time.Minute, 24 * time.Hour, core.MaxDuration} {
		t.Run(atMost.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStub()
				lease := mustLock(t, newLocker(t, s), core.Lock{Name: "job", AtMostFor: atMost})
				ctx, cancel := lease.Context(t.Context())
				defer cancel()
				start := time.Now()
				<-ctx.Done()
				took := time.Since(start)
				if took >= atMost || took < atMost*9/10-1 {
					t.Errorf("the context ended after %v, want shortly before %v (R13)", took, atMost)
				}
				if !errors.Is(context.Cause(ctx), core.ErrLost) || !errors.Is(lease.Err(), core.ErrLost) {
					t.Errorf("cause %v, lease.Err %v, want ErrLost (R13)", context.Cause(ctx), lease.Err())
				}
				if !s.jobHeld(t) {
					t.Error("the store had freed the lock before its holder was told (R13)")
				}
				select {
				case <-lease.Done():
				default:
					t.Error("Done is not closed")
				}
			})
		})
	}
}

func TestExtendMovesBothEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.NewStore(nil)
		lease := mustLock(t, newLocker(t, memory.New(store)), core.Lock{Name: "job", AtMostFor: time.Second})
		fence, since := lease.Fence(), lease.Since()
		for range 5 {
			time.Sleep(900 * time.Millisecond)
			if err := lease.Extend(t.Context(), time.Second); err != nil {
				t.Fatalf("Extend of a live lease: %v (R7)", err)
			}
			if want := store.Now().Add(time.Second); !lease.Until().Equal(want) {
				t.Errorf("Until = %v, want %v: now plus the extension (R7)", lease.Until(), want)
			}
			if lease.Err() != nil {
				t.Fatalf("lease.Err after an extension: %v", lease.Err())
			}
		}
		if lease.Fence() != fence || !lease.Since().Equal(since) {
			t.Errorf("an extension changed the fence or the time of acquisition (R5, R14)")
		}
		// A shorter one brings the end nearer.
		if err := lease.Extend(t.Context(), 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
		if !errors.Is(lease.Err(), core.ErrLost) {
			t.Errorf("after a shorter extension ran out: lease.Err = %v, want ErrLost", lease.Err())
		}
		if err := lease.Extend(t.Context(), time.Second); !errors.Is(err, core.ErrLost) {
			t.Errorf("Extend after the end = %v, want ErrLost (R7)", err)
		}
	})
}

func TestExtendTroubles(t *testing.T) {
	down := errors.New("connection reset")
	type extend = func(context.Context, core.Grant, time.Duration, func(context.Context, core.Grant, time.Duration) (core.Grant, error)) (core.Grant, error)
	fails := func(err error) extend {
		return func(context.Context, core.Grant, time.Duration, func(context.Context, core.Grant, time.Duration) (core.Grant, error)) (core.Grant, error) {
			return core.Grant{}, err
		}
	}
	late := func(ctx context.Context, g core.Grant, d time.Duration, next func(context.Context, core.Grant, time.Duration) (core.Grant, error)) (core.Grant, error) {
		g, err := next(ctx, g, d)
		time.Sleep(2 * time.Second)
		return g, err
	}
	for _, c := range []struct {
		name   string
		extend extend
		d      time.Duration
		want   error
		left   time.Duration // until the lease ends, give or take its margin
	}{
		{"the store fails", fails(down), time.Hour, down, time.Minute},
		{"the answer to a longer one is lost", fails(core.Uncertain(down)), time.Hour, down, time.Minute},
		{"the answer to a shorter one is lost", fails(core.Uncertain(down)), 10 * time.Second, down, 10 * time.Second},
		{"the store says lost", fails(core.ErrLost), time.Hour, core.ErrLost, 0},
		{"the answer comes after the new end", late, time.Second, core.ErrLost, 2 * time.Second},
		{"not a duration", nil, 0, core.ErrInvalidDuration, time.Minute},
		{"more than ten years", nil, core.MaxDuration + 1, core.ErrInvalidDuration, time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStub()
				s.extend = c.extend
				start := time.Now()
				lease := mustLock(t, newLocker(t, s), job)
				if err := lease.Extend(t.Context(), c.d); !errors.Is(err, c.want) || errors.Is(err, core.ErrUncertain) {
					t.Errorf("Extend = %v, want %v", err, c.want)
				}
				<-lease.Done()
				if took := time.Since(start); took > c.left || took < c.left*9/10-1 {
					t.Errorf("the lease went on for %v, want %v (R13)", took, c.left)
				}
			})
		})
	}
}

func TestExtendUnsupported(t *testing.T) {
	p := declares{noExtend{memory.New(nil)}, core.Capabilities{Resolution: 1}}
	lease := mustLock(t, newLocker(t, p), job)
	if err := lease.Extend(t.Context(), time.Minute); !errors.Is(err, core.ErrUnsupported) {
		t.Errorf("Extend = %v, want ErrUnsupported", err)
	}
	if lease.Err() != nil {
		t.Errorf("the lease ended: %v", lease.Err())
	}
}

func TestReleaseTwice(t *testing.T) {
	s := newStub()
	lease := mustLock(t, newLocker(t, s), job)
	ctx, cancel := lease.Context(t.Context())
	defer cancel()
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), core.ErrLost) {
		t.Errorf("after release the context's cause is %v, want ErrLost", context.Cause(ctx))
	}
	calls := len(s.log())
	if err := lease.Release(t.Context()); !errors.Is(err, core.ErrLost) {
		t.Errorf("the second Release = %v, want ErrLost (R6)", err)
	}
	if err := lease.Extend(t.Context(), time.Hour); !errors.Is(err, core.ErrLost) {
		t.Errorf("Extend after Release = %v, want ErrLost (R7)", err)
	}
	if len(s.log()) != calls {
		t.Errorf("a released lease asked the store again: %v", s.log()[calls:])
	}
	again, cancelAgain := lease.Context(t.Context())
	defer cancelAgain()
	if again.Err() == nil {
		t.Error("a context made from a released lease is alive")
	}
}

func TestReleaseIgnoresCancellation(t *testing.T) {
	s := newStub()
	lease := mustLock(t, newLocker(t, s), job)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := lease.Release(ctx); err != nil || s.jobHeld(t) {
		t.Errorf("Release with a cancelled context = %v; still held: %v (R11)", err, s.jobHeld(t))
	}
}

func TestReleaseTriesAgain(t *testing.T) {
	down := errors.New("connection reset")
	type release = func(context.Context, core.Grant, time.Duration, func(context.Context, core.Grant, time.Duration) error) error
	for _, c := range []struct {
		name    string
		release func(try int) release
		want    error
		held    bool
	}{
		{"fails once", func(try int) release {
			return func(ctx context.Context, g core.Grant, d time.Duration, next func(context.Context, core.Grant, time.Duration) error) error {
				if try == 1 {
					return down
				}
				return next(ctx, g, d)
			}
		}, nil, false},
		{"the answer is lost once", func(try int) release {
			return func(ctx context.Context, g core.Grant, d time.Duration, next func(context.Context, core.Grant, time.Duration) error) error {
				err := next(ctx, g, d)
				if try == 1 {
					return core.Uncertain(down)
				}
				return err
			}
		}, nil, false},
		{"fails for good", func(int) release {
			return func(context.Context, core.Grant, time.Duration, func(context.Context, core.Grant, time.Duration) error) error {
				return down
			}
		}, down, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, try := newStub(), 0
				s.release = func(ctx context.Context, g core.Grant, d time.Duration, next func(context.Context, core.Grant, time.Duration) error) error {
					try++
					return c.release(try)(ctx, g, d, next)
				}
				lease := mustLock(t, newLocker(t, s), job)
				if err := lease.Release(t.Context()); !errors.Is(err, c.want) {
					t.Errorf("Release = %v, want %v", err, c.want)
				}
				if got := s.jobHeld(t); got != c.held {
					t.Errorf("held afterwards: %v, want %v", got, c.held)
				}
			})
		})
	}
}

func TestReleaseOfAnotherGrantIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		l := newLocker(t, s)
		lease := mustLock(t, l, job)
		s.Store().Remove("job") // by an operator
		successor := mustLock(t, l, job)
		if err := lease.Release(t.Context()); !errors.Is(err, core.ErrLost) {
			t.Errorf("Release = %v, want ErrLost (R6)", err)
		}
		if !s.jobHeld(t) || successor.Err() != nil {
			t.Error("the successor's lock was freed (R6)")
		}
	})
}

func TestHungReleaseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 4 * time.Second
		s := newStub()
		thaw := make(chan struct{})
		s.release = func(context.Context, core.Grant, time.Duration, func(context.Context, core.Grant, time.Duration) error) error {
			<-thaw
			return nil
		}
		lease := mustLock(t, newLocker(t, s, core.WithCleanupLimit(limit)), job)
		start := time.Now()
		if err := lease.Release(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Release = %v, want DeadlineExceeded (R11)", err)
		}
		if took := time.Since(start); took > limit {
			t.Errorf("Release took %v, want at most %v (R11)", took, limit)
		}
		close(thaw)
	})
}

func TestReleaseDoesNotWaitForAHungExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 4 * time.Second
		s := newStub()
		thaw := make(chan struct{})
		s.extend = func(context.Context, core.Grant, time.Duration, func(context.Context, core.Grant, time.Duration) (core.Grant, error)) (core.Grant, error) {
			<-thaw
			return core.Grant{}, errors.New("too late")
		}
		lease := mustLock(t, newLocker(t, s, core.WithCleanupLimit(limit)), core.Lock{Name: "job", AtMostFor: time.Hour})
		extended := make(chan error)
		go func() { extended <- lease.Extend(context.Background(), time.Hour) }()
		synctest.Wait()
		start := time.Now()
		if err := lease.Release(t.Context()); err != nil || s.jobHeld(t) {
			t.Errorf("Release = %v; still held: %v", err, s.jobHeld(t))
		}
		if took := time.Since(start); took > limit {
			t.Errorf("Release waited %v for the extension, want at most %v (R11)", took, limit)
		}
		if err := <-extended; !errors.Is(err, core.ErrLost) {
			t.Errorf("Extend of a lease that was released meanwhile = %v, want ErrLost", err)
		}
		close(thaw)
	})
}

// A lease that has run out is released by its holder all the same, once.
func TestReleaseOfALeaseThatRanOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStub()
		lease := mustLock(t, newLocker(t, s), job)
		<-lease.Done() // before the store's end, by the margin
		if err := lease.Release(t.Context()); err != nil || s.jobHeld(t) {
			t.Errorf("Release = %v; still held: %v", err, s.jobHeld(t))
		}
		if err := lease.Release(t.Context()); !errors.Is(err, core.ErrLost) {
			t.Errorf("the second Release = %v, want ErrLost", err)
		}
		if n := len(s.log()); n != 2 {
			t.Errorf("the store was asked %v, want acquire and release", s.log())
		}
	})
}

func TestContextFollowsItsParent(t *testing.T) {
	lease := mustLock(t, newLocker(t, memory.New(nil)), job)
	defer func() { _ = lease.Release(t.Context()) }()
	parent, cancelParent := context.WithCancelCause(t.Context())
	ctx, cancel := lease.Context(parent)
	defer cancel()
	reason := errors.New("deploy")
	cancelParent(reason)
	<-ctx.Done()
	if !errors.Is(context.Cause(ctx), reason) {
		t.Errorf("cause %v, want the parent's", context.Cause(ctx))
	}
	if lease.Err() != nil {
		t.Errorf("the parent's end ended the lease: %v", lease.Err())
	}
}

func TestFromContext(t *testing.T) {
	l := newLocker(t, memory.New(nil))
	if _, ok := core.FromContext(t.Context()); ok {
		t.Error("a bare context carries a lease")
	}
	if err := core.AssertLocked(t.Context(), "outer"); !errors.Is(err, core.ErrLost) {
		t.Errorf("AssertLocked without a lease = %v, want ErrLost", err)
	}
	outer := mustLock(t, l, core.Lock{Name: "outer", AtMostFor: time.Minute})
	ctx, cancel := outer.Context(t.Context())
	defer cancel()
	inner := mustLock(t, l, core.Lock{Name: "inner", AtMostFor: time.Minute})
	ctx, cancel = inner.Context(ctx)
	defer cancel()
	if got, ok := core.FromContext(ctx); !ok || got != inner {
		t.Errorf("FromContext = %v, %v, want the innermost lease", got, ok)
	}
	for _, name := range []string{"outer", "inner"} {
		if err := core.AssertLocked(ctx, name); err != nil {
			t.Errorf("AssertLocked(%q) = %v", name, err)
		}
	}
	if err := core.AssertLocked(ctx, "other"); !errors.Is(err, core.ErrLost) {
		t.Errorf("AssertLocked of another name = %v, want ErrLost", err)
	}
	_ = outer.Release(t.Context())
	if err := core.AssertLocked(ctx, "outer"); !errors.Is(err, core.ErrLost) {
		t.Errorf("AssertLocked of a released lock = %v, want ErrLost", err)
	}
	_ = inner.Release(t.Context())
}

// Neither holding leases nor having held them costs goroutines. Other tests' may
// end or begin meanwhile, but not so many.
func TestNothingRemains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const leases, spare = 200, 50
		before := runtime.NumGoroutine()
		l := newLocker(t, memory.New(nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var held []*core.Lease
		for i := range leases {
			lease, err := l.TryLock(ctx, core.Lock{Name: fmt.Sprint("job", i), AtMostFor: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			_, done := lease.Context(ctx)
			t.Cleanup(done)
			held = append(held, lease)
		}
		synctest.Wait() // until the attempts' own goroutines have ended
		if n := runtime.NumGoroutine() - before; n > spare {
			t.Errorf("%d held leases cost %d goroutines (R16)", leases, n)
		}
		for _, lease := range held {
			if err := lease.Release(ctx); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > spare {
			t.Errorf("%d released leases left %d goroutines (R16)", leases, n)
		}
	})
}
