package repocheck

import (
	"bytes"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func isMarkdown(path string) bool { return strings.HasSuffix(path, ".md") }

// snippet matches a marked block of Go:
//
//	<!-- example: core/example_test.go ExampleLocker_Run -->
//	```go
//	…the body of that function, as far as its "Output:" comment…
//	```
//
// The second comment, for what can't be an example, has the reason instead:
//
//	<!-- not tested: it shows half a function -->
var snippet = regexp.MustCompile("(?ms)^(?:<!-- (example|not tested): ([^\n]*?) -->\n)?```go\n(.*?)^```$") //nolint:gocritic // with (?m) a ^ may stand inside

// Go code in documentation is cut from examples that go test runs.
func TestSnippetsAreExamples(t *testing.T) {
	for _, file := range files(t, isMarkdown) {
		for _, m := range snippet.FindAllStringSubmatch(read(t, file), -1) {
			kind, what, code := m[1], m[2], m[3]
			switch kind {
			case "not tested":
			case "example":
				source, name, ok := strings.Cut(what, " ")
				if !ok {
					t.Errorf("%s: %q: an example is named by its file and function", file, what)
					continue
				}
				if want := exampleBody(t, source, name); code != want {
					t.Errorf("%s: the snippet differs from %s in %s, which is:\n%s", file, name, source, want)
				}
			default:
				first, _, _ := strings.Cut(code, "\n")
				t.Errorf("%s: the snippet that begins with %q does not name its example: see the comment of the variable snippet", file, first)
			}
		}
	}
}

// exampleBody is the code within a function, without its indentation and without
// the comment that has its output.
func exampleBody(t *testing.T, path, name string) string {
	t.Helper()
	source := []byte(read(t, path))
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, path, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range parsed.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Name.Name != name {
			continue
		}
		body := source[fset.Position(f.Body.Lbrace).Offset+1 : fset.Position(f.Body.Rbrace).Offset]
		if i := regexp.MustCompile(`(?m)^\s*// (Unordered o|O)utput:`).FindIndex(body); i != nil {
			body = body[:i[0]]
		}
		formatted, err := format.Source(bytes.TrimSpace(body))
		if err != nil {
			t.Fatal(err)
		}
		return string(formatted) + "\n"
	}
	t.Errorf("%s has no function %s", path, name)
	return ""
}

// makeTarget finds targets of make where they are quoted.
var makeTarget = regexp.MustCompile("`make ([a-z][a-z-]*)")

func TestCitedTargetsExist(t *testing.T) {
	makefile := read(t, "Makefile")
	var targets []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z-]*):.*## `).FindAllStringSubmatch(makefile, -1) {
		targets = append(targets, m[1])
	}
	if len(targets) < 5 {
		t.Fatalf("the Makefile has the targets %q only: is it read rightly?", targets)
	}
	for _, target := range targets {
		if !strings.Contains(makefile, ".PHONY: "+target+"\n") {
			t.Errorf("Makefile: %s is not .PHONY, so a file of that name would hide it", target)
		}
	}
	cites := func(file string, pattern *regexp.Regexp) {
		t.Helper()
		for _, m := range pattern.FindAllStringSubmatch(read(t, file), -1) {
			if !slices.Contains(targets, m[1]) {
				t.Errorf("%s cites make %s, which the Makefile does not have", file, m[1])
			}
		}
	}
	for _, file := range files(t, func(path string) bool {
		return isMarkdown(path) || slices.Contains([]string{".go", ".yml", ".yaml"}, filepath.Ext(path))
	}) {
		cites(file, makeTarget)
	}
	cites(".ci/run", regexp.MustCompile(`\bmake ([a-z][a-z-]*)`))
}

// The linter's version is in one place.
func TestLinterVersionIsInOnePlace(t *testing.T) {
	version := regexp.MustCompile(`golangci-lint@v\d`)
	for _, file := range files(t, func(path string) bool { return path != "Makefile" && !strings.HasSuffix(path, ".sum") }) {
		if version.MatchString(read(t, file)) {
			t.Errorf("%s pins golangci-lint; the Makefile does, and has `make lint`", file)
		}
	}
}
