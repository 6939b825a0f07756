package redis

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ShedLock's defaults for the parts of a key.
const (
	DefaultPrefix      = "job-lock"
	DefaultEnvironment = "default"
)

type config struct {
	prefix, environment string
	fencing             bool
	replicas            int
	wait                time.Duration
}

// Option changes a Provider's defaults.
type Option func(*config) error

// WithPrefix sets the first part of the keys. The default is [DefaultPrefix].
func WithPrefix(prefix string) Option {
	return func(c *config) error {
		if prefix == "" || strings.HasPrefix(prefix, counterPrefix) {
			return fmt.Errorf("redis: WithPrefix needs a text that does not begin with %q", counterPrefix)
		}
		c.prefix = prefix
		return nil
	}
}

// WithEnvironment sets the second part of the keys. The default is
// [DefaultEnvironment].
func WithEnvironment(environment string) Option {
	return func(c *config) error {
		if environment == "" {
			return errors.New("redis: WithEnvironment needs a text")
		}
		c.environment = environment
		return nil
	}
}

// WithFencing makes grants carry fencing numbers, counted in a second key for each
// name. That key has no expiry: it must outlive the locks. All clients that rely
// on the numbers must use this option.
func WithFencing() Option {
	return func(c *config) error {
		c.fencing = true
		return nil
	}
}

// WithWait makes Acquire and Extend wait, for limit at most, until so many replicas
// have confirmed the write. When fewer have, Acquire gives the lock back and fails,
// and Extend fails. It makes it unlikely, not impossible, that a failover forgets a
// lock.
func WithWait(replicas int, limit time.Duration) Option {
	return func(c *config) error {
		if replicas < 1 || limit < time.Millisecond {
			return errors.New("redis: WithWait needs at least one replica and a millisecond")
		}
		c.replicas, c.wait = replicas, limit
		return nil
	}
}
