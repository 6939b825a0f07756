package backends_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/shedbolt/shedbolt/conformancetest/backends"
)

func TestTableOfBackends(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-z0-9_]*$`) // fit for an environment variable
	seen := map[string]bool{}
	complete := map[string]bool{}
	for _, b := range backends.All() {
		if !name.MatchString(b.Name) || seen[b.Name] {
			t.Errorf("backend %q: the name is taken, or not fit for an environment variable", b.Name)
		}
		seen[b.Name] = true
		if _, err := os.Stat(filepath.Join("..", "..", "providers", b.Provider, "provider.go")); err != nil {
			t.Errorf("backend %s: no such provider: %v", b.Name, err)
		}
		if b.Run == "" {
			complete[b.Provider] = true
		}
		if (b.Client == "") != (b.Test == "") {
			t.Errorf("backend %s: a client needs a test with its newest version", b.Name)
		}
		if s := b.Server; s != nil && (b.Known == "" || s.Official == "" || (s.Lab == "") == (s.NoLab == "")) {
			t.Errorf("backend %s: the server needs a name and both images, or a reason why not", b.Name)
		}
		if s := b.Server; s != nil && s.Clock != "" && s.Lab == "" {
			t.Errorf("backend %s: only a lab image can have a wrong clock", b.Name)
		}
		if b.Brief && len(b.Variants) == 0 {
			t.Errorf("backend %s: it is brief, and no variants are named", b.Name)
		}
	}
	folders, err := os.ReadDir(filepath.Join("..", "..", "providers"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		if !complete[folder.Name()] {
			t.Errorf("providers/%s: no backend runs all of its tests", folder.Name())
		}
	}
}

func TestFind(t *testing.T) {
	if b, err := backends.Find("postgres17"); err != nil || b.Name != "postgres17" {
		t.Errorf("Find(postgres17) = %q, %v", b.Name, err)
	}
	if _, err := backends.Find("postgres"); err == nil || !strings.Contains(err.Error(), "postgres17") {
		t.Errorf("Find(postgres) = %v, want an error that lists the known names", err)
	}
}

func TestExcused(t *testing.T) {
	b, err := backends.Find("postgres17")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, require string
		err           error
		want          bool
	}{
		{"optional", "", backends.ErrUnavailable, true},
		{"another required", "sqlite", backends.ErrUnavailable, true},
		{"required", "sqlite,postgres17", backends.ErrUnavailable, false},
		{"all required", "all", backends.ErrUnavailable, false},
		{"broken", "", errors.New("it crashed"), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("SHEDBOLT_TEST_REQUIRE", test.require)
			if got := backends.Excused(b, test.err); got != test.want {
				t.Errorf("Excused = %v, want %v", got, test.want)
			}
		})
	}
}

// A Fleet that is closed starts nothing that it would not stop.
func TestClosedFleet(t *testing.T) {
	b, err := backends.Find("postgres17")
	if err != nil {
		t.Fatal(err)
	}
	f := backends.NewFleet(".", t.Logf)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	t.Setenv(b.DSNVar(), "")
	s, err := f.Start(t.Context(), b)
	if errors.Is(err, backends.ErrUnavailable) {
		t.Skip(err)
	}
	if err == nil {
		t.Errorf("a closed fleet started %s", s.Version)
	}
}
