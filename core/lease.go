package core

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Lease is a lock that this process holds, until it is released, lost or used
// up. It is safe for concurrent use.
type Lease struct {
	locker *Locker
	lock   Lock // durations rounded to the store's resolution

	calls chan struct{} // holds one element while an Extend or Release is on its way

	mu       sync.Mutex
	grant    Grant
	deadline time.Time // local monotonic time
	timer    *time.Timer
	released bool

	ended context.Context // done when the lease is; its cause is the reason
	end   context.CancelCauseFunc
}

// errReleased is why a released lease is of no more use.
var errReleased = fmt.Errorf("%w: it was released", ErrLost)

// errUsedUp is why a lease ends that was not released in time (R13).
var errUsedUp = fmt.Errorf("%w: its time is used up", ErrLost)

func newLease(l *Locker, k Lock, g Grant, deadline time.Time) *Lease {
	le := &Lease{locker: l, lock: k, calls: make(chan struct{}, 1), grant: g, deadline: deadline}
	le.ended, le.end = context.WithCancelCause(context.Background())
	le.mu.Lock() // the timer may fire before it is stored
	defer le.mu.Unlock()
	le.timer = time.AfterFunc(time.Until(deadline), le.usedUp)
	return le
}

// usedUp runs when the timer fires. The deadline may have moved meanwhile.
func (le *Lease) usedUp() {
	le.mu.Lock()
	late := !time.Now().Before(le.deadline)
	le.mu.Unlock()
	if late {
		le.lose(errUsedUp)
	}
}

// lose ends the lease with a reason other than its release.
func (le *Lease) lose(reason error) {
	le.mu.Lock()
	first := le.ended.Err() == nil
	le.timer.Stop()
	le.end(reason)
	le.mu.Unlock()
	if first {
		le.locker.log.Warn("shedbolt: lease lost", "lock", le.lock.Name, "reason", reason)
	}
}

func (le *Lease) current() Grant {
	le.mu.Lock()
	defer le.mu.Unlock()
	return le.grant
}

// Name is the lock's name.
func (le *Lease) Name() string { return le.lock.Name }

// Owner is the label under which the lock is held.
func (le *Lease) Owner() string { return le.locker.owner }

// Token identifies this acquisition and no other. It is what the store keeps to
// decide ownership: hand it on only where the holder's identity is meant.
func (le *Lease) Token() string { return le.current().Token }

// Fence is the fencing number: for one name, a later acquisition has a larger
// one. It is 0 where the provider has none; see [CapFence].
func (le *Lease) Fence() int64 { return le.current().Fence }

// Since is the store's time of the acquisition, in UTC.
func (le *Lease) Since() time.Time { return le.current().LockedAt }

// Until is the store's time at which the lock becomes free if nobody releases
// it, in UTC. For the local time use [Lease.Deadline].
func (le *Lease) Until() time.Time { return le.current().LockedUntil }

// Deadline is the local time at which the lease ends unless it is extended. It
// comes before the store's, by the margin given in the package documentation.
func (le *Lease) Deadline() time.Time {
	le.mu.Lock()
	defer le.mu.Unlock()
	return le.deadline
}

// Done is closed when the lease ends: released, lost or used up.
func (le *Lease) Done() <-chan struct{} { return le.ended.Done() }

// Err is nil while the lease may be relied on, and afterwards an error that
// wraps [ErrLost] and says why not. It looks at the local clock and makes no
// I/O.
func (le *Lease) Err() error {
	if le.ended.Err() == nil {
		// A process that was stopped may get here before its timer does.
		le.usedUp()
	}
	return context.Cause(le.ended)
}

// Context returns a child of parent for the work that the lease guards. It is
// cancelled with a cause that wraps [ErrLost] when the lease ends, and carries
// the lease for [FromContext] and [AssertLocked]. Call the cancel function when
// the work is done.
func (le *Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	return le.whileLive(withLease(parent, le))
}

// whileLive returns a child of parent that is cancelled, with the reason, when
// the lease ends.
func (le *Lease) whileLive(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	if err := le.Err(); err != nil {
		cancel(err)
	}
	stop := context.AfterFunc(le.ended, func() { cancel(context.Cause(le.ended)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Extend makes the lease end d from now, on the store's clock: later or sooner
// than before. d counts from now, not from the acquisition; AtLeastFor still
// counts from the acquisition (R5).
//
// The error is [ErrLost] when the lease is over, whereupon its contexts are
// cancelled, and [ErrUnsupported] when the provider can't extend. After any other
// error the lease goes on, until the earlier of its old and its new end.
func (le *Lease) Extend(ctx context.Context, d time.Duration) error {
	return opError("extend", le.lock.Name, le.extend(ctx, d))
}

func (le *Lease) extend(ctx context.Context, d time.Duration) error {
	l := le.locker
	if err := checkDuration("the extension", d, 1); err != nil {
		return err
	}
	if l.extender == nil {
		return fmt.Errorf("%w: extend", ErrUnsupported)
	}
	d = roundUp(d, l.resolution)

	select {
	case le.calls <- struct{}{}:
		defer func() { <-le.calls }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := le.Err(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// The end of the lease ends the call: by then no answer is of use, and Release
	// must not wait for it.
	ctx, cancel := le.whileLive(ctx)
	defer cancel()
	start := time.Now()
	grant, err := bounded(ctx, l.cleanup/4, func(Grant, error) {}, func(ctx context.Context) (Grant, error) {
		return l.extender.Extend(ctx, le.current(), d)
	})
	switch deadline := l.localDeadline(start, d); {
	case err == nil:
		le.move(deadline, &grant)
		return le.Err() // an answer that came after the new end is no help (R12)
	case errors.Is(err, ErrLost):
		le.lose(err)
		return err
	case errors.Is(err, ErrUncertain) && deadline.Before(le.Deadline()):
		le.move(deadline, nil)
	}
	return withContext(ctx, err)
}

// move sets the local end, and the grant if there is a new one.
func (le *Lease) move(deadline time.Time, g *Grant) {
	le.mu.Lock()
	defer le.mu.Unlock()
	if le.ended.Err() != nil {
		return
	}
	if g != nil {
		le.grant = *g
	}
	le.deadline = deadline
	le.timer.Reset(time.Until(deadline))
}

// Release frees the lock: at once, or AtLeastFor after its acquisition if that
// is later (R5). Contexts made from the lease end first. The lease must not be
// used afterwards; releasing it again is harmless and returns [ErrLost].
//
// Release ignores ctx's cancellation, takes its values, and has a limit of its
// own: see [WithCleanupLimit]. The error is [ErrLost] when the store no longer
// held this grant. After any other error the lock stays until its at-most time.
func (le *Lease) Release(ctx context.Context) error {
	le.mu.Lock()
	reason, again := context.Cause(le.ended), le.released
	le.released = true
	le.timer.Stop()
	le.end(errReleased)
	le.mu.Unlock()
	if again {
		return opError("release", le.lock.Name, errReleased)
	}

	le.calls <- struct{}{} // an extension on its way has just been told to end
	defer func() { <-le.calls }()
	l := le.locker
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.cleanup*3/4)
	defer cancel()
	err := l.release(ctx, le.current(), le.lock.AtLeastFor)
	if errors.Is(err, errMaybeReleased) && reason == nil && time.Now().Before(le.Deadline()) {
		err = nil // still ours by the local clock, so our own first attempt freed it
	}
	err = opError("release", le.lock.Name, settled(err))
	if err != nil {
		l.log.WarnContext(ctx, "shedbolt: release failed", "lock", le.lock.Name, "error", err)
	}
	return err
}
