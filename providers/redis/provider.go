package redis

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"strings"
	"sync"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/shedbolt/shedbolt/core"
)

// Provider keeps locks in keys of Redis or Valkey. It implements core.Provider,
// core.Extender and core.Inspector, and is safe for concurrent use.
type Provider struct {
	client client.UniversalClient
	config config
	start  string // of all keys
}

// New makes a Provider on a client, which stays the caller's: a *Client, with or
// without Sentinel, a *ClusterClient or a *Ring. It makes no I/O.
func New(c client.UniversalClient, opts ...Option) (*Provider, error) {
	if c == nil {
		return nil, errors.New("redis: New needs a client")
	}
	p := &Provider{client: c, config: config{prefix: DefaultPrefix, environment: DefaultEnvironment}}
	for _, opt := range opts {
		if err := opt(&p.config); err != nil {
			return nil, err
		}
	}
	if _, ring := c.(*client.Ring); ring && p.config.replicas > 0 {
		return nil, errors.New("redis: WithWait works on a *redis.Client or *redis.ClusterClient, not on a *redis.Ring")
	}
	p.start = p.config.prefix + ":" + p.config.environment + ":"
	return p, nil
}

// Capabilities implements core.Provider. CapPersistent is not declared, because it
// is the server's settings that decide whether keys survive a restart.
func (p *Provider) Capabilities() core.Capabilities {
	caps := core.Capabilities{
		Set:        core.CapExtend | core.CapInspect | core.CapHolder | core.CapTimes,
		Resolution: time.Millisecond,
	}
	if p.config.fencing {
		caps.Set |= core.CapFence
	}
	return caps
}

// keys are those that a script of a name uses.
func (p *Provider) keys(name string, fencing bool) []string {
	key := p.start + name
	if !fencing {
		return []string{key}
	}
	return []string{key, counter(key)}
}

// acquireTries bounds how often a claim looks again that has met a key in the very
// moment of its expiry.
const acquireTries = 3

// Acquire implements core.Provider.
func (p *Provider) Acquire(ctx context.Context, c core.Claim) (core.Grant, error) {
	for range acquireTries {
		r := p.run(ctx, acquireScript, true, p.keys(c.Name, p.config.fencing), c.Holder(), c.AtMostFor.Milliseconds())
		record, found, err := p.record(c.Name, r.cmd)
		switch {
		case err != nil:
			return core.Grant{}, r.classify(err)
		case !found:
			continue
		case record.LockedBy != c.Holder():
			return core.Grant{}, record.HeldError()
		}
		if err := r.waited(p.config); err != nil {
			return core.Grant{}, p.giveBack(ctx, c, err)
		}
		return core.Grant{
			Name: c.Name, Owner: c.Owner, Token: c.Token,
			LockedAt: record.LockedAt, LockedUntil: record.LockedUntil, Fence: record.Fence,
		}, nil
	}
	return core.Grant{}, &core.HeldError{Name: c.Name}
}

// giveBack releases what too few replicas have confirmed.
func (p *Provider) giveBack(ctx context.Context, c core.Claim, cause error) error {
	err := p.Release(ctx, core.Grant{Name: c.Name, Owner: c.Owner, Token: c.Token}, 0)
	if err == nil || errors.Is(err, core.ErrLost) {
		return cause
	}
	return core.Uncertain(errors.Join(cause, err))
}

// Release implements core.Provider.
func (p *Provider) Release(ctx context.Context, g core.Grant, keepFor time.Duration) error {
	_, err := p.change(ctx, releaseScript, g.Name, g.Holder(), false, keepFor.Milliseconds())
	return err
}

// Extend implements core.Extender.
func (p *Provider) Extend(ctx context.Context, g core.Grant, d time.Duration) (core.Grant, error) {
	until, err := p.change(ctx, extendScript, g.Name, g.Holder(), true, d.Milliseconds())
	if err != nil {
		return core.Grant{}, err
	}
	g.LockedUntil = time.UnixMilli(until).UTC()
	return g, nil
}

// ForceRelease implements core.Inspector.
func (p *Provider) ForceRelease(ctx context.Context, seen core.Record) error {
	value, ok := seen.State.(string)
	if !ok { // a record that was put together elsewhere
		value = "ADDED:" + seen.LockedAt.UTC().Format(isoMillis) + "@" + seen.LockedBy
	}
	_, err := p.change(ctx, forceReleaseScript, seen.Name, value, false)
	return err
}

// change runs a script that must find what it changes, and returns its answer.
func (p *Provider) change(ctx context.Context, s *client.Script, name, identity string, wait bool, args ...any) (int64, error) {
	r := p.run(ctx, s, wait, p.keys(name, false), identity, args...)
	n, err := r.cmd.Int64()
	switch {
	case err != nil:
		return 0, r.classify(err)
	case n == 0 && r.sent.times > 1:
		// The client has sent it again by itself: maybe the first time it was done.
		return 0, core.Uncertain(errors.New("redis: the lock was not there when the client repeated a request whose answer was lost"))
	case n == 0:
		return 0, core.ErrLost
	case wait:
		return n, r.waited(p.config)
	}
	return n, nil
}

// Inspect implements core.Inspector.
func (p *Provider) Inspect(ctx context.Context, name string) (core.Record, bool, error) {
	return p.record(name, p.run(ctx, inspectScript, false, p.keys(name, p.config.fencing), "").cmd)
}

// List implements core.Inspector. It reads pages with SCAN from every master, in no
// order. SCAN may show a key twice, so the names are kept in memory until the end.
func (p *Provider) List(ctx context.Context) iter.Seq2[core.Record, error] {
	return func(yield func(core.Record, error) bool) {
		servers, err := p.servers(ctx)
		if err != nil {
			yield(core.Record{}, err)
			return
		}
		seen := map[string]bool{}
		for _, server := range servers {
			for cursor := uint64(0); ; {
				var page []core.Record
				page, cursor, err = p.page(ctx, server, cursor)
				if err != nil {
					yield(core.Record{}, err)
					return
				}
				for _, r := range page {
					if seen[r.Name] {
						continue
					}
					if seen[r.Name] = true; !yield(r, nil) {
						return
					}
				}
				if cursor == 0 {
					break
				}
			}
		}
	}
}

// servers are all that hold keys.
func (p *Provider) servers(ctx context.Context) ([]client.UniversalClient, error) {
	var mu sync.Mutex
	var servers []client.UniversalClient
	add := func(_ context.Context, server *client.Client) error {
		mu.Lock()
		defer mu.Unlock()
		servers = append(servers, server)
		return nil
	}
	switch c := p.client.(type) {
	case *client.ClusterClient:
		return servers, c.ForEachMaster(ctx, add)
	case *client.Ring:
		return servers, c.ForEachShard(ctx, add)
	}
	return []client.UniversalClient{p.client}, nil
}

const pageSize = 500

// page reads some records of one server, in two trips.
func (p *Provider) page(ctx context.Context, server client.UniversalClient, cursor uint64) ([]core.Record, uint64, error) {
	keys, cursor, err := server.Scan(ctx, cursor, pattern(p.start), pageSize).Result()
	if err != nil || len(keys) == 0 {
		return nil, cursor, err
	}
	answers := make([]*client.Cmd, 0, len(keys))
	send := func(how func(client.Pipeliner, string) *client.Cmd) error {
		answers = answers[:0]
		_, err := server.Pipelined(ctx, func(pipe client.Pipeliner) error {
			for _, key := range keys {
				answers = append(answers, how(pipe, strings.TrimPrefix(key, p.start)))
			}
			return nil
		})
		return err
	}
	err = send(func(pipe client.Pipeliner, name string) *client.Cmd {
		return inspectScript.EvalSha(ctx, pipe, p.keys(name, p.config.fencing), "")
	})
	if client.HasErrorPrefix(err, "NOSCRIPT") {
		err = send(func(pipe client.Pipeliner, name string) *client.Cmd {
			return inspectScript.Eval(ctx, pipe, p.keys(name, p.config.fencing), "")
		})
	}
	if _, answered := errors.AsType[client.Error](err); err != nil && !answered {
		return nil, 0, err
	}
	var page []core.Record
	for i, answer := range answers {
		r, found, err := p.record(strings.TrimPrefix(keys[i], p.start), answer)
		switch {
		case client.HasErrorPrefix(err, "WRONGTYPE"): // no lock, whatever it is
		case err != nil:
			return nil, 0, err
		case found:
			page = append(page, r)
		}
	}
	return page, cursor, nil
}

// isoMillis is the form of ShedLock's times.
const isoMillis = "2006-01-02T15:04:05.000Z"

// javaToken is what ShedLock puts after its host name.
var javaToken = regexp.MustCompile(`:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// forever is until when a key is held that somebody has made without expiry.
var forever = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// record reads the answer of acquire.lua and inspect.lua.
func (p *Provider) record(name string, cmd *client.Cmd) (core.Record, bool, error) {
	answer, err := cmd.Slice()
	if err != nil {
		return core.Record{}, false, err
	}
	if len(answer) != 4 {
		return core.Record{}, false, fmt.Errorf("redis: a script has answered with %d values", len(answer))
	}
	value, found := answer[0].(string)
	until, _ := answer[1].(int64)
	now, _ := answer[2].(int64)
	fence, _ := answer[3].(int64)
	if !found {
		return core.Record{}, false, nil
	}
	r := core.Record{
		Name: name, LockedBy: value, StoreTime: time.UnixMilli(now).UTC(), Fence: fence, State: value,
		LockedUntil: time.UnixMilli(until).UTC(),
	}
	if until < 0 {
		r.LockedUntil = forever
	}
	if stamp, by, ok := strings.Cut(strings.TrimPrefix(value, "ADDED:"), "@"); ok {
		if at, err := time.Parse(isoMillis, stamp); err == nil {
			r.LockedAt, r.LockedBy = at, by
		}
	}
	r.Owner, _ = core.ParseHolder(r.LockedBy)
	r.Owner = javaToken.ReplaceAllString(r.Owner, "")
	return r, true, nil
}
