package core

import (
	"context"
	"errors"
	"time"
)

// Outcome says what became of one run.
type Outcome int

// The outcomes of a run.
const (
	// NotRun: an error kept the task from running (R17).
	NotRun Outcome = iota
	// Skipped: somebody else held the lock. This is not an error.
	Skipped
	// Ran: the task ran under the lock from beginning to end.
	Ran
	// Lost: the task ran, and the lease was lost before it had ended.
	Lost
)

// String is "not run", "skipped", "ran" or "lost".
func (o Outcome) String() string {
	switch o {
	case Skipped:
		return "skipped"
	case Ran:
		return "ran"
	case Lost:
		return "lost"
	}
	return "not run"
}

// Result describes one run.
type Result struct {
	// Outcome says whether the task ran.
	Outcome Outcome
	// Held says who holds the lock, when Outcome is Skipped.
	Held *HeldError
	// Fence is the run's fencing number, or 0.
	Fence int64
	// Took is how long the task ran, on the local clock.
	Took time.Duration
}

// Run makes one attempt to take the lock, runs task under it, and releases it.
// When somebody else holds the lock, task does not run, the result's outcome is
// [Skipped], and the error is nil.
//
// The task's context is cancelled with a cause that wraps [ErrLost] when the
// lease can't be relied on any more; a task that goes on nevertheless may overlap
// with another replica's. A task that fails, panics or calls runtime.Goexit
// releases the lock by the same rule as one that succeeds (R5), and a panic goes
// on to the caller.
//
// The error joins the task's own with a lost lease's ([ErrLost]) or a failed
// release's.
func (l *Locker) Run(ctx context.Context, k Lock, task func(context.Context) error) (result Result, err error) {
	lease, err := l.TryLock(ctx, k)
	if err != nil {
		if held, ok := errors.AsType[*HeldError](err); ok {
			l.log.DebugContext(ctx, "shedbolt: skipped", "lock", k.Name, "holder", held.Owner, "until", held.Until)
			return Result{Outcome: Skipped, Held: held}, nil
		}
		return Result{}, err
	}
	start := time.Now()
	ended := false
	var taskErr error
	taskCtx, cancel := lease.Context(ctx)
	// Deferred, so that a panic and runtime.Goexit release too.
	defer func() {
		result = Result{Outcome: Ran, Fence: lease.Fence(), Took: time.Since(start)}
		lost := opError("run", k.Name, lease.Err())
		cancel()
		releaseErr := lease.Release(ctx)
		if errors.Is(releaseErr, ErrLost) {
			if lost == nil {
				lost = releaseErr // the record was gone before the task had ended
			}
			releaseErr = nil
		}
		if lost != nil {
			result.Outcome = Lost
		}
		if err = taskErr; lost != nil || releaseErr != nil {
			err = errors.Join(taskErr, lost, releaseErr)
		}
		l.log.InfoContext(ctx, "shedbolt: ran", "lock", k.Name, "outcome", result.Outcome.String(),
			"took", result.Took, "fence", result.Fence, "returned", ended, "error", taskErr)
	}()
	taskErr = task(taskCtx)
	ended = true
	return result, err
}

// Wrap returns a function that does what [Locker.Run] does, for a ticker or a
// scheduler to call. A skipped run returns nil.
func (l *Locker) Wrap(k Lock, task func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := l.Run(ctx, k, task)
		return err
	}
}
