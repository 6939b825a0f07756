package redis_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/shedbolt/shedbolt/conformancetest"
	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/internal/testenv"
	"github.com/shedbolt/shedbolt/providers/redis"
)

// fixture is a part of the server's keys of a test's own.
type fixture struct {
	testing.TB
	options     *client.Options
	client      *client.Client
	environment string
}

func newFixture(tb testing.TB) *fixture {
	tb.Helper()
	o, err := client.ParseURL(testenv.DSN(tb, "redis"))
	if err != nil {
		tb.Fatal(err)
	}
	f := &fixture{TB: tb, options: o, environment: strings.ToLower(rand.Text()[:12])}
	f.client = f.connect(nil)
	tb.Cleanup(func() {
		for _, key := range f.keys() {
			f.client.Del(context.Background(), key)
		}
	})
	return f
}

func (f *fixture) connect(change func(*client.Options)) *client.Client {
	f.Helper()
	o := *f.options
	if change != nil {
		change(&o)
	}
	c := client.NewClient(&o)
	f.Cleanup(func() { _ = c.Close() })
	return c
}

func (f *fixture) provider(c client.UniversalClient, options ...redis.Option) *redis.Provider {
	f.Helper()
	p, err := redis.New(c, append([]redis.Option{redis.WithEnvironment(f.environment)}, options...)...)
	if err != nil {
		f.Fatal(err)
	}
	return p
}

// keys are all that the tests' providers have made.
func (f *fixture) keys() (keys []string) {
	f.Helper()
	all := f.client.Scan(context.Background(), 0, "*"+f.environment+"*", 1000).Iterator()
	for all.Next(context.Background()) {
		keys = append(keys, all.Val())
	}
	if err := all.Err(); err != nil {
		f.Fatal(err)
	}
	return keys
}

// endless are the locks' keys without expiry.
func (f *fixture) endless() (endless []string) {
	f.Helper()
	for _, key := range f.keys() {
		if strings.HasPrefix(key, "fence:") {
			continue
		}
		ttl, err := f.client.PTTL(context.Background(), key).Result()
		if err != nil {
			f.Fatal(err)
		}
		if ttl == -1 {
			endless = append(endless, key)
		}
	}
	return endless
}

func (f *fixture) acquire(p *redis.Provider, name string) core.Grant {
	f.Helper()
	g, err := p.Acquire(context.Background(), claim(name))
	if err != nil {
		f.Fatalf("Acquire: %v", err)
	}
	return g
}

func (f *fixture) release(p *redis.Provider, g core.Grant) {
	f.Helper()
	if err := p.Release(context.Background(), g, 0); err != nil {
		f.Fatalf("Release: %v", err)
	}
}

func claim(name string) core.Claim {
	return core.Claim{Name: name, Owner: "test", Token: rand.Text(), AtMostFor: time.Hour}
}

func TestNewRefuses(t *testing.T) {
	c := client.NewClient(&client.Options{Addr: "localhost:1"})
	ring := client.NewRing(&client.RingOptions{Addrs: map[string]string{"a": "localhost:1"}})
	t.Cleanup(func() { _, _ = c.Close(), ring.Close() })
	for what, err := range map[string]error{
		"no client":          failure(redis.New(nil)),
		"an empty prefix":    failure(redis.New(c, redis.WithPrefix(""))),
		"a counter's prefix": failure(redis.New(c, redis.WithPrefix("fence:x"))),
		"no environment":     failure(redis.New(c, redis.WithEnvironment(""))),
		"no replica":         failure(redis.New(c, redis.WithWait(0, time.Second))),
		"no time":            failure(redis.New(c, redis.WithWait(1, time.Microsecond))),
		"WAIT on a ring":     failure(redis.New(ring, redis.WithWait(1, time.Second))),
	} {
		if err == nil {
			t.Errorf("New with %s succeeded", what)
		}
	}
}

func failure(_ *redis.Provider, err error) error { return err }

// The form of key and value is ShedLock's.
func TestKeyAndValue(t *testing.T) {
	f := newFixture(t)
	p := f.provider(f.client, redis.WithPrefix("job-lock"))
	g := f.acquire(p, "job")
	value, err := f.client.Get(t.Context(), "job-lock:"+f.environment+":job").Result()
	if err != nil {
		t.Fatal(err)
	}
	if want := "ADDED:" + g.LockedAt.Format("2006-01-02T15:04:05.000Z") + "@" + g.Holder(); value != want {
		t.Errorf("the value is %q, want %q", value, want)
	}
}

// What ShedLock has written since 6.7, and before.
func TestHoldersOfServicesOnTheJVM(t *testing.T) {
	f := newFixture(t)
	p := f.provider(f.client)
	for value, owner := range map[string]string{
		"ADDED:2026-03-29T00:59:50.000Z@host-1:0b0b5b0a-4c3e-4d1f-9f57-3d4c5e6f7a8b": "host-1",
		"ADDED:2026-03-29T00:59:50.000Z@host-1":                                      "host-1",
		"something else":                                                             "something else",
	} {
		key := "job-lock:" + f.environment + ":job"
		if err := f.client.Set(t.Context(), key, value, time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		_, err := p.Acquire(t.Context(), claim("job"))
		held, ok := errors.AsType[*core.HeldError](err)
		if !ok || held.Owner != owner {
			t.Errorf("with %q: %v, want held by %q", value, err, owner)
		}
		r, found, err := p.Inspect(t.Context(), "job")
		if err != nil || !found {
			t.Fatalf("Inspect = %v, %v", found, err)
		}
		if err := p.ForceRelease(t.Context(), r); err != nil {
			t.Errorf("ForceRelease of %q: %v", value, err)
		}
	}
}

// A key of another kind, or one that never expires, is not ours to take.
func TestForeignKeys(t *testing.T) {
	f := newFixture(t)
	p := f.provider(f.client)
	start := "job-lock:" + f.environment + ":"
	f.client.HSet(t.Context(), start+"hash", "a", "b")
	f.client.Set(t.Context(), start+"endless", "x", 0)
	if _, err := p.Acquire(t.Context(), claim("hash")); err == nil || errors.Is(err, core.ErrHeld) || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("Acquire where the key is a hash = %v, want WRONGTYPE", err)
	}
	held, ok := errors.AsType[*core.HeldError](failed(p.Acquire(t.Context(), claim("endless"))))
	if !ok || held.Until.Year() != 9999 {
		t.Errorf("Acquire where the key never expires = %+v, want held for ever", held)
	}
	f.acquire(p, "job")
	var names []string
	for r, err := range p.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, r.Name)
	}
	if len(names) != 2 {
		t.Errorf("List shows %q, want the two locks", names)
	}
}

func failed(_ core.Grant, err error) error { return err }

// Scripts that the server has lost are sent again.
func TestScriptFlush(t *testing.T) {
	f := newFixture(t)
	p := f.provider(f.client, redis.WithFencing())
	g := f.acquire(p, "job")
	flush := func() {
		t.Helper()
		if err := f.client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	flush()
	if _, err := p.Acquire(t.Context(), claim("job")); !errors.Is(err, core.ErrHeld) {
		t.Errorf("Acquire after SCRIPT FLUSH = %v, want ErrHeld", err)
	}
	flush()
	if _, err := p.Extend(t.Context(), g, time.Hour); err != nil {
		t.Errorf("Extend after SCRIPT FLUSH = %v", err)
	}
	flush()
	for _, err := range p.List(t.Context()) {
		if err != nil {
			t.Errorf("List after SCRIPT FLUSH = %v", err)
		}
	}
	flush()
	f.release(p, g)
	flush()
	if err := p.Release(t.Context(), g, 0); !errors.Is(err, core.ErrLost) || errors.Is(err, core.ErrUncertain) {
		t.Errorf("a second Release after SCRIPT FLUSH = %v, want ErrLost: both answers have come", err)
	}
}

// The times that the scripts write and read are those of the calendar.
func TestCalendar(t *testing.T) {
	f := newFixture(t)
	p := f.provider(f.client)
	for _, at := range []time.Time{
		time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1999, 12, 31, 23, 59, 59, 999e6, time.UTC),
		time.Date(2000, 2, 29, 12, 0, 0, 1e6, time.UTC), time.Date(2000, 12, 31, 23, 0, 0, 0, time.UTC),
		time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2028, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(2100, 3, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2399, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(2400, 2, 29, 0, 0, 0, 0, time.UTC),
	} {
		text, ms, err := p.Calendar(t.Context(), at.UnixMilli())
		if want := at.Format("2006-01-02T15:04:05.000Z"); err != nil || text != want || ms != at.UnixMilli() {
			t.Errorf("%v is written as %q and read as %d (%v), want %q and %d", at, text, ms, err, want, at.UnixMilli())
		}
	}
}

// A request that go-redis repeats by itself is told from one that found nothing.
func TestReleaseThatTheClientRepeats(t *testing.T) {
	f := newFixture(t)
	proxy := conformancetest.NewProxy(t, f.options.Addr)
	p := f.provider(f.connect(func(o *client.Options) { o.Addr, o.MaxRetries = proxy.Addr(), 3 }))
	g := f.acquire(p, "job")
	proxy.DropAnswer(0)
	if err := p.Release(t.Context(), g, 0); !errors.Is(err, core.ErrUncertain) {
		t.Errorf("Release whose first answer was lost = %v, want ErrUncertain, for core to settle", err)
	}
	locker, err := core.New(p)
	if err != nil {
		t.Fatal(err)
	}
	lock := core.Lock{Name: "job", AtMostFor: time.Hour}
	result, err := locker.Run(t.Context(), lock, func(context.Context) error { proxy.DropAnswer(0); return nil })
	if err != nil || result.Outcome != core.Ran {
		t.Errorf("Run whose release was answered to nobody = %v, %v; want a run", result.Outcome, err)
	}
}

// Every command that MONITOR shows of a lock's key either gives it an expiry or
// makes none.
func TestCommandsThatMakeKeys(t *testing.T) {
	f := newFixture(t)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", f.options.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	user := f.options.Username
	if user == "" {
		user = "default"
	}
	auth := ""
	if f.options.Password != "" {
		auth = fmt.Sprintf("AUTH %s %s\r\n", user, f.options.Password)
	}
	if _, err := fmt.Fprintf(conn, "%sMONITOR\r\n", auth); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(conn)
	for range strings.Count(auth, "\r\n") + 1 {
		if !lines.Scan() || lines.Text() != "+OK" {
			t.Fatalf("MONITOR: %q, %v", lines.Text(), lines.Err())
		}
	}
	p := f.provider(f.client, redis.WithFencing())
	g := f.acquire(p, "job")
	_, _ = p.Acquire(t.Context(), claim("job"))
	if _, err := p.Extend(t.Context(), g, time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := p.Release(t.Context(), g, time.Minute); err != nil {
		t.Fatal(err)
	}
	f.client.Get(t.Context(), "end of "+f.environment)
	seen := map[string]int{}
	for lines.Scan() && !strings.Contains(lines.Text(), "end of "+f.environment) {
		_, command, _ := strings.Cut(lines.Text(), "lua] ")
		if !strings.Contains(command, `"job-lock:`+f.environment+":job") || strings.Contains(command, "fence:") {
			continue
		}
		word, _, _ := strings.Cut(strings.Trim(strings.ToUpper(command), `"`), `"`)
		seen[word]++
		switch word {
		case "GET", "PEXPIRETIME", "PTTL", "DEL", "PEXPIREAT":
		case "SET":
			if !strings.Contains(command, `"NX" "PX`) {
				t.Errorf("a SET without expiry: %s", command)
			}
		default:
			t.Errorf("a command that this test does not know: %s", command)
		}
	}
	if seen["SET"] == 0 || seen["PEXPIREAT"] == 0 {
		t.Errorf("MONITOR has not shown what it should: %v", seen)
	}
}

const childVar = "SHEDBOLT_REDIS_TEST_CHILD"

// TestKilledClients kills processes with SIGKILL while they acquire, extend and
// release as fast as they can, and looks for keys that would stay for ever.
func TestKilledClients(t *testing.T) {
	if environment := os.Getenv(childVar); environment != "" {
		work(t, environment)
		return
	}
	f := newFixture(t)
	for i := range 20 {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledClients$")
		child.Env = append(os.Environ(), childVar+"="+f.environment)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range 20 + 7*i { // a line for each step: it is killed in the midst of the next
			if !lines.Scan() {
				t.Fatalf("the child ended by itself: %v", lines.Err())
			}
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait() // it was killed
		if endless := f.endless(); len(endless) > 0 {
			t.Fatalf("keys without expiry: %q", endless)
		}
	}
	if len(f.keys()) == 0 {
		t.Error("no child was killed while it held a lock")
	}
}

func work(t *testing.T, environment string) {
	f := newFixture(t)
	f.environment = environment
	p := f.provider(f.client, redis.WithFencing())
	for i := 0; ; i++ {
		g := f.acquire(p, strconv.Itoa(os.Getpid())+"-"+strconv.Itoa(i))
		fmt.Println("acquired")
		if _, err := p.Extend(context.Background(), g, time.Minute); err != nil {
			t.Fatal(err)
		}
		fmt.Println("extended")
		if err := p.Release(context.Background(), g, time.Duration(i%2)*time.Minute); err != nil {
			t.Fatal(err)
		}
		fmt.Println("released")
	}
}

// With too few replicas nothing is left of a claim.
func TestWaitForReplicasThatAreNotThere(t *testing.T) {
	f := newFixture(t)
	p := f.provider(f.client, redis.WithWait(50, 20*time.Millisecond))
	_, err := p.Acquire(t.Context(), claim("job"))
	if err == nil || errors.Is(err, core.ErrHeld) || errors.Is(err, core.ErrUncertain) || !strings.Contains(err.Error(), "of 50 replicas") {
		t.Errorf("Acquire = %v, want that too few replicas have confirmed", err)
	}
	plain := f.provider(f.client)
	g := f.acquire(plain, "job")
	if _, err := p.Extend(t.Context(), g, time.Hour); err == nil || errors.Is(err, core.ErrLost) {
		t.Errorf("Extend = %v, want that too few replicas have confirmed", err)
	}
	f.release(p, g)
}

// A counter that is no number keeps the lock from being granted, and from staying.
func TestCounterOfAnotherKind(t *testing.T) {
	f := newFixture(t)
	f.client.Set(t.Context(), "fence:{job-lock:"+f.environment+":job}", "x", time.Hour)
	_, err := f.provider(f.client, redis.WithFencing()).Acquire(t.Context(), claim("job"))
	if err == nil || errors.Is(err, core.ErrHeld) {
		t.Errorf("Acquire = %v, want an error", err)
	}
	f.acquire(f.provider(f.client), "job")
}

// The number goes on where the lock's key has expired or was deleted.
func TestFenceOutlivesTheLock(t *testing.T) {
	f := newFixture(t)
	p := f.provider(f.client, redis.WithFencing())
	last := int64(0)
	for range 3 {
		g := f.acquire(p, "job")
		if g.Fence <= last {
			t.Errorf("the fence went from %d to %d", last, g.Fence)
		}
		last = g.Fence
		f.client.Del(t.Context(), "job-lock:"+f.environment+":job")
	}
}

// Servers before 7.0 don't know PEXPIRETIME.
func TestOlderServers(t *testing.T) {
	f := newFixture(t)
	user := "shedbolt-" + f.environment
	if err := f.client.Do(t.Context(), "acl", "setuser", user, "on", ">secret", "allkeys", "+@all", "-pexpiretime").Err(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.client.Do(context.Background(), "acl", "deluser", user) })
	p := f.provider(f.connect(func(o *client.Options) { o.Username, o.Password = user, "secret" }))
	g := f.acquire(p, "job")
	if d := g.LockedUntil.Sub(g.LockedAt); (d - time.Hour).Abs() > 2*time.Millisecond {
		t.Errorf("without PEXPIRETIME the lease is %v long, want an hour, to the millisecond", d)
	}
	f.release(p, g)
}
