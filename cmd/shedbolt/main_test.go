//go:build unix

package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary is the command as users have it, built once.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "shedbolt")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "shedbolt")
	build := exec.Command("go", "build", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// limit bounds everything that a test waits for.
const limit = 30 * time.Second

// host is a place to run the command: a store and a folder for files.
type host struct {
	t     *testing.T
	dir   string
	store string
}

func newHost(t *testing.T) host {
	t.Helper()
	dir := t.TempDir()
	return host{t, dir, "sqlite:" + filepath.Join(dir, "locks.db")}
}

func (h host) path(name string) string { return filepath.Join(h.dir, name) }

// process is a run of the binary.
type process struct {
	t              *testing.T
	cmd            *exec.Cmd
	stdout, stderr *bytes.Buffer
	done           chan struct{}
}

// start runs the binary in the background with extra environment variables.
func (h host) start(env []string, args ...string) *process {
	h.t.Helper()
	p := &process{t: h.t, stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, done: make(chan struct{})}
	p.cmd = exec.Command(binary, args...)
	p.cmd.Dir = h.dir
	p.cmd.Env = append(os.Environ(), "SHEDBOLT_STORE="+h.store, "HOME="+h.dir, "XDG_STATE_HOME=")
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stdout, p.cmd.Stderr = p.stdout, p.stderr
	// Grandchildren that outlive the binary must not keep Wait.
	p.cmd.WaitDelay = 5 * time.Second
	if err := p.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	h.t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// wait returns the exit code, or minus the signal that ended the process.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(limit):
		_ = p.cmd.Process.Kill()
		p.t.Fatalf("%v has not ended in %v; stderr: %s", p.cmd.Args, limit, p.stderr)
	}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return -int(status.Signal())
	}
	return p.cmd.ProcessState.ExitCode()
}

// result is a finished run.
type result struct {
	code           int
	stdout, stderr string
}

func (h host) run(args ...string) result {
	h.t.Helper()
	return h.runEnv(nil, args...)
}

func (h host) runEnv(env []string, args ...string) result {
	h.t.Helper()
	p := h.start(env, args...)
	code := p.wait()
	return result{code, p.stdout.String(), p.stderr.String()}
}

// until polls for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("waited %v for %s", limit, what)
}

func (h host) untilFile(name string) string {
	h.t.Helper()
	var text []byte
	until(h.t, "the file "+name, func() bool {
		var err error
		text, err = os.ReadFile(h.path(name))
		return err == nil && bytes.HasSuffix(text, []byte("\n"))
	})
	return strings.TrimSpace(string(text))
}

func (h host) pid(name string) int {
	h.t.Helper()
	pid, err := strconv.Atoi(h.untilFile(name))
	if err != nil {
		h.t.Fatal(err)
	}
	return pid
}

// alive reports whether a process runs: one that has ended and was not waited
// for by its parent does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

func oneLine(t *testing.T, r result, want string) {
	t.Helper()
	if strings.Count(r.stderr, "\n") != 1 || !strings.HasPrefix(r.stderr, "shedbolt: ") || !strings.Contains(r.stderr, want) {
		t.Errorf("stderr is %q, want one line with %q", r.stderr, want)
	}
}

func TestExitCodeIsTheCommands(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	for script, want := range map[string]int{
		"exit 0":        0,
		"exit 3":        3,
		"exit 255":      255,
		"kill -TERM $$": 143,
		"kill -KILL $$": 137,
	} {
		if r := h.run("run", "--name", "job", "--at-most", "1m", "--", "sh", "-c", script); r.code != want || r.stderr != "" {
			t.Errorf("%s: exit code %d, want %d; stderr %q", script, r.code, want, r.stderr)
		}
	}
}

func TestStreamsPassThrough(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	p := exec.Command(binary, "run", "--name", "job", "--at-most", "PT1M", "--", "sh", "-c", "cat; echo err >&2")
	p.Env = append(os.Environ(), "SHEDBOLT_STORE="+h.store)
	p.Stdin = strings.NewReader("typed\n")
	var stdout, stderr bytes.Buffer
	p.Stdout, p.Stderr = &stdout, &stderr
	if err := p.Run(); err != nil || stdout.String() != "typed\n" || stderr.String() != "err\n" {
		t.Errorf("%v, stdout %q, stderr %q", err, stdout.String(), stderr.String())
	}
}

func TestArgumentsPassUnchanged(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	r := h.run("run", "--name", "job", "--at-most", "1m", "--", "printf", "%s|", "--name", "a b", "", "--", "$x")
	if r.stdout != "--name|a b||--|$x|" {
		t.Errorf("the command got %q", r.stdout)
	}
}

// Started three times at once for one name, one runs and two say who holds it.
func TestThreeAtOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	threeAtOnce(t, h)
}

func threeAtOnce(t *testing.T, h host) {
	t.Helper()
	var all []*process
	for i := range 3 {
		all = append(all, h.start(nil, "run", "--name", "job", "--at-most", "1m", "--owner", fmt.Sprint("host-", i), "--held-code", "9",
			"--", "sh", "-c", "echo ran >>runs; until [ -e go ]; do sleep 0.02; done"))
	}
	// The two that skip end by themselves; only then may the one that runs.
	until(t, "two to skip", func() bool {
		n := 0
		for _, p := range all {
			select {
			case <-p.done:
				n++
			default:
			}
		}
		return n == 2
	})
	if err := os.WriteFile(h.path("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ran, skipped, holder := 0, 0, ""
	for i, p := range all {
		switch code := p.wait(); code {
		case 0:
			ran++
			holder = fmt.Sprint("host-", i)
		case 9:
			skipped++
		default:
			t.Errorf("exit code %d, stderr %q", code, p.stderr)
		}
	}
	if ran != 1 || skipped != 2 {
		t.Errorf("%d ran and %d skipped, want 1 and 2", ran, skipped)
	}
	line := regexp.MustCompile(`^shedbolt: skipped: lock "job" is held by ` + holder + ` since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d until .*\n$`)
	for _, p := range all {
		if p.wait() == 9 && !line.MatchString(p.stderr.String()) {
			t.Errorf("the one that skipped says %q, want one line that names %s", p.stderr, holder)
		}
	}
	if runs := h.untilFile("runs"); runs != "ran" {
		t.Errorf("the command left %q, want one run", runs)
	}
}

// After kill -9 of the holder the next start succeeds once the holder's at-most
// has passed, and not before; and its command has not gone on without it.
func TestKilledHolder(t *testing.T) {
	t.Parallel()
	killedHolder(t, newHost(t))
}

func killedHolder(t *testing.T, h host) {
	t.Helper()
	const atMost = 3 * time.Second
	before := time.Now() // the lock can't be taken earlier
	holder := h.start(nil, "run", "--name", "job", "--at-most", atMost.String(), "--", "sh", "-c", "echo $$ >child; exec sleep 60")
	child := h.pid("child")
	if err := holder.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	holder.wait()
	until(t, "the killed holder's command to end", func() bool { return !alive(child) })
	for {
		r := h.run("run", "--name", "job", "--at-most", "1m", "--held-code", "9", "--", "true")
		if r.code == 0 {
			if waited := time.Since(before); waited < atMost {
				t.Errorf("the next start won after %v, before the holder's at-most of %v", waited, atMost)
			}
			return
		}
		if r.code != 9 {
			t.Fatalf("exit code %d, stderr %q", r.code, r.stderr)
		}
		// A refusal that began well after the end is one too many: allow for the
		// time between before and the acquisition.
		if time.Since(before) > limit {
			t.Fatalf("the lock is still held after %v", limit)
		}
	}
}

func TestAtLeastIsHonoured(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	const atLeast = 1500 * time.Millisecond
	before := time.Now()
	if r := h.run("run", "--name", "job", "--at-most", "1m", "--at-least", atLeast.String(), "--", "true"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	for {
		r := h.run("run", "--name", "job", "--at-most", "1m", "--held-code", "9", "--", "true")
		if r.code == 9 && time.Since(before) < limit {
			continue
		}
		if waited := time.Since(before); r.code != 0 || waited < atLeast {
			t.Errorf("exit code %d after %v, want 0 after %v; stderr %q", r.code, waited, atLeast, r.stderr)
		}
		return
	}
}

func TestSignalsReachTheWholeGroup(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			// The command and a grandchild both note the signal; the command ends
			// with a code of its own.
			name := strings.TrimPrefix(strings.ToUpper(sigName(sig)), "SIG")
			// The grandchild is in the foreground: a shell makes what it starts in the
			// background ignore INT and QUIT.
			p := h.start(nil, "run", "--name", "job", "--at-most", "1m", "--", "bash", "-c", `
				trap 'echo got >>command; exit 7' `+name+`
				bash -c 'trap "echo got >>grandchild; exit" `+name+`; echo ready >ready; while :; do sleep 0.05; done'
				while :; do sleep 0.05; done`)
			h.untilFile("ready")
			if err := p.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if code := p.wait(); code != 7 {
				t.Errorf("exit code %d, want the command's 7; stderr %q", code, p.stderr)
			}
			h.untilFile("command")
			h.untilFile("grandchild")
			// Released although the wrapper was signalled.
			if r := h.run("run", "--name", "job", "--at-most", "1m", "--held-code", "9", "--", "true"); r.code != 0 {
				t.Errorf("after the signal the lock is still held: %q", r.stderr)
			}
		})
	}
}

func sigName(s syscall.Signal) string {
	return map[syscall.Signal]string{
		syscall.SIGINT: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "SIGHUP", syscall.SIGQUIT: "SIGQUIT",
	}[s]
}

// A command that outlives its lock is told to end, then killed, before the lock
// is free; also one that ignores TERM, one that is stopped, and its children.
func TestEndedBeforeTheLockRunsOut(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"ends when told":   `trap 'echo told >told; exit 3' TERM; echo $$ >pid; while :; do sleep 0.02; done`,
		"ignores TERM":     `trap '' TERM; echo $$ >pid; while :; do sleep 0.02; done`,
		"is stopped":       `trap 'echo told >told; exit 3' TERM; echo $$ >pid; kill -STOP $$; while :; do sleep 0.02; done`,
		"has a child":      `bash -c 'trap "" TERM; echo $$ >pid; while :; do sleep 0.02; done' & wait`,
		"leaves its child": `bash -c 'trap "" TERM; echo $$ >pid; while :; do sleep 0.02; done' & trap 'exit 0' TERM; wait`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			p := h.start(nil, "run", "--name", "job", "--at-most", "4s", "--grace", "1s", "--", "bash", "-c", script)
			pid := h.pid("pid")
			if code := p.wait(); code != 75 {
				t.Errorf("exit code %d, want 75; stderr %q", code, p.stderr)
			}
			if !strings.Contains(p.stderr.String(), `lost: lock "job" runs out`) {
				t.Errorf("stderr is %q", p.stderr)
			}
			until(t, "the command to end", func() bool { return !alive(pid) })
			if name == "ends when told" || name == "is stopped" {
				h.untilFile("told")
			}
			// Whatever the machine's load, it had ended before another could start.
			if r := h.run("run", "--name", "job", "--at-most", "1m", "--held-code", "9", "--", "sh", "-c",
				fmt.Sprintf("kill -0 %d 2>/dev/null && grep -qv ') Z ' /proc/%d/stat && echo overlap", pid, pid)); strings.Contains(r.stdout, "overlap") {
				t.Errorf("the command overlapped with the next: %+v", r)
			}
		})
	}
}

func TestRecordGoneWhenTheCommandEnds(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	p := h.start(nil, "run", "--name", "job", "--at-most", "1m", "--", "sh", "-c", "echo $$ >pid; until [ -e go ]; do sleep 0.02; done")
	h.pid("pid")
	if err := os.Remove(h.path("locks.db")); err != nil { // an operator starts afresh
		t.Fatal(err)
	}
	_ = os.Remove(h.path("locks.db-wal"))
	_ = os.Remove(h.path("locks.db-shm"))
	if err := os.WriteFile(h.path("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// Whether the open file still answers depends on the driver; either way the
	// command's end is reported, and not as a crash.
	if code := p.wait(); code != 0 && code != 75 {
		t.Errorf("exit code %d, want 0 or 75; stderr %q", code, p.stderr)
	}
}

func TestEnvironmentOfTheCommand(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	before := time.Now()
	r := h.run("run", "--name", "my job", "--at-most", "1m", "--grace", "10s", "--", "sh", "-c",
		`echo "$SHEDBOLT_NAME|$SHEDBOLT_TOKEN|$SHEDBOLT_FENCE|$SHEDBOLT_DEADLINE"`)
	parts := strings.Split(strings.TrimSpace(r.stdout), "|")
	if len(parts) != 4 {
		t.Fatalf("%+v", r)
	}
	deadline, err := time.Parse("2006-01-02T15:04:05.000Z", parts[3])
	if parts[0] != "my job" || len(parts[1]) != 26 || err != nil || deadline.Before(before.Add(49*time.Second)) || deadline.After(time.Now().Add(50*time.Second)) {
		t.Errorf("the command's environment is %q", parts)
	}
	fence, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || fence <= 0 {
		t.Errorf("the fence is %q", parts[2])
	}
	again := h.run("run", "--name", "my job", "--at-most", "1m", "--", "sh", "-c", "echo $SHEDBOLT_FENCE")
	if next, err := strconv.ParseInt(strings.TrimSpace(again.stdout), 10, 64); err != nil || next <= fence {
		t.Errorf("the next run's fence is %q, want more than %d", again.stdout, fence)
	}
}

func TestDryRun(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	r := h.run("run", "--name", "job", "--at-most", "1m", "--dry-run", "--", "touch", "ran")
	if r.code != 0 || !strings.Contains(r.stdout, `would run ["touch" "ran"] under lock "job", which is free`) {
		t.Errorf("%+v", r)
	}
	left, err := os.ReadDir(h.dir)
	if err != nil || len(left) > 0 {
		t.Errorf("the dry run left %v, %v", left, err)
	}
	p := h.start(nil, "run", "--name", "job", "--at-most", "1m", "--owner", "me", "--", "sh", "-c", "echo $$ >pid; until [ -e go ]; do sleep 0.02; done")
	h.pid("pid")
	r = h.run("run", "--name", "job", "--at-most", "1m", "--held-code", "9", "--dry-run", "--", "touch", "ran")
	if r.code != 9 || !strings.Contains(r.stdout, `would skip: lock "job" is held by me since`) {
		t.Errorf("%+v", r)
	}
	if r = h.run("run", "--name", "other", "--at-most", "1m", "--dry-run", "--", "touch", "ran"); r.code != 0 {
		t.Errorf("%+v", r)
	}
	if err := os.WriteFile(h.path("go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.wait()
	if _, err := os.Stat(h.path("ran")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the dry run ran the command: %v", err)
	}
}

func TestDefaultStore(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.store = ""
	if r := h.run("run", "--name", "job", "--at-most", "1m", "--", "true"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	file := filepath.Join(h.dir, ".local", "state", "shedbolt", "locks.db")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the default store is %v, %v, want a file for its owner alone", info, err)
	}
	if dir, err := os.Stat(filepath.Dir(file)); err != nil || dir.Mode().Perm() != 0o700 {
		t.Errorf("its folder is %v, %v, want one for its owner alone", dir, err)
	}
	if r := h.runEnv([]string{"XDG_STATE_HOME=" + h.path("state")}, "run", "--name", "job", "--at-most", "1m", "--", "true"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if _, err := os.Stat(h.path("state/shedbolt/locks.db")); err != nil {
		t.Error(err)
	}
	oneLine(t, h.runEnv([]string{"HOME="}, "run", "--name", "job", "--at-most", "1m", "--", "true"), "--store: there is no home directory")
}

func TestStoreFlagWins(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	if r := h.run("run", "--name", "job", "--at-most", "1m", "--store", "sqlite:odd name?#%.db", "--", "true"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	if _, err := os.Stat(h.path("odd name?#%.db")); err != nil {
		t.Error(err)
	}
}

func TestBadUsage(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	good := []string{"--name", "job", "--at-most", "1m"}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run"}, "--name: it is required"},
		{[]string{"run", "--name", "job", "--", "true"}, "--at-most: it is required"},
		{append([]string{"run"}, good...), "--: the command is missing"},
		{append([]string{"run", "--at-least", "2m"}, append(good, "--", "true")...), "--at-least: 2m0s is longer than --at-most 1m0s"},
		{append([]string{"run", "--at-least", "-1s"}, append(good, "--", "true")...), "--at-least: invalid duration"},
		{[]string{"run", "--name", "job", "--at-most", "soon", "--", "true"}, `--at-most: invalid duration: "soon" is neither like 10m nor like PT10M`},
		{[]string{"run", "--name", "job", "--at-most", "0", "--", "true"}, "--at-most: it must be more than 0"},
		{[]string{"run", "--name", "job", "--at-most", "P20000D", "--", "true"}, "--at-most: P20000D is more than ten years"},
		{[]string{"run", "--name", " job", "--at-most", "1m", "--", "true"}, "--name: invalid lock name: \" job\" begins or ends with white space"},
		{[]string{"run", "--name", strings.Repeat("x", 65), "--at-most", "1m", "--", "true"}, "at most 64 are allowed"},
		{append([]string{"run", "--grace", "1m"}, append(good, "--", "true")...), "--grace: 1m0s leaves nothing of --at-most 1m0s"},
		{append([]string{"run", "--held-code", "300"}, append(good, "--", "true")...), "--held-code: 300 is not between 0 and 255"},
		{append([]string{"run", "--held-code", "x"}, append(good, "--", "true")...), `--held-code: "x" is no int`},
		{append([]string{"run", "--nam", "x"}, append(good, "--", "true")...), "--nam: unknown flag"},
		{append([]string{"run", "--store"}, good[:0]...), "--store: it needs a value"},
		{append([]string{"run", "--store", "oracle://x"}, append(good, "--", "true")...), "--store: unknown kind of store; known: sqlite:FILE, postgres://"},
		{append([]string{"run", "--store", "sqlite://host/file"}, append(good, "--", "true")...), "--store: write sqlite:FILE"},
		{append([]string{"run", "--store", "sqlite:"}, append(good, "--", "true")...), "--store: sqlite: needs a file"},
		{append([]string{"run", "--table", "x"}, append(good, "--", "true")...), "--table: it is for stores shared with others"},
		{append([]string{"run", "--owner", "a\nb"}, append(good, "--", "true")...), "--owner: owner label"},
		{[]string{"rum"}, `"rum" is no command; known: run, version`},
	} {
		r := h.run(c.args...)
		if r.code != 64 {
			t.Errorf("%q: exit code %d, want 64", c.args, r.code)
		}
		oneLine(t, r, c.want)
	}
	for _, c := range []struct {
		command string
		code    int
	}{{"no-such-command", 127}, {"./plain", 126}} {
		if err := os.WriteFile(h.path("plain"), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
		r := h.run(append([]string{"run"}, append(good, "--", c.command)...)...)
		if r.code != c.code {
			t.Errorf("%s: exit code %d, want %d", c.command, r.code, c.code)
		}
		oneLine(t, r, strings.TrimPrefix(c.command, "./"))
	}
	// Nothing of this took the lock.
	if r := h.run("run", "--name", "job", "--at-most", "1m", "--held-code", "9", "--", "true"); r.code != 0 {
		t.Errorf("bad usage left the lock held: %+v", r)
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	if r := h.run(); r.code != 64 || !strings.Contains(r.stderr, "Usage:") {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{{"--help"}, {"help"}, {"-h"}} {
		if r := h.run(args...); r.code != 0 || !strings.Contains(r.stdout, "run a command under a lock") {
			t.Errorf("%q: %+v", args, r)
		}
	}
	r := h.run("run", "--help")
	for _, want := range []string{"--name", "--at-most", "--at-least", "--store", "--held-code", "--grace", "--dry-run", "64 ", "69 ", "75 ", "126 ", "127 ", "SHEDBOLT_FENCE", "PT10M"} {
		if r.code != 0 || !strings.Contains(r.stdout, want) {
			t.Errorf("run --help does not say %q", want)
		}
	}
	for _, arg := range []string{"version", "--version"} {
		if r := h.run(arg); r.code != 0 || !strings.HasPrefix(r.stdout, "shedbolt ") {
			t.Errorf("%s: %+v", arg, r)
		}
	}
}

func TestStoreErrors(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	if err := os.WriteFile(h.path("text.db"), bytes.Repeat([]byte("this is no database\n"), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	silent := silentServer(t)
	for _, c := range []struct{ store, want string }{
		{"sqlite:" + h.path("text.db"), "not run"},
		{"sqlite:" + h.path("text.db/x/locks.db"), "not run"},
		{"postgres://me:hunter2@127.0.0.1:1/db", "not run"},
		{"postgres://me:hunter2@" + silent + "/db", "not run"},
		{"postgres://me:hunter2@127.0.0.1:1/db?sslmode=bogus", "--store"},
		{"postgres://me:hunter2@127.0.0.1:port/db", "--store"},
		{"postgres://me:hun%2ter2@127.0.0.1/db", "--store"},
		{"postgress://me:hunter2@127.0.0.1/db", "--store: unknown kind of store"},
	} {
		start := time.Now()
		r := h.run("run", "--name", "job", "--at-most", "1m", "--store", c.store, "--store-timeout", "2s", "--", "touch", "ran")
		if want := map[bool]int{true: 64, false: 69}[strings.HasPrefix(c.want, "--store")]; r.code != want {
			t.Errorf("%s: exit code %d, want %d", c.store, r.code, want)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s: it took %v", c.store, took)
		}
		oneLine(t, r, c.want)
		if strings.Contains(r.stderr, "hunter2") || strings.Contains(r.stderr, "ter2@") {
			t.Errorf("stderr shows the password: %q", r.stderr)
		}
	}
	if _, err := os.Stat(h.path("ran")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a command ran without a lock: %v", err)
	}
}

// Many processes, one counter file that only the lock protects.
func TestManyProcesses(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	if err := os.WriteFile(h.path("counter"), []byte("0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*limit)
	defer cancel()
	var mu sync.Mutex
	ran := 0
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for mine := 0; mine < 4; {
				cmd := exec.CommandContext(ctx, binary, "run", "--name", "job", "--at-most", "1m", "--held-code", "9", "--",
					"sh", "-c", "n=$(cat counter); sleep 0.01; echo $((n+1)) >counter")
				cmd.Dir, cmd.Env = h.dir, append(os.Environ(), "SHEDBOLT_STORE="+h.store)
				out, err := cmd.CombinedOutput()
				var exit *exec.ExitError
				switch {
				case err == nil:
					mine++
					mu.Lock()
					ran++
					mu.Unlock()
				case !errors.As(err, &exit) || exit.ExitCode() != 9:
					t.Errorf("%v: %s", err, out)
					return
				}
			}
		})
	}
	wg.Wait()
	if got := h.untilFile("counter"); got != strconv.Itoa(ran) || ran != 16 {
		t.Errorf("the counter is at %s after %d runs", got, ran)
	}
}
