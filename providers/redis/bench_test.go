package redis_test

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/internal/contest"
	"github.com/shedbolt/shedbolt/providers/redis"
)

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
	contest.Run(b,
		contest.Alone(b, "bare", func() error {
			holder := core.FormatHolder("test", rand.Text())
			err := f.client.EvalSha(ctx, acquire, key("bare"), holder, time.Hour.Milliseconds()).Err()
			return errors.Join(err, f.client.EvalSha(ctx, release, key("bare"), holder, 0).Err())
		}),
		contest.Alone(b, "provider", func() error {
			g, err := p.Acquire(ctx, claim("provider"))
			return errors.Join(err, p.Release(ctx, g, 0))
		}),
		contest.Alone(b, "locker", func() error {
			lease, err := locker.TryLock(ctx, core.Lock{Name: "locker", AtMostFor: time.Hour})
			if err != nil {
				return err
			}
			return lease.Release(ctx)
		}),
		contest.Alone(b, "setnx", func() error {
			holder := core.FormatHolder("test", rand.Text())
			err := f.client.SetNX(ctx, key("setnx")[0], holder, time.Hour).Err()
			return errors.Join(err, compare.Run(ctx, f.client, key("setnx"), holder).Err())
		}),
	)
}

// BenchmarkLoser compares an attempt on a held lock with the cheapest command
// there is, and with a SET NX that does not tell who holds it. Eight at a time.
func BenchmarkLoser(b *testing.B) {
	f := newFixture(b)
	ctx := b.Context()
	p := f.provider(f.client)
	f.acquire(p, "held")
	contest.Run(b,
		contest.Eight(b, "ping", func() error { return f.client.Ping(ctx).Err() }),
		contest.Eight(b, "provider", func() error {
			if _, err := p.Acquire(ctx, claim("held")); !errors.Is(err, core.ErrHeld) {
				return errors.Join(errors.New("not held"), err)
			}
			return nil
		}),
		contest.Eight(b, "setnx", func() error {
			ok, err := f.client.SetNX(ctx, "job-lock:"+f.environment+":held", "another", time.Hour).Result()
			if ok {
				return errors.New("not held")
			}
			return err
		}),
	)
}
