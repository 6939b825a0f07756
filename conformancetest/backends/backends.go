package backends

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/shedbolt/shedbolt/internal/testenv"
)

// Backend is one store, at one version or in one setting, on which the suite
// runs.
type Backend struct {
	// Name is lower case. SHEDBOLT_TEST_REQUIRE uses it, and in upper case the
	// environment's variables.
	Name string
	// Provider is the provider's folder in providers/, whose own tests run on the
	// backend with the oldest supported client.
	Provider string
	// Known is the name by which these tests know a server: "postgres" stands
	// for SHEDBOLT_TEST_POSTGRES_DSN.
	Known string
	// Run selects among these tests, as go test's flag does. Each provider has
	// one backend on which all of them run.
	Run string
	// Command selects the command's tests that need this kind of server, in the
	// same way. They run where Run is empty.
	Command string
	// Client is the module of the client library, or "".
	Client string
	// Test is the test of this package that runs the suite on the backend with
	// the newest client, or "" where the provider has no client.
	Test string
	// Variants names those of the provider's variants that tell servers and clients
	// apart, to which Test is limited; nil for all.
	Variants []string
	// Brief limits the provider's own tests to these as well.
	Brief bool
	// Server says how to start one; nil for an embedded store.
	Server *Recipe
}

// Recipe says how to start a server in a container.
type Recipe struct {
	// Official is the image to use where a registry answers, Lab the name for
	// lab/build where none does.
	Official, Lab string
	// NoLab says why there is no Lab.
	NoLab string
	// Clock shifts the server's clock, as in "+1h", or is the time, in UTC, at
	// which it starts, as in "@2026-03-29 00:59:30". Only lab images can do that.
	Clock string

	start   func(s *starting) (Address, error)
	version func(a Address) (string, error)
	// now reads the server's clock; needed where there is a Clock.
	now func(ctx context.Context, a Address) (time.Time, error)
}

// checkClock makes sure that a server's clock is as wrong as it is meant to be:
// with a true one its tests would show nothing.
func (r *Recipe) checkClock(a Address) error {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	now, err := r.now(ctx, a)
	if err != nil {
		return err
	}
	if start, ok := strings.CutPrefix(r.Clock, "@"); ok {
		begin, err := time.Parse(time.DateTime, start)
		if err != nil {
			return err
		}
		if since := now.Sub(begin); since < 0 || since > 30*time.Minute {
			return fmt.Errorf("its clock says %v, and should have begun at %v", now.UTC(), begin)
		}
		return nil
	}
	want, err := time.ParseDuration(r.Clock)
	if err != nil {
		return err
	}
	if off := time.Until(now); (off - want).Abs() > 5*time.Minute {
		return fmt.Errorf("its clock is off by %v, and should be by %v", off.Round(time.Second), want)
	}
	return nil
}

// askLimit bounds a question to a server that is ready.
const askLimit = 10 * time.Second

// Address is where a server is.
type Address struct {
	// DSN is what clients use.
	DSN string
	// Direct is the DSN of the server behind a pooler; elsewhere "".
	Direct string
}

// Env is the environment by which tests find the server under a backend's name.
func (a Address) Env(backend string) []string {
	env := []string{testenv.DSNVar(backend) + "=" + a.DSN}
	if a.Direct != "" {
		env = append(env, testenv.DirectVar(backend)+"="+a.Direct)
	}
	return env
}

// All lists the backends in the order in which they are tested. To add one, add
// it here and its recipe in a file of its own.
func All() []Backend {
	return []Backend{
		{Name: "memory", Provider: "memory"},
		{Name: "sqlite", Provider: "sqlite", Client: "modernc.org/sqlite", Test: "TestSQLite", Variants: []string{"wal"}},
		brief(postgresBackend("postgres15", "15", "")),
		postgresBackend("postgres17", "17", ""),
		brief(postgresBackend("postgres18", "18", "")),
		brief(postgresBackend("postgres17_ahead", "17", "+1h")),
		brief(postgresBackend("postgres17_behind", "17", "-1h")),
		pgbouncerBackend(),
		brief(mysqlBackend("mysql84", mysql84, "")),
		mysqlBackend("mysql97", mysql97, ""),
		brief(mysqlBackend("mysql97_ahead", mysql97, "+1h")),
		brief(mysqlBackend("mysql97_behind", mysql97, "-1h")),
		nightOfChange(mysqlBackend("mysql97_spring", mysql97, springGap)),
		mysqlBackend("mariadb1011", mariadb1011, ""),
		brief(mysqlBackend("mariadb118", mariadb118, "")),
		brief(mysqlBackend("mariadb118_ahead", mariadb118, "+1h")),
		brief(mysqlBackend("mariadb118_behind", mariadb118, "-1h")),
		nightOfChange(mysqlBackend("mariadb118_spring", mariadb118, springChange)),
		redisBackend("redis7", "redis:7", "redis:7", ""),
		redisBackend("redis8", "redis:8", "redis:8", ""),
		brief(redisBackend("redis8_ahead", "redis:8", "redis:8", "+1h")),
		brief(redisBackend("redis8_behind", "redis:8", "redis:8", "-1h")),
		brief(redisBackend("valkey9", "valkey/valkey:9", "valkey:9", "")),
		redisClusterBackend(),
		redisReplicaBackend(),
	}
}

// brief limits a backend to the suite, and to the variants that tell servers
// apart.
func brief(b Backend) Backend {
	b.Brief = true
	b.Run = "^TestConformance$/^(" + strings.Join(b.Variants, "|") + ")$"
	return b
}

// Find returns the backend of a name.
func Find(name string) (Backend, error) {
	var known []string
	for _, b := range All() {
		if b.Name == name {
			return b, nil
		}
		known = append(known, b.Name)
	}
	return Backend{}, fmt.Errorf("unknown backend %q; known: %s", name, strings.Join(known, ", "))
}

// DSNVar is the variable that names a server for the backend.
func (b Backend) DSNVar() string { return testenv.DSNVar(b.Name) }

// ImageVar is the variable that overrides the image.
func (b Backend) ImageVar() string { return "SHEDBOLT_IMAGE_" + strings.ToUpper(b.Name) }
