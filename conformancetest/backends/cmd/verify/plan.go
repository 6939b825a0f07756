package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/shedbolt/shedbolt/conformancetest/backends"
	"github.com/shedbolt/shedbolt/internal/testenv"
)

// plan is what is to be run.
type plan struct {
	root     string
	fleet    *backends.Fleet
	backends []backends.Backend

	race, short bool
	count, jobs int

	printing *sync.Mutex // keeps the output of one go test together
}

// The two modules, named by the clients that they use.
const (
	floor  = "floor"
	newest = "newest"
)

// dir is the folder of a module.
func (p plan) dir(which string) string {
	if which == newest {
		return filepath.Join(p.root, "conformancetest", "backends")
	}
	return p.root
}

// run runs everything and returns a row for each backend and module.
func (p plan) run(ctx context.Context) []row {
	rows := []row{p.rest(ctx, floor), p.rest(ctx, newest)}
	// Several backends at once, because the suite mostly waits for locks to
	// expire; but never two suites on one server, where some cases count.
	results := make([][]row, len(p.backends))
	free := make(chan struct{}, max(1, p.jobs))
	var wg sync.WaitGroup
	for i, b := range p.backends {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			if ctx.Err() == nil {
				results[i] = p.backend(ctx, b)
			}
		})
	}
	wg.Wait()
	return append(rows, slices.Concat(results...)...)
}

// backend runs all tests on one backend.
func (p plan) backend(ctx context.Context, b backends.Backend) []row {
	first := row{backend: b.Name, module: floor}
	var floorEnv, newestEnv []string
	if b.Server != nil {
		s, err := p.fleet.Start(ctx, b)
		if err != nil {
			first.module = "-"
			first.note = err.Error()
			first.failed = !backends.Excused(b, err)
			return []row{first}
		}
		defer func() {
			if err := s.Stop(); err != nil {
				say("stop %s: %v", b.Name, err)
			}
		}()
		first.server = s.Version
		say("%s is %s, %s", b.Name, s.Version, s.Origin)
		floorEnv = append(s.Address.Env(b.Known), testenv.RequireVar+"="+b.Known)
		newestEnv = append(s.Address.Env(b.Name), testenv.RequireVar+"="+b.Name)
	}

	second := first
	first.client = p.clientVersion(ctx, b.Client, floor)
	args := []string{"./providers/" + b.Provider}
	if b.Run != "" {
		args = append([]string{"-run", b.Run}, args...)
	}
	p.suite(ctx, &first, floorEnv, args)
	if b.Run == "" && b.Command != "" {
		p.goTest(ctx, &first, floorEnv, []string{"-run", b.Command, "./cmd/..."})
	}
	if b.Test == "" {
		return []row{first}
	}
	second.module = newest
	pattern := "^" + b.Test + "$"
	if b.Server != nil {
		pattern += "/^" + b.Name + "$"
	}
	second.client = p.clientVersion(ctx, b.Client, newest)
	p.suite(ctx, &second, newestEnv, []string{"-run", pattern, "."})
	return []row{first, second}
}

// suite runs tests that contain the conformance suite, and adds up its report.
func (p plan) suite(ctx context.Context, r *row, env, args []string) {
	folder, err := os.MkdirTemp("", "shedbolt-verify-")
	if err != nil {
		r.fail(err.Error())
		return
	}
	defer func() { _ = os.RemoveAll(folder) }()
	report := filepath.Join(folder, "report.jsonl")
	p.goTest(ctx, r, append(env, testenv.ReportVar+"="+report), args)
	if err := r.add(report); err != nil {
		r.fail(err.Error())
	}
}

// rest runs a module's tests that need no backend.
func (p plan) rest(ctx context.Context, which string) row {
	r := row{backend: "(no store)", module: which, plain: true}
	args := []string{"./..."}
	if which == newest {
		var tests []string
		for _, b := range backends.All() {
			if b.Test != "" && !slices.Contains(tests, b.Test) {
				tests = append(tests, b.Test)
			}
		}
		args = append([]string{"-skip", "^(" + strings.Join(tests, "|") + ")$"}, args...)
	} else {
		out, err := p.output(ctx, which, "list", "./...")
		if err != nil {
			r.fail(err.Error())
			return r
		}
		args = slices.DeleteFunc(strings.Fields(out), func(pkg string) bool {
			return slices.ContainsFunc(backends.All(), func(b backends.Backend) bool {
				return pkg == module+"/providers/"+b.Provider
			})
		})
	}
	p.goTest(ctx, &r, nil, args)
	return r
}

// goTest runs go test. Its output goes straight to ours, or in one piece where
// several run at once.
func (p plan) goTest(ctx context.Context, r *row, env, args []string) {
	if ctx.Err() != nil {
		r.fail("interrupted")
		return
	}
	flags := []string{"test", "-timeout", "30m", "-count", strconv.Itoa(p.count)}
	if p.race {
		flags = append(flags, "-race")
	}
	if p.short {
		flags = append(flags, "-short")
	}
	cmd := p.command(ctx, r.module, append(flags, args...)...)
	cmd.Env = append(cmd.Env, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if p.jobs <= 1 {
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	}
	say("%s, %s: go %s", r.backend, r.module, strings.Join(cmd.Args[1:], " "))
	start := time.Now()
	err := cmd.Run()
	r.took += time.Since(start)
	if out.Len() > 0 {
		p.printing.Lock()
		fmt.Printf("==> %s, %s\n%s", r.backend, r.module, &out)
		p.printing.Unlock()
	}
	if err != nil {
		r.fail("go test: " + err.Error())
	}
}

// clientVersion is the version of a client library that a module uses.
func (p plan) clientVersion(ctx context.Context, client, which string) string {
	if client == "" {
		return ""
	}
	out, err := p.output(ctx, which, "list", "-m", "-f", "{{.Version}}", client)
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(out)
}

func (p plan) output(ctx context.Context, which string, args ...string) (string, error) {
	var stderr bytes.Buffer
	cmd := p.command(ctx, which, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

// command makes a go command in a module's folder. It ends, with all that it has
// started, when ctx does.
func (p plan) command(ctx context.Context, which string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = p.dir(which)
	cmd.WaitDelay = 10 * time.Second
	endWithGroup(cmd)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), ours), "GOWORK=off", "PWD="+cmd.Dir)
	return cmd
}

// ours reports whether a variable says to tests what each run here says anew.
func ours(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	return name == testenv.RequireVar || name == testenv.ReportVar ||
		strings.HasPrefix(name, "SHEDBOLT_TEST_") && strings.HasSuffix(name, "_DSN")
}
