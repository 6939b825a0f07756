package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// headings are those of each provider's package comment, in this order, so that
// whoever knows one provider finds what they look for in all.
var headings = []string{
	"Requirements", "Schema", "Clock", "Guarantees and limits", "Errors", "Client ownership",
}

func TestProviderFolders(t *testing.T) {
	for _, name := range providers(t) {
		for _, file := range []string{"doc.go", "provider.go", "conformance_test.go", "example_test.go"} {
			if _, err := os.Stat(filepath.Join(root, "providers", name, file)); err != nil {
				t.Errorf("providers/%s lacks %s, which each provider has", name, file)
			}
		}
		path := "providers/" + name + "/doc.go"
		file := parse(t, path)
		var found []string
		for _, m := range regexp.MustCompile(`(?m)^# (.+)$`).FindAllStringSubmatch(file.Doc.Text(), -1) {
			found = append(found, m[1])
		}
		if !slices.Equal(found, headings) {
			t.Errorf("%s has the headings %q, want %q", path, found, headings)
		}
	}
}

// A suite that a provider does not run proves nothing about it.
func TestProvidersRunTheSuite(t *testing.T) {
	for _, name := range providers(t) {
		path := "providers/" + name + "/conformance_test.go"
		runs := false
		ast.Inspect(parse(t, path), func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isSelector(call.Fun, "conformancetest", "Run") {
				runs = true
			}
			return true
		})
		if !runs {
			t.Errorf("%s does not call conformancetest.Run", path)
		}
	}
}

// seam lists types of core that only authors of providers meet.
var seam = []string{"Capabilities", "Capability", "Claim", "Grant", "Record"}

// Each function that users call, and each type that they hold, is shown in an
// example, which go test runs or at least compiles.
func TestExamples(t *testing.T) {
	folders := []string{"core"}
	for _, name := range providers(t) {
		folders = append(folders, "providers/"+name)
	}
	for _, folder := range folders {
		shown := shownInExamples(t, folder)
		for _, file := range files(t, func(path string) bool {
			return filepath.ToSlash(filepath.Dir(path)) == folder && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
		}) {
			for _, decl := range parse(t, file).Decls {
				switch decl := decl.(type) {
				case *ast.FuncDecl:
					if name := decl.Name.Name; decl.Recv == nil && decl.Name.IsExported() && !shown[name] {
						t.Errorf("%s: no example calls %s", file, name)
					}
				case *ast.GenDecl:
					for _, spec := range decl.Specs {
						spec, ok := spec.(*ast.TypeSpec)
						if !ok || !spec.Name.IsExported() || folder == "core" && slices.Contains(seam, spec.Name.Name) {
							continue
						}
						if _, ok := spec.Type.(*ast.StructType); ok && !shown[spec.Name.Name] {
							t.Errorf("%s: no example shows %s", file, spec.Name.Name)
						}
					}
				}
			}
		}
	}
}

// shownInExamples lists what a folder's examples use of the package, and what
// they are named for. A type is also shown by a function or method that returns
// it: New shows Locker.
func shownInExamples(t *testing.T, folder string) map[string]bool {
	t.Helper()
	shown := map[string]bool{}
	used := map[string]bool{} // any selector, such as a method's name
	for _, file := range files(t, func(path string) bool {
		return filepath.ToSlash(filepath.Dir(path)) == folder && strings.HasSuffix(path, "_test.go")
	}) {
		parsed := parse(t, file)
		pkg := filepath.Base(folder)
		for _, imported := range parsed.Imports {
			if imported.Name != nil && imported.Path.Value == strconv.Quote(modulePath+"/"+folder) {
				pkg = imported.Name.Name
			}
		}
		for _, decl := range parsed.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Example") {
				continue
			}
			name, _, _ := strings.Cut(strings.TrimPrefix(f.Name.Name, "Example"), "_")
			shown[name] = true
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					used[s.Sel.Name] = true
					if isSelector(s, pkg, s.Sel.Name) {
						shown[s.Sel.Name] = true
					}
				}
				return true
			})
		}
	}
	for _, file := range files(t, func(path string) bool {
		return filepath.ToSlash(filepath.Dir(path)) == folder && strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
	}) {
		for _, decl := range parse(t, file).Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || !f.Name.IsExported() || f.Type.Results == nil || !used[f.Name.Name] {
				continue
			}
			for _, result := range f.Type.Results.List {
				if star, ok := result.Type.(*ast.StarExpr); ok {
					result.Type = star.X
				}
				if id, ok := result.Type.(*ast.Ident); ok {
					shown[id.Name] = true
				}
			}
		}
	}
	return shown
}

// parse parses a file of the repository, with its comments.
func parse(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, filepath.FromSlash(path)), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func importsOf(t *testing.T, path string) []string {
	t.Helper()
	var imports []string
	for _, spec := range parse(t, path).Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		imports = append(imports, imported)
	}
	return imports
}

func isSelector(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	id, ok := s.X.(*ast.Ident)
	return ok && id.Name == pkg
}
