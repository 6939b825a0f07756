package core

import (
	"fmt"
	"time"
)

// Lock is what an application writes down once per task. It holds no point in
// time, so one value serves for the life of the process and for many goroutines.
type Lock struct {
	// Name identifies the task across all replicas: see rule R8 and [CheckName].
	Name string
	// AtMostFor is how long the lock is held when its holder dies. It must be
	// comfortably longer than the task ever takes: a task that is still running
	// then is told by its context, and another replica may start.
	AtMostFor time.Duration
	// AtLeastFor is how long the lock is held after a task that was quick. It
	// should exceed the difference between the replicas' clocks, and be shorter
	// than the schedule's period. Zero frees the lock at once.
	AtLeastFor time.Duration
}

// Check reports whether the lock follows rules R8 and R10. The error wraps
// [ErrInvalidName] or [ErrInvalidDuration]. A [Locker] checks by itself, before
// any I/O; Check is for configuration that should fail at start.
func (k Lock) Check() error {
	if err := CheckName(k.Name); err != nil {
		return err
	}
	if err := checkDuration("AtMostFor", k.AtMostFor, 1); err != nil {
		return err
	}
	if err := checkDuration("AtLeastFor", k.AtLeastFor, 0); err != nil {
		return err
	}
	if k.AtLeastFor > k.AtMostFor {
		return fmt.Errorf("shedbolt: %w: AtLeastFor %v is longer than AtMostFor %v", ErrInvalidDuration, k.AtLeastFor, k.AtMostFor)
	}
	return nil
}
