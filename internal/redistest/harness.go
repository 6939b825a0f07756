// Package redistest connects the conformance suite to a Redis or Valkey server, for
// the provider's own test (client at its floor version) and for the newest one.
package redistest

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/shedbolt/shedbolt/conformancetest"
	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/providers/redis"
)

// Variant is one way to use the provider, for which the whole suite is run.
type Variant struct {
	// Name names it in the report.
	Name string
	// Cluster says that the DSN is a cluster's.
	Cluster bool
	// Client changes the client's settings.
	Client func(o *client.UniversalOptions)
	// Environment is a part of the keys; a random one follows it.
	Environment string
	// Options are the provider's.
	Options []redis.Option
	// pipelines says that claims go down a pipeline, for which newer clients have a
	// pool of its own, that can't be occupied from outside.
	pipelines bool
}

// Plain is the usual way, Fencing the one with numbers.
var (
	Plain   = Variant{Name: "plain"}
	Fencing = Variant{Name: "fencing", Options: []redis.Option{redis.WithFencing()}}
)

// Variants are all ways to use one server.
func Variants() []Variant {
	return []Variant{
		Plain,
		Fencing,
		{Name: "resp2", Client: func(o *client.UniversalOptions) { o.Protocol = 2 }},
		{Name: "context_timeouts", Client: func(o *client.UniversalOptions) { o.ContextTimeoutEnabled = true }},
		{Name: "no_retries", Client: func(o *client.UniversalOptions) { o.MaxRetries = -1 }},
		{Name: "odd_keys", Environment: `*?[a]\{}`, Options: []redis.Option{redis.WithPrefix("[^x]{"), redis.WithFencing()}},
	}
}

// ClusterVariants are the ways to use a cluster.
func ClusterVariants() []Variant {
	return []Variant{
		{Name: "cluster", Cluster: true},
		{Name: "cluster_fencing", Cluster: true, Options: []redis.Option{redis.WithFencing()}},
	}
}

// ReplicaVariants are the ways to use a primary that has a replica.
func ReplicaVariants() []Variant {
	return []Variant{{Name: "wait", Options: []redis.Option{redis.WithWait(1, time.Second), redis.WithFencing()}, pipelines: true}}
}

// Harness makes clients with keys of their own, removed when tb has ended. dsn is a
// URL, whose user must be allowed to create users; replica, if it is not empty, that
// of a replica.
func Harness(tb testing.TB, dsn, replica string, v Variant) conformancetest.Harness {
	tb.Helper()
	s := newServer(tb, dsn, v)
	h := conformancetest.Harness{
		Name:      s.version + ", " + v.Name,
		Open:      func(tb testing.TB) core.Provider { return s.open(tb) },
		Peek:      s.peek,
		Remove:    s.remove,
		Put:       s.put,
		Broken:    s.broken(replica),
		Resources: s.resources,
		Forgets:   "ShedLock's format for Redis deletes the key, and an expired key is none",
	}
	if !v.Cluster { // a cluster's servers tell clients their own addresses
		if !v.pipelines {
			h.PoolOfOne = s.poolOfOne
		}
		h.Server = s.options.Addrs[0]
		h.Through = func(tb testing.TB, addr string) core.Provider { return s.open(tb, at(addr)) }
		h.RoundTrips = conformancetest.RoundTrips{Won: 1, Refused: 1, First: 1, Release: 1, Extend: 1}
	}
	return h
}

type server struct {
	options *client.UniversalOptions
	v       Variant
	version string
	tag     string
	keys    string // what all begin with
	admin   client.UniversalClient
	more    []redis.Option
}

func newServer(tb testing.TB, dsn string, v Variant) *server {
	tb.Helper()
	s := &server{options: parse(tb, dsn, v.Cluster), v: v, tag: strings.ToLower(rand.Text()[:12])}
	environment := v.Environment + s.tag
	s.more = append([]redis.Option{redis.WithEnvironment(environment)}, v.Options...)
	s.keys = redis.DefaultPrefix + ":" + environment + ":"
	if v.Environment != "" {
		s.keys = "[^x]{:" + environment + ":"
	}
	s.admin = connect(tb, *s.options, v.Cluster)
	s.version = Version(tb, s.admin)
	s.options.ClientName = "shedbolt-" + s.tag
	if v.Client != nil {
		v.Client(s.options)
	}
	tb.Cleanup(func() { s.clear(tb) })
	return s
}

// parse reads a URL; for a cluster, with further servers as parameters "addr".
func parse(tb testing.TB, dsn string, cluster bool) *client.UniversalOptions {
	tb.Helper()
	if cluster {
		o, err := client.ParseClusterURL(dsn)
		if err != nil {
			tb.Fatal(err)
		}
		return &client.UniversalOptions{Addrs: o.Addrs, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig}
	}
	o, err := client.ParseURL(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	return &client.UniversalOptions{Addrs: []string{o.Addr}, DB: o.DB, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig}
}

// Version asks a server for its name and version.
func Version(tb testing.TB, c client.UniversalClient) string {
	tb.Helper()
	info, err := c.Info(tb.Context(), "server").Result()
	if err != nil {
		tb.Fatal(err)
	}
	field := func(name string) string {
		_, after, _ := strings.Cut(info, "\n"+name+":")
		value, _, _ := strings.Cut(after, "\r")
		return value
	}
	if valkey := field("valkey_version"); valkey != "" {
		return "Valkey " + valkey
	}
	return "Redis " + field("redis_version")
}

// connect makes a client that is closed when tb has ended.
func connect(tb testing.TB, o client.UniversalOptions, cluster bool) client.UniversalClient {
	tb.Helper()
	var c client.UniversalClient
	if cluster {
		c = client.NewClusterClient(o.Cluster())
	} else {
		c = client.NewClient(o.Simple())
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// change is a difference from the variant's settings.
type change func(o *client.UniversalOptions)

func at(addr string) change { return func(o *client.UniversalOptions) { o.Addrs = []string{addr} } }

// connections is the size of a client's pool: more than one, so that a client
// races with itself, and no more, because cases open many clients.
const connections = 2

func (s *server) client(tb testing.TB, size int, changes ...change) client.UniversalClient {
	tb.Helper()
	o := *s.options
	o.PoolSize = size
	for _, change := range changes {
		change(&o)
	}
	return connect(tb, o, s.v.Cluster)
}

func (s *server) provider(tb testing.TB, c client.UniversalClient) *redis.Provider {
	tb.Helper()
	p, err := redis.New(c, s.more...)
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func (s *server) open(tb testing.TB, changes ...change) *redis.Provider {
	tb.Helper()
	return s.provider(tb, s.client(tb, connections, changes...))
}

// look reads a key, its end and the server's clock at one instant.
const look = `
local time = redis.call('TIME')
return {redis.call('GET', KEYS[1]), redis.call('PEXPIRETIME', KEYS[1]), time[1], time[2]}`

func (s *server) peek(ctx context.Context, name string) (conformancetest.Peeked, error) {
	var p conformancetest.Peeked
	answer, err := s.admin.Eval(ctx, look, []string{s.keys + name}).Slice()
	if err != nil {
		return p, err
	}
	var seconds, micros int64
	if _, err := fmt.Sscan(fmt.Sprint(answer[2], " ", answer[3]), &seconds, &micros); err != nil {
		return p, err
	}
	p.StoreTime = time.Unix(seconds, micros*1000).UTC()
	value, found := answer[0].(string)
	if !found {
		return p, nil
	}
	until, _ := answer[1].(int64)
	p.Found, p.Raw, p.LockedBy, p.LockedUntil = true, fmt.Sprint(value, "|", until), value, time.UnixMilli(until).UTC()
	if stamp, by, ok := strings.Cut(strings.TrimPrefix(value, "ADDED:"), "@"); ok {
		p.LockedBy = by
		p.LockedAt, err = time.Parse(isoMillis, stamp)
	}
	return p, err
}

const isoMillis = "2006-01-02T15:04:05.000Z"

func (s *server) remove(ctx context.Context, name string) error {
	return s.admin.Del(ctx, s.keys+name).Err()
}

// put writes as ShedLock does. What has expired is not there.
func (s *server) put(ctx context.Context, name, lockedBy string, since, until time.Duration) error {
	if until <= 0 {
		return s.remove(ctx, name)
	}
	p, err := s.peek(ctx, name)
	if err != nil {
		return err
	}
	value := "ADDED:" + p.StoreTime.Add(since).Format(isoMillis) + "@" + lockedBy
	return s.admin.Set(ctx, s.keys+name, value, until).Err()
}

// each runs f on every server that holds keys.
func (s *server) each(ctx context.Context, f func(ctx context.Context, c *client.Client) error) error {
	if cluster, ok := s.admin.(*client.ClusterClient); ok {
		return cluster.ForEachMaster(ctx, f)
	}
	return f(ctx, s.admin.(*client.Client))
}

func (s *server) clear(tb testing.TB) {
	tb.Helper()
	err := s.each(context.Background(), func(ctx context.Context, c *client.Client) error {
		keys := c.Scan(ctx, 0, "*"+s.tag+"*", 1000).Iterator()
		for keys.Next(ctx) {
			if err := c.Del(ctx, keys.Val()).Err(); err != nil {
				return err
			}
		}
		return keys.Err()
	})
	if err != nil {
		tb.Errorf("remove the keys: %v", err)
	}
}

func (s *server) resources(ctx context.Context) (int64, error) {
	n := make(chan int64, 100)
	err := s.each(ctx, func(ctx context.Context, c *client.Client) error {
		list, err := c.ClientList(ctx).Result()
		n <- int64(strings.Count(list, "name=shedbolt-"+s.tag))
		return err
	})
	close(n)
	var sum int64
	for one := range n {
		sum += one
	}
	return sum, err
}

func (s *server) poolOfOne(tb testing.TB) (core.Provider, func(testing.TB) func()) {
	tb.Helper()
	c := s.client(tb, 1, func(o *client.UniversalOptions) { o.PoolTimeout = 30 * time.Second }).(*client.Client)
	return s.provider(tb, c), func(tb testing.TB) func() {
		tb.Helper()
		conn := c.Conn()
		if err := conn.Ping(context.Background()).Err(); err != nil { // now it has the connection
			tb.Fatal(err)
		}
		return func() { _ = conn.Close() }
	}
}

// user makes a user with some rights, deleted when tb has ended.
func (s *server) user(tb testing.TB, rights ...any) string {
	tb.Helper()
	user := "shedbolt-" + strings.ToLower(rand.Text()[:12])
	s.set(tb, user, append([]any{"reset", "on", ">secret"}, rights...)...)
	tb.Cleanup(func() { s.acl(tb, "deluser", user) })
	return user
}

// set changes a user's rights.
func (s *server) set(tb testing.TB, user string, rules ...any) {
	tb.Helper()
	s.acl(tb, append([]any{"setuser", user}, rules...)...)
}

func (s *server) acl(tb testing.TB, args ...any) {
	tb.Helper()
	err := s.each(context.Background(), func(ctx context.Context, c *client.Client) error {
		return c.Do(ctx, append([]any{"acl"}, args...)...).Err()
	})
	if err != nil {
		tb.Errorf("ACL %v: %v", args, err)
	}
}

func as(user string) change {
	return func(o *client.UniversalOptions) { o.Username, o.Password = user, "secret" }
}

// everything is the right to do all that the provider does.
const everything = "+@all"

func (s *server) broken(replica string) map[string]conformancetest.Breakage {
	b := map[string]conformancetest.Breakage{
		"no_permission": {Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			user := s.user(tb, everything, "-@write", "allkeys")
			return s.open(tb, as(user)), func() { s.set(tb, user, everything) }
		}},
		"no_permission_for_the_keys": {Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			user := s.user(tb, everything, "~other:*")
			return s.open(tb, as(user)), func() { s.set(tb, user, "allkeys") }
		}},
		"no_permission_for_scripts": {Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			user := s.user(tb, everything, "-@scripting", "allkeys")
			return s.open(tb, as(user)), func() { s.set(tb, user, everything) }
		}},
		"wrong_password": {Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			user := s.user(tb, everything, "allkeys", "resetpass", ">another")
			return s.open(tb, as(user)), func() { s.set(tb, user, ">secret") }
		}},
	}
	if !s.v.Cluster {
		b["down"] = conformancetest.Breakage{Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			proxy := conformancetest.NewProxy(tb, s.options.Addrs[0])
			proxy.Down()
			return s.open(tb, at(proxy.Addr())), proxy.Up
		}}
	}
	if replica != "" {
		b["read_only"] = conformancetest.Breakage{Open: func(tb testing.TB) (core.Provider, func()) {
			tb.Helper()
			return s.open(tb, at(parse(tb, replica, false).Addrs[0])), nil
		}}
	}
	return b
}
