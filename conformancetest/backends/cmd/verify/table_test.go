package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRowFailsUnlessTheSuiteRan(t *testing.T) {
	const passed = `{"harness":"h","case":"a/b","rules":"R1","status":"passed","seconds":0.1}` + "\n"
	for _, test := range []struct {
		name, report, want string
	}{
		{"passed", passed, ""},
		{"one skipped", passed + `{"harness":"h","case":"a/c","status":"skipped","detail":"no Peek"}`, ""},
		{"no file", "", "did not run"},
		{"empty file", "\n", "did not run"},
		{"all skipped", `{"harness":"h","case":"a/c","status":"skipped"}`, "did not run"},
		{"cut off", passed + `{"harness":"h","ca`, "report: unexpected EOF"},
		{"unknown status", passed + `{"harness":"h","case":"a/c","status":"fine"}`, `status "fine"`},
		{"failed, but go test passed", passed + `{"harness":"h","case":"a/c","status":"failed"}`, "does not say"},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "report.jsonl")
			if test.report != "" {
				if err := os.WriteFile(file, []byte(test.report), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := new(row).add(file)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("add = %v, want nil", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("add = %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestTable(t *testing.T) {
	ran := row{backend: "postgres17", module: floor, server: "PostgreSQL 17.6", client: "v5.13.0", took: 12 * time.Second}
	report := `{"harness":"PostgreSQL 17.6, plain","case":"a/b","rules":"R1","status":"passed"}
{"harness":"PostgreSQL 17.6, plain","case":"a/c","rules":"R2 R3","status":"skipped","detail":"the harness has no Peek"}
{"harness":"PostgreSQL 17.6, serializable","case":"a/c","rules":"R2 R3","status":"skipped","detail":"the harness has no Peek"}
{"harness":"PostgreSQL 17.6, serializable","case":"a/d","rules":"R4","status":"deviates","detail":"it is so"}`
	if err := ran.read(strings.NewReader(report)); err != nil {
		t.Fatal(err)
	}
	skipped := row{backend: "postgres18", module: floor, note: "no Docker engine answers"}

	for _, test := range []struct {
		name string
		rows []row
		ok   bool
		want []string
	}{
		{"ran", []row{ran}, true, []string{
			"BACKEND SERVER CLIENT MODULE SUITES PASSED FAILED SKIPPED DEVIATE TIME RESULT",
			"postgres17 PostgreSQL 17.6 v5.13.0 floor 2 1 0 2 1 12s ok",
			"a/c (R2 R3): the harness has no Peek on PostgreSQL 17.6, plain [floor]; PostgreSQL 17.6, serializable [floor]",
			"Deviating cases: a/d (R4): it is so",
			"1 deviate, 0 backends not run 1 passed, 0 failed, 2 skipped",
		}},
		{"not run", []row{ran, skipped}, true, []string{
			"postgres18 - - floor - - - - - 0s not run",
			"not run postgres18: no Docker engine answers",
			"1 backends not run",
		}},
		{"required, not run", []row{ran, {backend: "postgres18", module: floor, note: "no engine", failed: true}}, false, []string{
			"postgres18 - - floor - - - - - 0s FAILED",
			"FAILED postgres18, floor: no engine",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			if ok := printTable(&out, test.rows); ok != test.ok {
				t.Errorf("printTable says %v, want %v", ok, test.ok)
			}
			flat := strings.Join(strings.Fields(out.String()), " ")
			for _, want := range test.want {
				if !strings.Contains(flat, want) {
					t.Errorf("%q is missing in:\n%s", want, out.String())
				}
			}
		})
	}
}

func TestTrips(t *testing.T) {
	line := func(harness, trips string) string {
		return `{"harness":"` + harness + `","case":"contexts_and_faults/round_trips","status":"passed","trips":` + trips + "}\n"
	}
	const one, two = `{"won":1,"refused":1,"first":1,"release":1}`, `{"won":2,"refused":1,"first":2,"release":1,"extend":1}`
	var oldest, latest row
	for r, report := range map[*row]string{
		&oldest: line("X 1.0, plain", one) + line("Y 2.0, plain", two) + line("X 1.0, a", two) + line("X 1.0, b", one) +
			line("X 1.0, c", one) + line("X 1.0, d", one),
		&latest: line("X 1.0, plain", one) + `{"harness":"X 1.0, plain","case":"a/b","status":"passed"}`,
	} {
		if err := r.read(strings.NewReader(report)); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	printTrips(&out, []row{oldest, latest})
	flat := strings.Join(strings.Fields(out.String()), " ")
	const want = "| X 1.0 | plain, b, 2 more | 1 | 1 | 1 | 1 | - | " +
		"| X 1.0 | a | 2 | 1 | 2 | 1 | 1 | " +
		"| Y 2.0 | plain | 2 | 1 | 2 | 1 | 1 |"
	if !strings.HasSuffix(flat, want) {
		t.Errorf("the table should end with %q:\n%s", want, out.String())
	}
	out.Reset()
	printTrips(&out, []row{{}})
	if out.Len() > 0 {
		t.Errorf("nothing was counted, and yet:\n%s", out.String())
	}
}

func TestChoose(t *testing.T) {
	if _, err := choose("postgres17,postgers18"); err == nil {
		t.Error("a slip in -backends is accepted")
	}
	chosen, err := choose("sqlite, postgres17")
	if err != nil || len(chosen) != 2 || chosen[1].Name != "postgres17" {
		t.Errorf("choose = %v, %v", chosen, err)
	}
	for required, ok := range map[string]bool{"": true, "all": true, "sqlite,postgres17": true, "postgers17": false} {
		if err := checkRequired(required); (err == nil) != ok {
			t.Errorf("checkRequired(%q) = %v", required, err)
		}
	}
}
