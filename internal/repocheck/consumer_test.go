package repocheck

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A team that uses one provider vendors core and that provider, and nothing else
// of this module.
func TestConsumerVendorsOnlyWhatItUses(t *testing.T) {
	for _, name := range providers(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			absolute, err := filepath.Abs(root)
			if err != nil {
				t.Fatal(err)
			}
			// The module's own requirements hold all that a consumer may need, so
			// that no proxy is asked; what is vendored depends on imports alone.
			requirements := strings.Replace(read(t, "go.mod"), "module "+modulePath, "module example.com/consumer", 1)
			write(t, dir, "go.mod", fmt.Sprintf("%s\nrequire %s v0.0.0\n\nreplace %[2]s => %s\n", requirements, modulePath, absolute))
			write(t, dir, "go.sum", read(t, "go.sum"))
			write(t, dir, "main.go", fmt.Sprintf("package main\n\nimport _ %q\n\nfunc main() {}\n", modulePath+"/providers/"+name))

			goCommand(t, dir, "mod", "vendor")
			got := vendored(t, filepath.Join(dir, "vendor", filepath.FromSlash(modulePath)))
			got = slices.DeleteFunc(got, func(folder string) bool { return strings.HasPrefix(folder, "core/") })
			if want := []string{"core", "providers/" + name}; !slices.Equal(got, want) {
				t.Errorf("it vendors %q of this module besides packages of core, want %q", got, want)
			}
			for _, other := range []string{"modernc.org", "github.com/spf13", "github.com/testcontainers"} {
				if _, err := os.Stat(filepath.Join(dir, "vendor", filepath.FromSlash(other))); err == nil {
					t.Errorf("it vendors %s, which is for the command and tests", other)
				}
			}
			goCommand(t, dir, "build", "-mod=vendor", "-o", os.DevNull, ".")
		})
	}
}

// vendored lists the folders that hold Go files.
func vendored(t *testing.T, dir string) []string {
	t.Helper()
	var folders []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		folder, err := filepath.Rel(dir, filepath.Dir(path))
		if folder = filepath.ToSlash(folder); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(folders)
	return folders
}

// Copying core and one provider into a repository of one's own compiles, with the
// same import paths.
func TestCopiedProviderCompiles(t *testing.T) {
	for _, name := range providers(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "go.mod", read(t, "go.mod"))
			write(t, dir, "go.sum", read(t, "go.sum"))
			copied := files(t, func(path string) bool {
				return (strings.HasPrefix(path, "core/") || strings.HasPrefix(path, "providers/"+name+"/")) && !strings.HasSuffix(path, "_test.go")
			})
			for _, path := range copied {
				write(t, dir, path, read(t, path))
			}
			goCommand(t, dir, "build", "./...")
		})
	}
}

func write(t *testing.T, dir, path, text string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
