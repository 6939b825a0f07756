package core

import (
	"context"
	"fmt"
)

type leaseKey struct{}

// held is a list, so that a task under two locks can assert both.
type held struct {
	lease *Lease
	outer *held
}

func withLease(ctx context.Context, le *Lease) context.Context {
	outer, _ := ctx.Value(leaseKey{}).(*held)
	return context.WithValue(ctx, leaseKey{}, &held{le, outer})
}

// FromContext returns the lease under which a task runs: the innermost one, if
// there are several. ok is false outside a task. The lease may have ended; see
// [Lease.Err].
func FromContext(ctx context.Context) (le *Lease, ok bool) {
	h, _ := ctx.Value(leaseKey{}).(*held)
	if h == nil {
		return nil, false
	}
	return h.lease, true
}

// AssertLocked returns nil if ctx belongs to a task that holds the lock name and
// may still rely on it. It makes no I/O. Put it first in a task that must never
// run without its lock, as one does with ShedLock's LockAssert. The error wraps
// [ErrLost].
func AssertLocked(ctx context.Context, name string) error {
	for h, _ := ctx.Value(leaseKey{}).(*held); h != nil; h = h.outer {
		if h.lease.Name() == name {
			return opError("assert", name, h.lease.Err())
		}
	}
	return opError("assert", name, fmt.Errorf("%w: the context carries no lease of that name", ErrLost))
}
