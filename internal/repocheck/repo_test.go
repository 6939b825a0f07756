package repocheck

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// modulePath is the released module's.
const modulePath = "github.com/shedbolt/shedbolt"

// root is the repository's folder as seen from this one.
var root = filepath.Join("..", "..")

// providers lists the folders in providers/.
func providers(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, "providers"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		t.Fatal("providers/ is empty")
	}
	return names
}

// files lists the repository's files, by their path from the root with slashes,
// as far as keep says so.
func files(t *testing.T, keep func(path string) bool) []string {
	t.Helper()
	var found []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if slices.Contains([]string{".git", "bin", "dist", "vendor"}, d.Name()) {
				return fs.SkipDir
			}
		case keep(path):
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// read reads a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// goCommand runs the go command in a folder without asking any proxy: what the
// module itself needs is there, or these tests would not have been built.
func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "PWD="+dir)
	if dir == root { // its go.mod is not ours to change
		cmd.Env = append(cmd.Env, "GOFLAGS=-mod=readonly", "PWD=")
	}
	if slices.Contains(args, "-mod=vendor") {
		cmd.Env = append(cmd.Env, "GOFLAGS=")
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s in %s: %v\n%s", strings.Join(args, " "), dir, err, &stderr)
	}
	return string(out)
}
