package core

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"time"
)

// Locker takes locks in one store. It is safe for concurrent use, keeps no state
// per lock, and has nothing to close: the store's client belongs to the caller.
type Locker struct {
	provider      Provider
	extender      Extender // nil without CapExtend
	resolution    time.Duration
	owner         string
	log           *slog.Logger
	cleanup       time.Duration
	defaultAtMost time.Duration
}

// New makes a Locker on a provider. It makes no I/O. It fails when an option is
// invalid or when the provider declares an ability it does not have.
func New(p Provider, opts ...Option) (*Locker, error) {
	if p == nil {
		return nil, errors.New("shedbolt: New needs a provider")
	}
	l := &Locker{
		provider: p,
		owner:    defaultOwner(),
		log:      slog.New(slog.DiscardHandler),
		cleanup:  DefaultCleanupLimit,
	}
	caps := p.Capabilities()
	if l.resolution = caps.Resolution; l.resolution < 1 {
		return nil, fmt.Errorf("shedbolt: provider %T declares a resolution of %v, want at least 1ns", p, l.resolution)
	}
	if caps.ClockWidth < 0 {
		return nil, fmt.Errorf("shedbolt: provider %T declares a clock width of %v, want 0 or more", p, caps.ClockWidth)
	}
	if caps.Set.Has(CapExtend) {
		var ok bool
		if l.extender, ok = p.(Extender); !ok {
			return nil, fmt.Errorf("shedbolt: provider %T declares %v without the method", p, CapExtend)
		}
	}
	if _, ok := p.(Inspector); caps.Set.Has(CapInspect) && !ok {
		return nil, fmt.Errorf("shedbolt: provider %T declares %v without the methods", p, CapInspect)
	}
	for _, opt := range opts {
		if err := opt(l); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// TryLock makes one attempt to take the lock. On success the lease must be
// released. When somebody else holds the lock the error is [ErrHeld], a
// [*HeldError]; any other error says why the store could not decide.
//
// The lease does not end with ctx, which bounds the attempt alone: make the
// work's context with [Lease.Context].
func (l *Locker) TryLock(ctx context.Context, k Lock) (*Lease, error) {
	if k.AtMostFor == 0 {
		k.AtMostFor = l.defaultAtMost
	}
	if err := k.Check(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, opError("acquire", k.Name, context.Cause(ctx))
	}
	k.AtMostFor = roundUp(k.AtMostFor, l.resolution)
	k.AtLeastFor = roundUp(k.AtLeastFor, l.resolution)
	claim := Claim{Name: k.Name, Owner: l.owner, Token: rand.Text(), AtMostFor: k.AtMostFor, AtLeastFor: k.AtLeastFor}

	start := time.Now()
	grant, err := l.acquire(ctx, claim)
	if err == nil && ctx.Err() != nil {
		// The caller is gone; a grant it can't use is given back (R11).
		err = l.takeBack(ctx, claim, context.Cause(ctx))
	}
	if err != nil {
		return nil, opError("acquire", k.Name, err)
	}
	deadline := l.localDeadline(start, k.AtMostFor)
	if !time.Now().Before(deadline) {
		late := fmt.Errorf("%w: the grant was used up when its answer arrived after %v", ErrLost, time.Since(start).Round(time.Millisecond))
		return nil, opError("acquire", k.Name, l.takeBack(ctx, claim, late)) // R12
	}
	return newLease(l, k, grant, deadline), nil
}

// acquire is one attempt, settled (R3): its errors say that no lock was left in
// the store, or are ErrUncertain.
func (l *Locker) acquire(ctx context.Context, c Claim) (Grant, error) {
	call := func(ctx context.Context) (Grant, error) {
		// Much less than the patience below, within which the client should give up.
		ctx, cancel := linger(ctx, l.cleanup/20)
		defer cancel()
		return l.provider.Acquire(ctx, c)
	}
	giveBack := func(_ Grant, err error) {
		if err == nil || errors.Is(err, ErrUncertain) {
			_ = l.takeBack(context.WithoutCancel(ctx), c, nil)
		}
	}
	grant, err := bounded(ctx, l.cleanup/4, giveBack, call)
	switch {
	case err == nil || errors.Is(err, ErrHeld):
		return grant, err
	case !errors.Is(err, ErrUncertain):
		return Grant{}, withContext(ctx, err)
	case ctx.Err() != nil:
		return Grant{}, l.takeBackUnderWay(ctx, c, withContext(ctx, err))
	}
	// The answer was lost while the caller still waits. Under the same token a
	// second attempt finds the grant of the first, or takes the lock now.
	again, cancel := context.WithTimeout(ctx, l.cleanup/2)
	defer cancel()
	grant, err2 := bounded(again, l.cleanup/4, giveBack, call)
	if err2 == nil || errors.Is(err2, ErrHeld) {
		return grant, err2
	}
	return Grant{}, l.takeBackUnderWay(ctx, c, withContext(ctx, err))
}

// takeBackUnderWay is takeBack for a claim that the store may yet be about to
// carry out: what was not there is looked for once more.
func (l *Locker) takeBackUnderWay(ctx context.Context, c Claim, cause error) error {
	if err := l.takeBack(ctx, c, cause); errors.Is(err, ErrUncertain) {
		return err
	}
	pause(context.WithoutCancel(ctx), underWay)
	return l.takeBack(ctx, c, cause)
}

// underWay is how long a store may need for a request whose connection is gone.
const underWay = 50 * time.Millisecond

// takeBack frees whatever the claim may have taken, and returns cause; joined
// with ErrUncertain if the store could not be asked.
func (l *Locker) takeBack(ctx context.Context, c Claim, cause error) error {
	cause = settled(cause)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.cleanup/2)
	defer cancel()
	g := Grant{Name: c.Name, Owner: c.Owner, Token: c.Token}
	err := l.release(ctx, g, 0)
	if err == nil || errors.Is(err, ErrLost) {
		return cause
	}
	l.log.WarnContext(ctx, "shedbolt: a lock may be left until its at-most time", "lock", c.Name, "error", err)
	return fmt.Errorf("%w: %w, then %w", ErrUncertain, cause, settled(err))
}

const (
	releaseTries = 3
	releasePause = 20 * time.Millisecond
)

// release frees a grant, trying again while the store answers with errors: a
// record that stays held blocks every replica until its at-most time. ctx
// carries the limit.
func (l *Locker) release(ctx context.Context, g Grant, keepFor time.Duration) error {
	uncertain := false
	for try := 1; ; try++ {
		_, err := bounded(ctx, l.cleanup/4, func(struct{}, error) {}, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, l.provider.Release(ctx, g, keepFor)
		})
		switch {
		case err == nil:
			return nil
		case errors.Is(err, ErrLost):
			if uncertain {
				return errMaybeReleased
			}
			return err
		}
		uncertain = uncertain || errors.Is(err, ErrUncertain)
		if try == releaseTries || !pause(ctx, releasePause<<try) {
			return err
		}
	}
}

// errMaybeReleased is the answer "not yours" to a release that was sent twice
// because the first answer was lost.
var errMaybeReleased = fmt.Errorf("%w, or released by a first attempt whose answer was lost", ErrLost)

// pause sleeps for d, give or take half, and reports false if ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d/2 + mathrand.N(d))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// localDeadline is the local end of a lease of length d requested at start: see
// "Clocks" in the package documentation.
func (l *Locker) localDeadline(start time.Time, d time.Duration) time.Time {
	margin := min(d/10, d/1000+20*time.Millisecond) + l.resolution
	return start.Add(d - margin)
}

// withContext makes sure that, if ctx has ended, errors.Is finds why: clients
// report that in words of their own.
func withContext(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, settled(err))
	}
	return settled(err)
}
