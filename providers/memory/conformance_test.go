package memory_test

import (
	"testing"
	"time"

	"github.com/shedbolt/shedbolt/conformancetest"
	"github.com/shedbolt/shedbolt/internal/memtest"
	"github.com/shedbolt/shedbolt/providers/memory"
)

func TestConformance(t *testing.T) {
	for name, offset := range map[string]time.Duration{
		"store_clock_true":          0,
		"store_clock_an_hour_ahead": time.Hour,
		"store_clock_a_day_behind":  -24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			store := memory.NewStore(memtest.ServerClock(offset))
			h := memtest.Harness(store)
			h.Name = "memory, " + name
			conformancetest.Run(t, h)
		})
	}
}
