package redis_test

import (
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/providers/redis"
)

// contest runs the ways of doing one thing in turn, in small blocks, so that all
// of them see the same machine, and reports the time of each; and, as "x", the
// time of each of the others relative to the first.
func contest(b *testing.B, ways ...way) {
	b.Helper()
	const block = 20
	took := make([]time.Duration, len(ways))
	for _, w := range ways {
		w.run(block) // opens its connections
	}
	blocks := 0
	for b.Loop() {
		for i, w := range ways {
			start := time.Now()
			w.run(block)
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

type way struct {
	name string
	run  func(n int)
}

func repeat(b *testing.B, f func() error) func(int) {
	return func(n int) {
		for range n {
			if err := f(); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkAcquireRelease compares an acquisition and its release through the
// Provider and through core.Locker with the same scripts on the bare client, and
// with what is usual elsewhere: SET NX PX, and a script that compares and deletes.
func BenchmarkAcquireRelease(b *testing.B) {
	f := newFixture(b)
	ctx := b.Context()
	p := f.provider(f.client)
	locker, err := core.New(p)
	if err != nil {
		b.Fatal(err)
	}
	f.release(p, f.acquire(p, "provider")) // the server has the scripts
	acquire, release := redis.Scripts()
	key := func(name string) []string { return []string{"job-lock:" + f.environment + ":" + name} }
	compare := client.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)
	contest(b,
		way{"bare", repeat(b, func() error {
			holder := core.FormatHolder("test", rand.Text())
			err := f.client.EvalSha(ctx, acquire, key("bare"), holder, time.Hour.Milliseconds()).Err()
			return errors.Join(err, f.client.EvalSha(ctx, release, key("bare"), holder, 0).Err())
		})},
		way{"provider", repeat(b, func() error {
			g, err := p.Acquire(ctx, claim("provider"))
			return errors.Join(err, p.Release(ctx, g, 0))
		})},
		way{"locker", repeat(b, func() error {
			lease, err := locker.TryLock(ctx, core.Lock{Name: "locker", AtMostFor: time.Hour})
			if err != nil {
				return err
			}
			return lease.Release(ctx)
		})},
		way{"setnx", repeat(b, func() error {
			holder := core.FormatHolder("test", rand.Text())
			err := f.client.SetNX(ctx, key("setnx")[0], holder, time.Hour).Err()
			return errors.Join(err, compare.Run(ctx, f.client, key("setnx"), holder).Err())
		})},
	)
}

// BenchmarkLoser compares an attempt on a held lock with the cheapest command
// there is, and with a SET NX that does not tell who holds it. Eight at a time.
func BenchmarkLoser(b *testing.B) {
	f := newFixture(b)
	ctx := b.Context()
	p := f.provider(f.client)
	f.acquire(p, "held")
	eight := func(f func() error) func(int) {
		return func(n int) {
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
		}
	}
	contest(b,
		way{"ping", eight(func() error { return f.client.Ping(ctx).Err() })},
		way{"provider", eight(func() error {
			if _, err := p.Acquire(ctx, claim("held")); !errors.Is(err, core.ErrHeld) {
				return errors.Join(errors.New("not held"), err)
			}
			return nil
		})},
		way{"setnx", eight(func() error {
			ok, err := f.client.SetNX(ctx, "job-lock:"+f.environment+":held", "another", time.Hour).Result()
			if ok {
				return errors.New("not held")
			}
			return err
		})},
	)
}
