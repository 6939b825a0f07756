package conformancetest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/shedbolt/shedbolt/conformancetest"
	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/providers/memory"
)

// A provider's conformance test, in its own package. Here the store is memory's;
// Peek reads it beside the provider under test.
func ExampleRun() {
	testConformance := func(t *testing.T) {
		store := memory.NewStore(nil)
		conformancetest.Run(t, conformancetest.Harness{
			Name: "memory",
			Open: func(testing.TB) core.Provider { return memory.New(store) },
			Peek: func(ctx context.Context, name string) (conformancetest.Peeked, error) {
				r, found, err := memory.New(store).Inspect(ctx, name)
				return conformancetest.Peeked{
					Found: found, Raw: fmt.Sprint(r.LockedBy, r.LockedAt, r.LockedUntil, r.Fence), LockedBy: r.LockedBy,
					LockedAt: r.LockedAt, LockedUntil: r.LockedUntil, StoreTime: store.Now(),
				}, err
			},
			NoBubble: "the store's clock is time.Now, which is the bubble's there",
		})
	}
	_ = testConformance // go test calls it, as TestConformance
}

func ExampleCases() {
	for _, c := range conformancetest.Cases()[:2] {
		fmt.Printf("%s (%s): %s\n", c.ID(), c.Rules, c.Check)
	}
	// Output:
	// exclusion/acquire_then_held (R1 R3 R15): while A holds, B and A itself are refused, and are told by whom, since and until as far as declared
	// exclusion/names_are_independent (R1): one client holds two names at once
}
