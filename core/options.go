package core

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// Option changes a Locker's defaults.
type Option func(*Locker) error

// WithOwner sets the label by which people recognise this process as a holder.
// The default is the host name and the process id, "host/4711". The label never
// decides anything (R6), may be shared by several processes, and is cut where a
// store's field is too short.
func WithOwner(label string) Option {
	return func(l *Locker) error {
		if label == "" || !utf8.ValidString(label) || strings.ContainsFunc(label, unicode.IsControl) {
			return fmt.Errorf("shedbolt: owner label %q is empty, not UTF-8, or has control characters", label)
		}
		l.owner = label
		return nil
	}
}

// WithLogger makes the Locker log: skips at Debug, runs at Info, lost leases and
// trouble with releasing at Warn. The default is silence.
func WithLogger(logger *slog.Logger) Option {
	return func(l *Locker) error {
		if logger == nil {
			return errors.New("shedbolt: WithLogger needs a logger")
		}
		l.log = logger
		return nil
	}
}

// WithDefaultAtMostFor sets the AtMostFor of locks that have none. Without this
// option such a lock is refused (R10).
func WithDefaultAtMostFor(d time.Duration) Option {
	return func(l *Locker) error {
		l.defaultAtMost = d
		return checkDuration("the default AtMostFor", d, 1)
	}
}

// DefaultCleanupLimit is the clean-up limit unless [WithCleanupLimit] sets one.
const DefaultCleanupLimit = 5 * time.Second

// WithCleanupLimit sets how long a release may take, and by how much a call may
// outlast its context while it gives back what may have been taken (R11).
func WithCleanupLimit(d time.Duration) Option {
	return func(l *Locker) error {
		l.cleanup = d
		return checkDuration("the clean-up limit", d, 1)
	}
}

// defaultOwner is read once, and never through DNS.
var defaultOwner = sync.OnceValue(func() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	return host + "/" + strconv.Itoa(os.Getpid())
})
