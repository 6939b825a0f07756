package core

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// errAbandoned says that a provider's call did not return although its context
// had ended.
var errAbandoned = errors.New("the store's client did not return in time")

// bounded makes call and returns its result, at the latest patience after ctx
// has ended, also when call ignores ctx (R11). A call that was abandoned so is
// handed to late when it returns after all.
//
// The call runs in a goroutine of its own because that is the only way to leave
// a client library that hangs. It costs about a microsecond; a context that
// never ends needs none.
func bounded[T any](ctx context.Context, patience time.Duration, late func(T, error), call func(context.Context) (T, error)) (T, error) {
	if ctx.Done() == nil {
		return call(ctx)
	}
	type answer struct {
		value    T
		err      error
		panicked any
	}
	var taken atomic.Bool // by the waiting caller, or by the late return
	answers := make(chan answer, 1)
	go func() {
		a := answer{err: errors.New("the provider called runtime.Goexit")}
		defer func() {
			// A provider's panic belongs to the caller's goroutine, where the
			// application may recover it.
			if a.panicked = recover(); a.panicked != nil {
				a.err = fmt.Errorf("the provider panicked: %v", a.panicked)
			}
			answers <- a
			if taken.Load() && taken.CompareAndSwap(true, false) {
				late(a.value, a.err)
			}
		}()
		a.value, a.err = call(ctx)
	}()
	deliver := func(a answer) (T, error) {
		if a.panicked != nil {
			panic(a.panicked)
		}
		return a.value, a.err
	}
	select {
	case a := <-answers:
		return deliver(a)
	case <-ctx.Done():
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case a := <-answers:
		return deliver(a)
	case <-timer.C:
	}
	taken.Store(true)
	select {
	case a := <-answers:
		// It returned in this very moment. Whoever resets the flag handles it.
		if taken.CompareAndSwap(true, false) {
			return deliver(a)
		}
	default:
	}
	var none T
	return none, Uncertain(fmt.Errorf("%w: %w", context.Cause(ctx), errAbandoned))
}

// linger makes a context that ends d after ctx does. An attempt that is under way
// when its caller gives up is better answered than cut off: a store may carry out
// what it has received long after the connection is gone, and after the lock was
// looked for in vain to take it back.
func linger(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if ctx.Done() == nil {
		return ctx, func() {}
	}
	lingering, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	release := func() { cancel(nil) }
	if deadline, ok := ctx.Deadline(); ok { // clients bound their reads by it
		var stop context.CancelFunc
		lingering, stop = context.WithDeadline(lingering, deadline.Add(d))
		release = func() { stop(); cancel(nil) }
	}
	stopWatching := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel(context.Cause(ctx))
		case <-lingering.Done():
		}
	})
	return lingering, func() { stopWatching(); release() }
}
