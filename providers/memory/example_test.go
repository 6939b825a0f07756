package memory_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/providers/memory"
)

// A test of a scheduled task: two replicas, one store, and a clock that stands
// still until the test moves it.
func Example() {
	clock := memory.NewClock(time.Date(2026, 3, 29, 0, 59, 0, 0, time.UTC))
	store := memory.NewStore(clock.Now)
	a, _ := core.New(memory.New(store), core.WithOwner("a"))
	b, _ := core.New(memory.New(store), core.WithOwner("b"))
	report := core.Lock{Name: "report", AtMostFor: time.Hour, AtLeastFor: time.Minute}
	task := func(context.Context) error { return nil }

	r, _ := a.Run(context.Background(), report, task)
	fmt.Println("a:", r.Outcome)
	r, _ = b.Run(context.Background(), report, task)
	fmt.Println("b:", r.Outcome, "until", r.Held.Until.Format(time.TimeOnly))
	clock.Advance(time.Minute)
	r, _ = b.Run(context.Background(), report, task)
	fmt.Println("b:", r.Outcome)
	// Output:
	// a: ran
	// b: skipped until 01:00:00
	// b: ran
}

func ExampleNew() {
	locker, err := core.New(memory.New(nil)) // a store of its own
	fmt.Println(locker != nil, err)
	// Output: true <nil>
}

func ExampleNewStore() {
	store := memory.NewStore(nil) // on this process's clock
	store.Put(core.Record{
		Name: "report", LockedBy: "jvm-host",
		LockedAt: store.Now(), LockedUntil: store.Now().Add(time.Minute),
	})
	locker, _ := core.New(memory.New(store))
	_, err := locker.TryLock(context.Background(), core.Lock{Name: "report", AtMostFor: time.Minute})
	held, _ := errors.AsType[*core.HeldError](err)
	fmt.Println("held by", held.Owner)
	fmt.Println("removed:", store.Remove("report"))
	// Output:
	// held by jvm-host
	// removed: true
}

func ExampleNewClock() {
	clock := memory.NewClock(time.Unix(0, 0))
	clock.Advance(time.Minute)
	fmt.Println(clock.Now().UTC())
	// Output: 1970-01-01 00:01:00 +0000 UTC
}
