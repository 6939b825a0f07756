package core_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/providers/memory"
)

func Example() {
	locker, err := core.New(memory.New(nil)) // any provider
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := locker.Run(context.Background(), core.Lock{
		Name:       "nightly-report",
		AtMostFor:  30 * time.Minute,
		AtLeastFor: time.Minute,
	}, func(ctx context.Context) error {
		fmt.Println("reporting")
		return ctx.Err()
	})
	fmt.Println(result.Outcome, err)
	// Output:
	// reporting
	// ran <nil>
}

func ExampleNew() {
	locker, err := core.New(memory.New(nil),
		core.WithOwner("reports/eu-1"),
		core.WithLogger(slog.New(slog.NewTextHandler(os.Stderr, nil))),
		core.WithCleanupLimit(2*time.Second),
	)
	fmt.Println(locker != nil, err)
	// Output: true <nil>
}

func ExampleLocker_Run() {
	locker, err := core.New(memory.New(nil), core.WithOwner("replica-1"))
	if err != nil {
		fmt.Println(err)
		return
	}
	job := core.Lock{Name: "cleanup", AtMostFor: 10 * time.Minute, AtLeastFor: 30 * time.Second}
	clean := func(context.Context) error { fmt.Println("cleaning"); return nil }

	first, err := locker.Run(context.Background(), job, clean)
	fmt.Println(first.Outcome, err)

	// Another replica's tick comes a little later.
	second, err := locker.Run(context.Background(), job, clean)
	fmt.Println(second.Outcome, "held by", second.Held.Owner, err)
	// Output:
	// cleaning
	// ran <nil>
	// skipped held by replica-1 <nil>
}

func ExampleLocker_TryLock() {
	locker, err := core.New(memory.New(nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	lease, err := locker.TryLock(ctx, core.Lock{Name: "import", AtMostFor: time.Minute})
	switch {
	case errors.Is(err, core.ErrHeld):
		fmt.Println("another replica does it")
		return
	case err != nil:
		fmt.Println("the store could not decide:", err)
		return
	}
	defer func() { _ = lease.Release(ctx) }()

	work, cancel := lease.Context(ctx) // ends when the lease does
	defer cancel()
	fmt.Println("importing", lease.Name(), work.Err())
	// Output: importing import <nil>
}

func ExampleHeldError() {
	locker, err := core.New(memory.New(nil), core.WithOwner("replica-1"), core.WithDefaultAtMostFor(time.Hour))
	if err != nil {
		fmt.Println(err)
		return
	}
	job := core.Lock{Name: "rollup"} // for the default of an hour
	if _, err := locker.TryLock(context.Background(), job); err != nil {
		fmt.Println(err)
		return
	}
	_, err = locker.TryLock(context.Background(), job)
	if held, ok := errors.AsType[*core.HeldError](err); ok {
		fmt.Println(held.Name, "is held by", held.Owner, "for", held.Until.Sub(held.Since))
	}
	// Output: rollup is held by replica-1 for 1h0m0s
}

func ExampleLocker_Wrap() {
	locker, err := core.New(memory.New(nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	tick := locker.Wrap(core.Lock{Name: "heartbeat", AtMostFor: time.Minute}, func(context.Context) error {
		fmt.Println("tick")
		return nil
	})
	for range 2 { // a time.Ticker or a scheduler calls it
		if err := tick(context.Background()); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// tick
	// tick
}

func ExampleLease_Extend() {
	locker, err := core.New(memory.New(nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = locker.Run(context.Background(), core.Lock{Name: "migrate", AtMostFor: time.Minute}, func(ctx context.Context) error {
		lease, _ := core.FromContext(ctx)
		before := lease.Until()
		if err := lease.Extend(ctx, time.Hour); err != nil {
			return err // lost, or the store did not answer
		}
		fmt.Println("longer:", lease.Until().After(before))
		return nil
	})
	fmt.Println(err)
	// Output:
	// longer: true
	// <nil>
}

func ExampleAssertLocked() {
	locker, err := core.New(memory.New(nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	charge := func(ctx context.Context) error {
		if err := core.AssertLocked(ctx, "billing"); err != nil {
			return err // somebody called it without its lock
		}
		fmt.Println("charging")
		return nil
	}
	_, err = locker.Run(context.Background(), core.Lock{Name: "billing", AtMostFor: time.Minute}, charge)
	fmt.Println(err)
	fmt.Println(charge(context.Background()))
	// Output:
	// charging
	// <nil>
	// shedbolt: assert "billing": lock is lost: the context carries no lease of that name
}

func ExampleFromContext() {
	locker, err := core.New(memory.New(nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = locker.Run(context.Background(), core.Lock{Name: "export", AtMostFor: time.Minute}, func(ctx context.Context) error {
		lease, ok := core.FromContext(ctx)
		fmt.Println(ok, lease.Name(), lease.Fence())
		return nil
	})
	// Output: true export 1
}

func ExampleParseDuration() {
	for _, s := range []string{"1h30m", "PT10M", "P1DT2H", "P1M"} {
		d, err := core.ParseDuration(s)
		fmt.Println(d, err)
	}
	// Output:
	// 1h30m0s <nil>
	// 10m0s <nil>
	// 26h0m0s <nil>
	// 0s shedbolt: invalid duration: "P1M" has years or months, whose length varies: use weeks, days or hours
}

func ExampleCheckName() {
	fmt.Println(core.CheckName("nightly/report"))
	fmt.Println(core.CheckName(" report"))
	// Output:
	// <nil>
	// shedbolt: invalid lock name: " report" begins or ends with white space
}

func ExampleLock_Check() {
	fmt.Println(core.Lock{Name: "job", AtMostFor: time.Minute, AtLeastFor: time.Hour}.Check())
	// Output: shedbolt: invalid duration: AtLeastFor 1h0m0s is longer than AtMostFor 1m0s
}

func ExampleFormatHolder() {
	fmt.Println(core.FormatHolder("host/4711", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
	// Output: host/4711/ABCDEFGHIJKLMNOPQRSTUVWXYZ
}

func ExampleParseHolder() {
	label, token := core.ParseHolder("host/4711/ABCDEFGHIJKLMNOPQRSTUVWXYZ")
	fmt.Println(label, token)
	label, token = core.ParseHolder("jvm-host-7") // as ShedLock writes it
	fmt.Printf("%s %q\n", label, token)
	// Output:
	// host/4711 ABCDEFGHIJKLMNOPQRSTUVWXYZ
	// jvm-host-7 ""
}

func ExampleUncertain() {
	err := core.Uncertain(errors.New("connection reset by peer"))
	fmt.Println(errors.Is(err, core.ErrUncertain), err)
	// Output: true outcome is uncertain: connection reset by peer
}
