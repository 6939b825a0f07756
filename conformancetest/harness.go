package conformancetest

import (
	"context"
	"testing"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

// Harness connects the suite to one store. Name and Open are required; each
// further field enables the cases that need it, and a case that can't run for
// want of one is reported as skipped, with the reason.
type Harness struct {
	// Name names the store and its version in the report, as in
	// "PostgreSQL 17.6".
	Name string

	// Open makes a client that is independent of all others: its own provider
	// on its own connections to the one store. What it opens it closes with
	// tb.Cleanup. It may be called inside a testing/synctest bubble, with a
	// clock in the year 2000: see NoBubble.
	Open func(tb testing.TB) core.Provider

	// Peek reads a record without the provider under test, together with the
	// store's clock at that moment.
	Peek func(ctx context.Context, name string) (Peeked, error)

	// Remove deletes a record as an operator would, without the provider.
	Remove func(ctx context.Context, name string) error

	// Put writes a record as ShedLock would, without the provider: held by
	// lockedBy from the store's now plus sinceNow until the store's now plus
	// untilNow. Either may be negative.
	Put func(ctx context.Context, name, lockedBy string, sinceNow, untilNow time.Duration) error

	// Writes counts what clients have written to the lock's records so far, in
	// any unit that grows with each write and stands still without one. The
	// suite compares two values around attempts that must not write.
	Writes func(ctx context.Context) (int64, error)

	// Broken makes clients on a store that fails in one way each, such as
	// "down", "read_only", "no_table" and "no_permission".
	Broken map[string]Breakage

	// PoolOfOne makes a client whose pool has a single connection, and a
	// function that occupies it until the returned function is called.
	PoolOfOne func(tb testing.TB) (p core.Provider, occupy func(tb testing.TB) (free func()))

	// Resources counts what a client may leak besides goroutines, such as
	// pooled connections in use, sessions or child nodes, in total.
	Resources func(ctx context.Context) (int64, error)

	// Resolution is the store's, if it is coarser than the provider declares.
	// Cases in real time use small multiples of it.
	Resolution time.Duration

	// NoBubble says why Open can't be called in a synctest bubble; empty means
	// that it can.
	NoBubble string

	// Deviations lists the cases, by "area/case", that this store can't pass,
	// with the reason. A listed case that passes fails the suite.
	Deviations map[string]string
}

// Peeked is one record as it stands in the store.
type Peeked struct {
	// Found is false when there is no record; StoreTime is set all the same.
	Found bool
	// Raw is the whole record in any canonical text: equal texts mean an
	// unchanged record, byte for byte.
	Raw string
	// LockedBy, LockedAt and LockedUntil are the record's fields, as far as the
	// store keeps them; times in UTC.
	LockedBy              string
	LockedAt, LockedUntil time.Time
	// StoreTime is the store's clock when the record was read, in UTC.
	StoreTime time.Time
}

// Breakage is one way for a store to fail.
type Breakage struct {
	// Open makes a client on the failing store.
	Open func(tb testing.TB) core.Provider
	// Mend takes the cause away, so that the same client works again; nil
	// where that can't be done.
	Mend func(tb testing.TB)
}
