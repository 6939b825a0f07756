package redis

import (
	"context"
	"errors"
	"fmt"

	client "github.com/redis/go-redis/v9"

	"github.com/shedbolt/shedbolt/core"
)

// counted is an argument that counts how often it is written to a connection. The
// client repeats requests by itself, and does not tell: whether a request may have
// been carried out before can be learned from this alone.
type counted struct {
	text  string
	times int
}

// MarshalBinary is called by the client for each time that it sends the argument.
func (c *counted) MarshalBinary() ([]byte, error) {
	c.times++
	return []byte(c.text), nil
}

// result is the answer to a script.
type result struct {
	cmd  *client.Cmd
	sent *counted
	wait *client.IntCmd // of WAIT; nil where it was not sent
}

// run runs a script in one trip; in two on a server that does not have it yet.
// identity is its first argument.
func (p *Provider) run(ctx context.Context, s *client.Script, wait bool, keys []string, identity string, args ...any) result {
	r := result{sent: &counted{text: identity}}
	args = append([]any{r.sent}, args...)
	send := func(f func(context.Context, client.Scripter, []string, ...any) *client.Cmd) {
		if !wait || p.config.replicas == 0 {
			r.cmd = f(ctx, p.client, keys, args...)
			return
		}
		// WAIT is about the writes of its own connection.
		server, err := p.server(ctx, keys[0])
		if err != nil {
			r.cmd = client.NewCmd(ctx)
			r.cmd.SetErr(err)
			return
		}
		_, err = server.Pipelined(ctx, func(pipe client.Pipeliner) error {
			r.cmd = f(ctx, pipe, keys, args...)
			r.wait = client.NewIntCmd(ctx, "wait", p.config.replicas, p.config.wait.Milliseconds())
			return pipe.Process(ctx, r.wait)
		})
		// Each command has its own error, but for one that was never sent.
		if r.cmd.Err() == nil && r.cmd.Val() == nil {
			r.cmd.SetErr(err)
		}
	}
	send(s.EvalSha)
	if cluster, ok := p.client.(*client.ClusterClient); ok && client.HasErrorPrefix(r.cmd.Err(), "MOVED") {
		cluster.ReloadState(ctx) // what a pipeline to one server does not do by itself
	}
	if client.HasErrorPrefix(r.cmd.Err(), "NOSCRIPT") {
		if r.sent.times == 1 { // it was answered: nothing was done
			r.sent.times = 0
		}
		send(s.Eval)
	}
	return r
}

// server is the one that has a key.
func (p *Provider) server(ctx context.Context, key string) (client.UniversalClient, error) {
	c, ok := p.client.(*client.ClusterClient)
	if !ok {
		return p.client, nil
	}
	server, err := c.MasterForKey(ctx, key)
	if err != nil { // not a nil *Client in an interface
		return nil, err
	}
	return server, nil
}

// waited says whether enough replicas have confirmed.
func (r result) waited(c config) error {
	if r.wait == nil {
		return nil
	}
	n, err := r.wait.Result()
	if err != nil {
		return fmt.Errorf("redis: wait for replicas: %w", err)
	}
	if n < int64(c.replicas) {
		return fmt.Errorf("redis: %d of %d replicas have confirmed within %v", n, c.replicas, c.wait)
	}
	return nil
}

// classify marks the errors after which a script may have been carried out.
func (r result) classify(err error) error {
	if r.sent.times == 0 { // nothing was sent
		return err
	}
	if _, answered := errors.AsType[client.Error](err); answered && r.sent.times == 1 {
		return err
	}
	return core.Uncertain(err)
}
