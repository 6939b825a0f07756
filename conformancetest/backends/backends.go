package backends

import (
	"fmt"
	"strings"

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
	// Client is the module of the client library, or "".
	Client string
	// Test is the test of this package that runs the suite on the backend with
	// the newest client, or "" where the provider has no client.
	Test string
	// Brief limits Test to what tells server versions apart.
	Brief bool
	// Server says how to start one; nil for an embedded store.
	Server *Recipe
}

// Recipe says how to start a server in a container.
type Recipe struct {
	// Official is the image to use where a registry answers, Lab the name for
	// lab/build where none does.
	Official, Lab string
	// Clock shifts the server's clock, as in "+1h". Only lab images can.
	Clock string

	start   func(s *starting) (Address, error)
	version func(a Address) (string, error)
}

// BriefVar names a variable that, if it is not empty, makes the tests of this package brief on every
// backend. cmd/verify sets it where the newest client is also the oldest
// supported one, on which the provider's own tests run.
const BriefVar = "SHEDBOLT_TEST_BRIEF"

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
		{Name: "sqlite", Provider: "sqlite", Client: "modernc.org/sqlite", Test: "TestSQLite"},
		brief(postgresBackend("postgres15", "15", "")),
		postgresBackend("postgres17", "17", ""),
		brief(postgresBackend("postgres18", "18", "")),
		brief(postgresBackend("postgres17_ahead", "17", "+1h")),
		brief(postgresBackend("postgres17_behind", "17", "-1h")),
		pgbouncerBackend(),
	}
}

// brief limits a backend to two of the provider's variants, and to the suite.
func brief(b Backend) Backend {
	b.Brief = true
	b.Run = "^TestConformance$/^(plain|serializable)$"
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
