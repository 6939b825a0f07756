package conformancetest

import (
	"context"
	"testing"
	"time"

	"github.com/shedbolt/shedbolt/core"
)

// Harness connects the suite to one store. Name, Open and Peek are required;
// each further field enables the cases that need it, and a case that can't run
// for want of one is skipped, with the reason.
type Harness struct {
	// Name names the store and its version in the report, as in
	// "PostgreSQL 17.6".
	Name string

	// Open makes a client that is independent of all others: its own provider
	// on its own connections to the one store. What it opens it closes with
	// tb.Cleanup. It is also called inside a testing/synctest bubble, whose
	// clock starts in the year 2000: see NoBubble.
	Open func(tb testing.TB) core.Provider

	// OpenSkewed makes an independent client whose local clock is off by that much
	// but runs evenly, for stores whose clients can't live in a bubble.
	OpenSkewed func(tb testing.TB, off time.Duration) core.Provider

	// Peek reads a record without the provider under test.
	Peek func(ctx context.Context, name string) (Peeked, error)

	// Remove deletes a record as an operator would, without the provider.
	Remove func(ctx context.Context, name string) error

	// Put writes a record as ShedLock would, without the provider: locked_at is
	// the store's now plus since, lock_until its now plus until. Either may be
	// negative.
	Put func(ctx context.Context, name, lockedBy string, since, until time.Duration) error

	// Broken makes clients on a store that fails in one way each. The suite
	// knows "down", "read_only", "no_table" and "no_permission"; any other key
	// is checked alike.
	Broken map[string]Breakage

	// PoolOfOne makes a client that has a single connection, and a function
	// that occupies it until the function it returns is called.
	PoolOfOne func(tb testing.TB) (p core.Provider, occupy func(tb testing.TB) (free func()))

	// Resources counts what clients may leak besides goroutines, such as
	// connections in use, sessions or child nodes.
	Resources func(ctx context.Context) (int64, error)

	// Server is the store's address, such as "127.0.0.1:5432", and Through makes an
	// independent client that connects to another address instead, behind which
	// the suite has a [Proxy].
	Server  string
	Through func(tb testing.TB, addr string) core.Provider

	// RoundTrips says how many round trips the calls may need at most; 0 is any
	// number.
	RoundTrips RoundTrips

	// Forgets says why the store keeps no record of a lock that is free, which R19
	// wants. Empty means that it keeps them.
	Forgets string

	// NoBubble says why Open can't be called in a synctest bubble. Empty means
	// that it can.
	NoBubble string

	// Deviations lists cases, by "area/case", that this store can't pass, with
	// the reason. A listed case that passes fails the suite.
	Deviations map[string]string
}

// RoundTrips counts the round trips of calls on a connection that is in use
// already.
type RoundTrips struct {
	// Won and Refused are Acquire's, of a name whose record exists.
	Won     int `json:"won,omitempty"`
	Refused int `json:"refused,omitempty"`
	// First is Acquire's of a name that has no record.
	First   int `json:"first,omitempty"`
	Release int `json:"release,omitempty"`
	Extend  int `json:"extend,omitempty"`
}

// Peeked is one record as it stands in the store.
type Peeked struct {
	// Found is false when there is no record. StoreTime is set all the same.
	Found bool
	// Raw is the whole record in any canonical text, including whatever the
	// store changes with each write, such as a row's version. Equal texts mean
	// that nothing was written to it.
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
	// Open makes a client on the failing store, and a function that takes the
	// cause away so that the same client works again; nil where that can't be
	// done.
	Open func(tb testing.TB) (p core.Provider, mend func())
}
