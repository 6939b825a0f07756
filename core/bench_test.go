package core_test

import (
	"context"
	"testing"

	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/providers/memory"
)

// What core itself costs: a provider that answers at once, with and without a
// context that can end (which takes a goroutine per call, see rule R11).
func BenchmarkLocker(b *testing.B) {
	l, err := core.New(memory.New(nil))
	if err != nil {
		b.Fatal(err)
	}
	ending, cancel := context.WithCancel(b.Context())
	defer cancel()
	for name, ctx := range map[string]context.Context{"EndlessContext": context.Background(), "Context": ending} {
		b.Run(name+"/AcquireRelease", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				lease, err := l.TryLock(ctx, job)
				if err != nil {
					b.Fatal(err)
				}
				if err := lease.Release(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/Held", func(b *testing.B) {
			lease, err := l.TryLock(ctx, job)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.TryLock(ctx, job); err == nil {
					b.Fatal("a held lock was granted")
				}
			}
			if err := lease.Release(ctx); err != nil {
				b.Fatal(err)
			}
		})
	}
}
