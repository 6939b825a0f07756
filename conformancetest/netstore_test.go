package conformancetest_test

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/providers/memory"
)

// A memory store behind TCP, for the cases that harm connections.

type netRequest struct {
	Op    string
	Claim core.Claim
	Grant core.Grant
	For   time.Duration
}

type netAnswer struct {
	Grant core.Grant
	Held  *core.HeldError
	Lost  bool
}

// serveNet serves a store until tb has ended.
func serveNet(tb testing.TB, store *memory.Store) (addr string) {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	var serving sync.WaitGroup
	var mu sync.Mutex
	open := map[net.Conn]bool{}
	tb.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for conn := range open {
			_ = conn.Close()
		}
		mu.Unlock()
		serving.Wait()
	})
	p := memory.New(store)
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open[conn] = true
			mu.Unlock()
			serving.Go(func() {
				defer func() { _ = conn.Close() }()
				in, out := gob.NewDecoder(conn), gob.NewEncoder(conn)
				for {
					var r netRequest
					if in.Decode(&r) != nil || out.Encode(answer(p, r)) != nil {
						return
					}
				}
			})
		}
	})
	return l.Addr().String()
}

func answer(p *memory.Provider, r netRequest) (a netAnswer) {
	var err error
	switch r.Op {
	case "acquire":
		a.Grant, err = p.Acquire(context.Background(), r.Claim)
	case "release":
		err = p.Release(context.Background(), r.Grant, r.For)
	case "extend":
		a.Grant, err = p.Extend(context.Background(), r.Grant, r.For)
	}
	a.Held, _ = errors.AsType[*core.HeldError](err)
	a.Lost = errors.Is(err, core.ErrLost)
	return a
}

// netHarm is what is wrong with a netClient.
type netHarm struct {
	heldOnError     bool // an answer that is lost is held
	certain         bool // it is not marked that the store may have done it
	lostOnError     bool // an answer that is lost is a lost lock
	releasesUnasked bool // it looks before it releases, and takes a lost look for a release
	neverReconnects bool
	looksFirst      bool   // a call is two round trips
	certainOf       string // an operation of which it is not marked that it may have been done
	certainInTime   bool   // a time-out is not marked so
	bypasses        bool   // it does not go through the proxy
	impatient       bool   // it cuts calls off by itself, and says that nothing was done
}

// netClient is a client with one connection.
type netClient struct {
	caps core.Capabilities
	addr string
	harm netHarm
	turn chan struct{}

	conn net.Conn
	in   *gob.Decoder
	out  *gob.Encoder
}

func newNetClient(tb testing.TB, addr string, caps core.Capabilities, harm netHarm) *netClient {
	tb.Helper()
	caps.Set &^= core.CapInspect
	c := &netClient{caps: caps, addr: addr, harm: harm, turn: make(chan struct{}, 1)}
	tb.Cleanup(func() {
		c.turn <- struct{}{}
		if c.conn != nil {
			_ = c.conn.Close()
		}
	})
	return c
}

func (c *netClient) Capabilities() core.Capabilities { return c.caps }

func (c *netClient) Acquire(ctx context.Context, cl core.Claim) (core.Grant, error) {
	g, err := c.call(ctx, netRequest{Op: "acquire", Claim: cl})
	if err != nil && c.harm.heldOnError && errors.Is(err, core.ErrUncertain) {
		err = &core.HeldError{Name: cl.Name}
	}
	return g, err
}

func (c *netClient) Release(ctx context.Context, g core.Grant, keepFor time.Duration) error {
	if c.harm.releasesUnasked {
		if _, err := c.call(ctx, netRequest{Op: "look"}); err != nil {
			return nil //nolint:nilerr // that is the fault
		}
	}
	_, err := c.call(ctx, netRequest{Op: "release", Grant: g, For: keepFor})
	return err
}

func (c *netClient) Extend(ctx context.Context, g core.Grant, d time.Duration) (core.Grant, error) {
	g, err := c.call(ctx, netRequest{Op: "extend", Grant: g, For: d})
	if err != nil && c.harm.lostOnError {
		err = core.ErrLost
	}
	return g, err
}

func (c *netClient) call(ctx context.Context, r netRequest) (core.Grant, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return core.Grant{}, ctx.Err()
	}
	if c.conn == nil {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.addr)
		if err != nil {
			return core.Grant{}, err
		}
		c.conn, c.in, c.out = conn, gob.NewDecoder(conn), gob.NewEncoder(conn)
	}
	deadline, _ := ctx.Deadline() // none is the zero time, which is no limit
	if c.harm.impatient && r.Op == "acquire" {
		deadline = time.Now().Add(50 * time.Millisecond)
	}
	if err := c.conn.SetDeadline(deadline); err != nil {
		return core.Grant{}, err
	}
	if c.harm.looksFirst {
		if _, err := c.exchange(netRequest{Op: "look"}); err != nil {
			return core.Grant{}, err
		}
	}
	a, err := c.exchange(r)
	switch {
	case err != nil && c.harm.certainInTime && errors.Is(err, os.ErrDeadlineExceeded):
		return core.Grant{}, fmt.Errorf("%w: %w", context.DeadlineExceeded, err)
	case err != nil && (c.harm.certain || c.harm.certainOf == r.Op || c.harm.impatient):
		return core.Grant{}, err
	case err != nil:
		return core.Grant{}, core.Uncertain(err)
	case a.Held != nil:
		return core.Grant{}, a.Held
	case a.Lost:
		return core.Grant{}, core.ErrLost
	}
	return a.Grant, nil
}

func (c *netClient) exchange(r netRequest) (a netAnswer, err error) {
	if err = c.out.Encode(r); err == nil {
		err = c.in.Decode(&a)
	}
	if err != nil {
		_ = c.conn.Close()
		if !c.harm.neverReconnects {
			c.conn = nil
		}
		return a, fmt.Errorf("%s: %w", r.Op, err)
	}
	return a, nil
}
