package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

// supervise runs the command under the lease and returns its exit code. lost says
// that it was ended because the lease was. ctx has ended if a signal came before
// the command was started.
func supervise(ctx context.Context, lease *core.Lease, path string, o runOptions, started chan<- struct{}, signals <-chan os.Signal, stderr io.Writer) (code int, lost bool) {
	if i, ok := errors.AsType[interrupted](context.Cause(ctx)); ok {
		return signalCode(i.signal), false
	}
	term := lease.Deadline().Add(-o.grace)
	fence := "" // a store without numbers has none, not the number 0
	if n := lease.Fence(); n > 0 {
		fence = strconv.FormatInt(n, 10)
	}
	cmd := exec.Command(path, o.args[1:]...) //nolint:noctx // it ends by signals to its group, not by a context
	cmd.Args[0] = o.args[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(),
		"SHEDBOLT_NAME="+lease.Name(),
		"SHEDBOLT_TOKEN="+lease.Token(),
		"SHEDBOLT_FENCE="+fence,
		"SHEDBOLT_DEADLINE="+term.UTC().Format("2006-01-02T15:04:05.000Z"),
	)
	child, err := start(cmd)
	close(started)
	if err != nil {
		complain(stderr, "%v", err)
		if errors.Is(err, fs.ErrNotExist) {
			return exitNotFound, false
		}
		return exitCannot, false
	}

	timer := time.NewTimer(time.Until(term))
	defer timer.Stop()
	done := lease.Done()
	for {
		select {
		case s := <-signals:
			child.signal(s)
		case <-timer.C:
			complain(stderr, "lost: lock %q runs out, ending the command (KILL follows in %v)", lease.Name(), o.grace)
			lost = true
			child.terminate()
		case <-done:
			if !lost {
				complain(stderr, "lost: %v, ending the command", lease.Err())
			}
			lost, done = true, nil
			child.kill()
		case <-child.exited:
			if lost {
				child.kill() // what is left of its group
			}
			return child.code(), lost
		}
	}
}
