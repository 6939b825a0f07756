package core

import (
	"errors"
	"fmt"
	"time"
)

// Errors that callers branch on, with errors.Is.
var (
	// ErrHeld says that somebody else holds the lock. The error is a
	// [*HeldError], which says who, since when and until when.
	ErrHeld = errors.New("lock is held")

	// ErrLost says that a grant is no longer the caller's: it expired, was
	// released, was taken over, or can no longer be trusted.
	ErrLost = errors.New("lock is lost")

	// ErrUncertain says that an attempt may have left a lock in the store which
	// could be neither confirmed nor taken back. At worst the name is held, by
	// nobody, until AtMostFor has passed.
	ErrUncertain = errors.New("outcome is uncertain")

	// ErrInvalidName says that a lock's name breaks rule R8.
	ErrInvalidName = errors.New("invalid lock name")

	// ErrInvalidDuration says that a duration breaks rule R10.
	ErrInvalidDuration = errors.New("invalid duration")

	// ErrUnsupported says that the provider lacks an optional ability.
	ErrUnsupported = errors.New("not supported by this provider")
)

// HeldError is the [ErrHeld] of one attempt. Fields the store cannot tell are
// zero; [CapHolder] and [CapTimes] say which a provider fills in.
type HeldError struct {
	// Name is the lock's name.
	Name string
	// Owner is the holder's label, such as "host/4711".
	Owner string
	// Since is the store's time of the holder's acquisition, in UTC.
	Since time.Time
	// Until is the store's time at which the lock becomes free, in UTC, unless
	// it is extended or released before.
	Until time.Time
}

// Error names the lock and what is known of its holder.
func (e *HeldError) Error() string {
	s := fmt.Sprintf("shedbolt: lock %q is held", e.Name)
	if e.Owner != "" {
		s += " by " + e.Owner
	}
	if !e.Since.IsZero() {
		s += " since " + e.Since.Format(time.RFC3339)
	}
	if !e.Until.IsZero() {
		s += " until " + e.Until.Format(time.RFC3339)
	}
	return s
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Uncertain marks a provider's error as one after which the write may have been
// carried out. Core then settles the claim: see rule R3. Providers must mark
// every error that could hide a successful write, and none that can't.
func Uncertain(err error) error {
	if err == nil {
		return nil
	}
	return &uncertainError{err}
}

type uncertainError struct{ cause error }

func (e *uncertainError) Error() string   { return ErrUncertain.Error() + ": " + e.cause.Error() }
func (e *uncertainError) Unwrap() []error { return []error{ErrUncertain, e.cause} }

// settled takes the mark of Uncertain off again.
func settled(err error) error {
	if u, ok := errors.AsType[*uncertainError](err); ok {
		return u.cause
	}
	return err
}

// opError adds the operation and the name, exactly once, to what a provider
// returned.
func opError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*HeldError](err); ok {
		return err
	}
	return fmt.Errorf("shedbolt: %s %q: %w", op, name, err)
}
