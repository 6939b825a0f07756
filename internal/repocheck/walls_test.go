package repocheck

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// clients lists, for each provider, the modules it may reach besides the standard
// library and core: its own client, and what that needs.
var clients = map[string][]string{
	"memory": {},
	"sqlite": {}, // it takes a *sql.DB and leaves the driver to its user
	"mysql":  {"github.com/go-sql-driver/mysql", "filippo.io/edwards25519"},
	"redis":  {"github.com/redis/go-redis/v9", "github.com/cespare/xxhash/v2", "github.com/dgryski/go-rendezvous"},
	"postgres": {
		"github.com/jackc/pgx/v5",
		"github.com/jackc/pgpassfile",
		"github.com/jackc/pgservicefile",
		"github.com/jackc/puddle/v2",
		"golang.org/x/sync",
		"golang.org/x/text",
	},
}

// pkg is what `go list -json` says of a package.
type pkg struct {
	ImportPath string
	Standard   bool
	Deps       []string // all that it reaches
	Module     *struct{ Path string }
}

func (p pkg) module() string {
	if p.Module == nil {
		return ""
	}
	return p.Module.Path
}

// listPackages lists the module's packages and all that they reach, tests left
// out.
func listPackages(t *testing.T) map[string]pkg {
	t.Helper()
	packages := map[string]pkg{}
	out := json.NewDecoder(strings.NewReader(
		goCommand(t, root, "list", "-deps", "-test=false", "-json=ImportPath,Standard,Deps,Module", "./...")))
	for {
		var p pkg
		if err := out.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages[p.ImportPath] = p
	}
}

// local is a package's path within the module; ok is false for other modules'.
func local(importPath string) (path string, ok bool) {
	return strings.CutPrefix(importPath, modulePath+"/")
}

// isCore reports whether a package is core or one below it.
func isCore(path string) bool { return path == "core" || strings.HasPrefix(path, "core/") }

func TestWalls(t *testing.T) {
	packages := listPackages(t)
	for importPath, p := range packages {
		path, ok := local(importPath)
		if !ok {
			continue
		}
		area, rest, _ := strings.Cut(path, "/")
		provider, _, _ := strings.Cut(rest, "/")
		if area == "providers" && clients[provider] == nil {
			t.Errorf("providers/%s: list its client in the variable clients of this test", provider)
		}
		foreign := map[string]bool{} // other modules, each told once
		for _, dep := range p.Deps {
			d := packages[dep]
			if dep == "testing" && area != "conformancetest" && area != "internal" {
				t.Errorf("%s reaches the package testing, which must not get into programs", path)
			}
			if d.Standard {
				continue
			}
			own, isOwn := local(dep)
			if !isOwn {
				if foreign[d.module()] {
					continue
				}
				foreign[d.module()] = true
			}
			switch area {
			case "core":
				if path != "core" && own == "core" { // a package below it
					continue
				}
				t.Errorf("%s reaches %s: core has the standard library only", path, dep)
			case "conformancetest":
				if own != "core" {
					t.Errorf("%s reaches %s: conformancetest has the standard library and core only, so that a provider of any module can use it", path, dep)
				}
			case "providers":
				if isOwn && !isCore(own) {
					t.Errorf("%s reaches %s: a provider has core and nothing else of this module", path, own)
				}
				if !isOwn && !slices.Contains(clients[provider], d.module()) {
					t.Errorf("%s reaches %s, whose module is not in the provider's list in this test", path, dep)
				}
			}
		}
	}
}

// A package's imports for other systems are not in the list above, which is that
// of this one; so go through all files' too.
func TestWallsOnOtherSystems(t *testing.T) {
	for _, file := range files(t, func(path string) bool {
		return strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") &&
			(strings.HasPrefix(path, "core/") || strings.HasPrefix(path, "providers/"))
	}) {
		for _, path := range importsOf(t, file) {
			own, isOwn := local(path)
			if path == "testing" || isOwn && !isCore(own) || strings.HasPrefix(file, "core/") && strings.Contains(path, ".") {
				t.Errorf("%s imports %s: see the walls in docs/adr/0001", file, path)
			}
		}
	}
}

func TestModuleFiles(t *testing.T) {
	for _, file := range files(t, func(path string) bool {
		return strings.HasSuffix(path, "go.work") || strings.HasSuffix(path, "go.work.sum")
	}) {
		t.Errorf("%s: no go.work in git, because it hides what go.mod lacks", file)
	}
	goLines := map[string]string{}
	for _, file := range files(t, func(path string) bool { return strings.HasSuffix(path, "go.mod") }) {
		for line := range strings.Lines(read(t, file)) {
			fields := strings.Fields(line)
			switch {
			case len(fields) == 0:
			case fields[0] == "toolchain":
				t.Errorf("%s: no toolchain line, because it decides for whoever builds", file)
			case fields[0] == "go":
				goLines[file] = fields[1]
			case fields[0] == "replace" && file == "go.mod":
				t.Errorf("%s: a released module can't have a replace line", file)
			}
		}
	}
	for file, version := range goLines {
		if version != goLines["go.mod"] {
			t.Errorf("%s has go %s and go.mod has go %s: they must agree", file, version, goLines["go.mod"])
		}
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		for _, module := range []string{"testcontainers", "moby"} {
			if strings.Contains(read(t, file), module) {
				t.Errorf("%s names %s, which would then be in every consumer's go.sum: it belongs in conformancetest/backends", file, module)
			}
		}
	}
}
