// Package memtest connects the conformance suite to a memory store, for the
// provider's own test and for the suite's.
package memtest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/shedbolt/shedbolt/conformancetest"
	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/providers/memory"
)

// ServerClock is the machine's clock plus an offset. Unlike time.Now it goes on in
// a synctest bubble, as the clock of a server does.
func ServerClock(offset time.Duration) func() time.Time {
	return func() time.Time { return machineTime().Add(offset) }
}

// Harness makes clients of one store.
func Harness(store *memory.Store) conformancetest.Harness {
	peek := memory.New(store)
	return conformancetest.Harness{
		Name: "memory",
		Open: func(testing.TB) core.Provider { return memory.New(store) },
		Peek: func(ctx context.Context, name string) (conformancetest.Peeked, error) {
			now := store.Now()
			r, found, err := peek.Inspect(ctx, name)
			if err != nil || !found {
				return conformancetest.Peeked{StoreTime: now}, err
			}
			return conformancetest.Peeked{
				Found: true, LockedBy: r.LockedBy, LockedAt: r.LockedAt, LockedUntil: r.LockedUntil, StoreTime: r.StoreTime,
				Raw: fmt.Sprintf("%s|%v|%v|%d", r.LockedBy, r.LockedAt, r.LockedUntil, r.Fence),
			}, nil
		},
		Remove: func(_ context.Context, name string) error {
			store.Remove(name)
			return nil
		},
		Put: func(_ context.Context, name, lockedBy string, since, until time.Duration) error {
			now := store.Now()
			store.Put(core.Record{Name: name, LockedBy: lockedBy, LockedAt: now.Add(since), LockedUntil: now.Add(until)})
			return nil
		},
	}
}
