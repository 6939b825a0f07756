package backends_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/shedbolt/shedbolt/conformancetest/backends"
)

// fleet is shared by all tests. Whatever is left of it is stopped when the tests
// have ended, are interrupted, or are about to run out of time.
var fleet = backends.NewFleet(".", func(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
})

func TestMain(m *testing.M) {
	flag.Parse()
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		closeFleet()
		os.Exit(130)
	}()
	if limit := flag.Lookup("test.timeout").Value.(flag.Getter).Get().(time.Duration); limit > time.Minute {
		// A test binary that times out runs no clean-up.
		time.AfterFunc(limit-15*time.Second, closeFleet)
	}
	code := m.Run()
	closeFleet()
	os.Exit(code)
}

func closeFleet() {
	if err := fleet.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "stop servers:", err)
	}
}

// variants are those of a provider's variants to run the suite on: those that the
// backend names, or all. The provider's own tests run all, with the oldest client.
func variants[V any](t *testing.T, b backends.Backend, all []V, name func(v V) string) []V {
	t.Helper()
	if b.Variants == nil {
		return all
	}
	var chosen []V
	for _, v := range all {
		if slices.Contains(b.Variants, name(v)) {
			chosen = append(chosen, v)
		}
	}
	if len(chosen) != len(b.Variants) {
		t.Fatalf("backend %s: not all of %v are variants of the provider's harness", b.Name, b.Variants)
	}
	return chosen
}

// eachServer runs a test on all backends that name it, with a server each.
func eachServer(t *testing.T, f func(t *testing.T, s *backends.Server)) {
	t.Helper()
	for _, b := range backends.All() {
		if b.Test != t.Name() {
			continue
		}
		t.Run(b.Name, func(t *testing.T) {
			s := start(t, b)
			t.Logf("%s, %s", s.Version, s.Origin)
			f(t, s)
		})
	}
}

func start(t *testing.T, b backends.Backend) *backends.Server {
	t.Helper()
	s, err := fleet.Start(context.Background(), b)
	switch {
	case err == nil:
	case backends.Excused(b, err):
		t.Skip(err)
	default:
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop %s: %v", b.Name, err)
		}
	})
	return s
}
