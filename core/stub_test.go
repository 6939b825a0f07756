package core_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shedbolt/shedbolt/core"
	"github.com/shedbolt/shedbolt/providers/memory"
)

// stub is the memory provider with calls that a test replaces. The replacement
// gets the real call as next.
type stub struct {
	*memory.Provider
	acquire func(ctx context.Context, c core.Claim, next func(context.Context, core.Claim) (core.Grant, error)) (core.Grant, error)
	release func(ctx context.Context, g core.Grant, d time.Duration, next func(context.Context, core.Grant, time.Duration) error) error
	extend  func(ctx context.Context, g core.Grant, d time.Duration, next func(context.Context, core.Grant, time.Duration) (core.Grant, error)) (core.Grant, error)

	mu    sync.Mutex
	calls []string
}

func newStub() *stub { return &stub{Provider: memory.New(nil)} }

func (s *stub) called(op string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, op)
}

// log lists the calls so far.
func (s *stub) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *stub) Acquire(ctx context.Context, c core.Claim) (core.Grant, error) {
	s.called("acquire")
	if s.acquire == nil {
		return s.Provider.Acquire(ctx, c)
	}
	return s.acquire(ctx, c, s.Provider.Acquire)
}

func (s *stub) Release(ctx context.Context, g core.Grant, d time.Duration) error {
	s.called("release")
	if s.release == nil {
		return s.Provider.Release(ctx, g, d)
	}
	return s.release(ctx, g, d, s.Provider.Release)
}

func (s *stub) Extend(ctx context.Context, g core.Grant, d time.Duration) (core.Grant, error) {
	s.called("extend")
	if s.extend == nil {
		return s.Provider.Extend(ctx, g, d)
	}
	return s.extend(ctx, g, d, s.Provider.Extend)
}

// jobHeld reads the store directly.
func (s *stub) jobHeld(t *testing.T) bool {
	t.Helper()
	r, found, err := s.Inspect(context.Background(), job.Name)
	if err != nil {
		t.Fatal(err)
	}
	return found && r.Held()
}

func newLocker(t *testing.T, p core.Provider, opts ...core.Option) *core.Locker {
	t.Helper()
	l, err := core.New(p, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var job = core.Lock{Name: "job", AtMostFor: time.Minute}

// records is a slog.Handler that keeps what it is given.
type records struct {
	mu   sync.Mutex
	list []slog.Record
}

func (r *records) Enabled(context.Context, slog.Level) bool { return true }
func (r *records) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *records) WithGroup(string) slog.Handler            { return r }
func (r *records) Handle(_ context.Context, rec slog.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, rec)
	return nil
}

// take returns the messages as "LEVEL message" and forgets them.
func (r *records) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, rec := range r.list {
		out = append(out, rec.Level.String()+" "+rec.Message)
	}
	r.list = nil
	return out
}

// text renders everything, attributes too.
func (r *records) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := ""
	for _, rec := range r.list {
		out += rec.Message
		rec.Attrs(func(a slog.Attr) bool { out += " " + a.String(); return true })
		out += "\n"
	}
	return out
}
