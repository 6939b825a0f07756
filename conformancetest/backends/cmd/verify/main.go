// Command verify is what `make test` runs: all tests of both modules, on every
// backend that this machine can have.
//
// It starts each server, runs the provider's own tests on it with the
// oldest supported client, then the conformance suite with the newest one, and
// ends with a table of what was run, on which versions, with which result, and of
// what was not run and why. A backend that SHEDBOLT_TEST_REQUIRE names ("all", or
// names separated by commas) fails the run if it is skipped; and none passes
// unless the suite reports that it ran.
//
// Package backends says where servers come from.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/shedbolt/shedbolt/conformancetest/backends"
	"github.com/shedbolt/shedbolt/internal/testenv"
)

// module is the path of the released module.
const module = "github.com/shedbolt/shedbolt"

func main() {
	p := plan{printing: new(sync.Mutex)}
	only := flag.String("backends", "", "`names` of the backends to run on, separated by commas; empty means all")
	images := flag.Bool("images", false, "only make the servers' images available, and print their names")
	flag.BoolVar(&p.race, "race", false, "with the race detector")
	flag.BoolVar(&p.short, "short", false, "without tests that take long")
	flag.IntVar(&p.jobs, "jobs", 4, "run on `n` backends at once; with 1 the output is not held back")
	flag.IntVar(&p.count, "count", 1, "run each test `n` times")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: verify [flags]\n\nIt runs all tests; see the comment in main.go. The flags are:")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	os.Exit(run(p, *only, *images))
}

func run(p plan, only string, images bool) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	if p.root, err = findRoot(); err != nil {
		return usage(err)
	}
	if p.backends, err = choose(only); err != nil {
		return usage(err)
	}
	if err := checkRequired(os.Getenv(testenv.RequireVar)); err != nil {
		return usage(err)
	}
	p.fleet = backends.NewFleet(filepath.Join(p.root, "conformancetest", "backends"), say)
	if images {
		return makeImages(ctx, p)
	}
	// Also when a signal has cut it short.
	rows := p.run(ctx)
	if err := p.fleet.Close(); err != nil {
		say("stop servers: %v", err)
		return 1
	}
	if ctx.Err() != nil {
		say("interrupted")
		return 130
	}
	if !printTable(os.Stdout, rows) {
		return 1
	}
	return 0
}

func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "verify: "+format+"\n", args...)
}

func usage(err error) int {
	say("%v", err)
	return 2
}

// findRoot looks for the folder of the released module, here or above.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && slices.Contains(strings.Split(string(text), "\n"), "module "+module) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("run it in a folder of %s", module)
		}
		dir = filepath.Dir(dir)
	}
}

// choose turns the flag's names into backends.
func choose(names string) ([]backends.Backend, error) {
	if names == "" {
		return backends.All(), nil
	}
	var chosen []backends.Backend
	for name := range strings.SplitSeq(names, ",") {
		b, err := backends.Find(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, b)
	}
	return chosen, nil
}

// checkRequired refuses names that are none: a slip must not make a backend
// optional.
func checkRequired(required string) error {
	for name := range strings.SplitSeq(required, ",") {
		if name = strings.TrimSpace(name); name == "" || name == "all" {
			continue
		}
		if _, err := backends.Find(name); err != nil {
			return fmt.Errorf("%s: %w", testenv.RequireVar, err)
		}
	}
	return nil
}

// makeImages builds what lab images are needed, several at once: each build waits
// for the network and for the disk in turn.
func makeImages(ctx context.Context, p plan) int {
	sharing := map[string][]int{} // backends, by their image
	for i, b := range p.backends {
		if b.Server != nil {
			image := cmp.Or(b.Server.Lab, b.Server.Official)
			sharing[image] = append(sharing[image], i)
		}
	}
	found := make([]string, len(p.backends))
	failed := make([]error, len(p.backends))
	free := make(chan struct{}, 3)
	var wg sync.WaitGroup
	for _, indices := range sharing {
		wg.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			for _, i := range indices {
				image, err := p.fleet.Image(ctx, p.backends[i])
				switch {
				case err == nil:
					found[i] = image
				case backends.Excused(p.backends[i], err):
					found[i] = "none: " + err.Error()
				default:
					failed[i] = fmt.Errorf("%s: %w", p.backends[i].Name, err)
				}
			}
		})
	}
	wg.Wait()
	for i, b := range p.backends {
		if found[i] != "" {
			fmt.Printf("%-20s %s\n", b.Name, found[i])
		}
	}
	if err := errors.Join(failed...); err != nil {
		say("%v", err)
		return 1
	}
	return 0
}
