package main

import (
	"context"
	"errors"
	"net/url"

	client "github.com/redis/go-redis/v9"

	"github.com/shedbolt/shedbolt/providers/redis"
)

// silent takes what go-redis would write to standard error: it is in the errors
// that it returns.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func openRedis(_ context.Context, o storeOptions) (*openStore, error) {
	client.SetLogger(silent{})
	if o.table != "" {
		return nil, usageError{"--table", "Redis has no tables; the URL's parameters prefix and environment choose the keys"}
	}
	c, opts, err := redisClient(o.url)
	if err != nil {
		return nil, usageError{"--store", redact(err.Error(), o.url)}
	}
	p, err := redis.New(c, opts...)
	if err != nil {
		return nil, errors.Join(usageError{"--store", err.Error()}, c.Close())
	}
	return &openStore{provider: p, close: func() { _ = c.Close() }}, nil
}

// redisClient reads a URL of go-redis. Parameters "addr" name further servers of a
// cluster; "prefix", "environment" and "fencing" are the provider's.
func redisClient(storeURL string) (client.UniversalClient, []redis.Option, error) {
	u, err := url.Parse(storeURL)
	if err != nil {
		return nil, nil, errors.New("it is not a valid URL") // the error quotes all of it
	}
	query := u.Query()
	var opts []redis.Option
	for name, option := range map[string]func(string) redis.Option{"prefix": redis.WithPrefix, "environment": redis.WithEnvironment} {
		if query.Has(name) {
			opts = append(opts, option(query.Get(name)))
			query.Del(name)
		}
	}
	fencing, err := fencingParam(query)
	if err != nil {
		return nil, nil, err
	}
	if fencing {
		opts = append(opts, redis.WithFencing())
	}
	cluster := query.Has("addr")
	u.RawQuery = query.Encode()
	if cluster {
		config, err := client.ParseClusterURL(u.String())
		if err != nil {
			return nil, nil, err
		}
		config.ContextTimeoutEnabled, config.ClientName = true, "shedbolt"
		config.PoolSize, config.ConnMaxIdleTime = 2, idleTime
		return client.NewClusterClient(config), opts, nil
	}
	config, err := client.ParseURL(u.String())
	if err != nil {
		return nil, nil, err
	}
	config.ContextTimeoutEnabled, config.ClientName = true, "shedbolt"
	config.PoolSize, config.ConnMaxIdleTime = 2, idleTime
	return client.NewClient(config), opts, nil
}
