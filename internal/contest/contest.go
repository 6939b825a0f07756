// Package contest compares ways of doing one thing in a benchmark: as ratios
// within one run, because times say little about another machine or moment.
package contest

import (
	"sync"
	"testing"
	"time"
)

// Way is one way of doing it.
type Way struct {
	name string
	do   func(n int)
}

// Run runs the ways in turn, in small blocks, so that all of them see the same
// machine. It reports the time of each; and, as "x", the time of each of the others
// relative to the first.
func Run(b *testing.B, ways ...Way) {
	b.Helper()
	const block = 20
	took := make([]time.Duration, len(ways))
	for _, w := range ways {
		w.do(block) // opens connections and prepares statements
	}
	blocks := 0
	for b.Loop() {
		for i, w := range ways {
			start := time.Now()
			w.do(block)
			took[i] += time.Since(start)
		}
		blocks++
	}
	for i, w := range ways {
		b.ReportMetric(float64(took[i].Nanoseconds())/float64(blocks*block), w.name+"-ns")
		if i > 0 {
			b.ReportMetric(float64(took[i])/float64(took[0]), w.name+"-x")
		}
	}
	b.ReportMetric(0, "ns/op") // a loop's time says nothing
}

// Alone is a way in which one client calls f.
func Alone(b *testing.B, name string, f func() error) Way {
	b.Helper()
	return Way{name, func(n int) {
		for range n {
			if err := f(); err != nil {
				b.Fatal(err)
			}
		}
	}}
}

// Eight is a way in which eight clients call f at a time.
func Eight(b *testing.B, name string, f func() error) Way {
	b.Helper()
	return Way{name, func(n int) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range n {
					if err := f(); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}}
}
