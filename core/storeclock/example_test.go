package storeclock_test

import (
	"fmt"
	"time"

	"github.com/shedbolt/shedbolt/core/storeclock"
)

// A store that answers within 20 ms and says the second.
func Example() {
	local := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC) // wrong by hours, which does not matter
	clock := storeclock.New(storeclock.WithLocal(func() time.Time { return local }))

	for _, date := range []string{"09:30:00", "09:30:01"} {
		sent := clock.Local()
		local = local.Add(20 * time.Millisecond) // … a request …
		second, _ := time.Parse(time.TimeOnly, date)
		clock.Observe("", sent, clock.Local(), storeclock.Truncated(second, time.Second))
		local = local.Add(280 * time.Millisecond)
	}
	now, ok := clock.Now()
	fmt.Println(ok, now.Earliest.Format("15:04:05.000"), now.Latest.Format("15:04:05.000"), now.Width().Round(time.Millisecond))
	// Output: true 09:30:01.279 09:30:01.600 321ms
}
