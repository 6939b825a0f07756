package core

import (
	"context"
	"iter"
	"strings"
	"time"
)

// Provider is what a store implements. It is for authors of backends:
// applications use a [Locker]. docs/writing-a-provider.md walks through one,
// and conformancetest.Run checks one.
//
// Core guarantees before every call that the name follows rule R8, that the
// durations follow rule R10 and are whole multiples of the declared resolution,
// and that the token is new for every acquisition. A Provider is safe for
// concurrent use.
//
// Providers return a store's errors as they are, or one of this package's
// sentinels; core adds the operation and the lock's name.
type Provider interface {
	// Acquire makes one attempt to take the lock and never waits for a holder.
	//
	// It returns the grant; or a [*HeldError] when another grant is live; or
	// any other error when the store could not decide. It is idempotent by
	// token: when the record already carries c.Token and is live, Acquire
	// returns that grant unchanged. Client libraries that retry by themselves
	// and core's own settling after a lost answer both rely on that.
	//
	// An error after which the write may still have been carried out is marked
	// with [Uncertain].
	Acquire(ctx context.Context, c Claim) (Grant, error)

	// Release frees the lock at the later of the store's now and g's original
	// acquisition plus keepFor, and keeps the record (R5, R19).
	//
	// When the record is not g's, or g is no longer live, Release leaves the
	// store unchanged and returns [ErrLost]. g may come from core's clean-up
	// rather than from Acquire: then only Name, Owner and Token are set, and
	// Release must still free what that token took.
	Release(ctx context.Context, g Grant, keepFor time.Duration) error

	// Capabilities says what the provider can do. It is constant for the life
	// of the provider and makes no I/O.
	Capabilities() Capabilities
}

// Extender is the optional ability to prolong or shorten a live grant, declared
// by [CapExtend].
type Extender interface {
	// Extend sets lock_until to the store's now plus d and returns the grant
	// with its new LockedUntil. LockedAt and Fence stay. When the record is not
	// g's, or g is no longer live, it leaves the store unchanged and returns
	// [ErrLost]. d may be shorter than what is left.
	Extend(ctx context.Context, g Grant, d time.Duration) (Grant, error)
}

// Inspector is the optional ability to look at locks and to free one on an
// operator's behalf, declared by [CapInspect].
type Inspector interface {
	// Inspect reads one record; found is false when there is none.
	Inspect(ctx context.Context, name string) (r Record, found bool, err error)

	// List reads all records, ordered by name where the store can, in bounded
	// memory. It yields one last error when reading fails.
	List(ctx context.Context) iter.Seq2[Record, error]

	// ForceRelease frees r at once, whoever holds it, if the store still holds
	// exactly the grant that r shows; otherwise it changes nothing and returns
	// [ErrLost]. An extension does not make it another grant; a successor does.
	ForceRelease(ctx context.Context, r Record) error
}

// Capabilities describes a provider.
type Capabilities struct {
	// Set holds the optional abilities.
	Set Capability
	// Resolution is the smallest step of the store's lock_until, at least 1 ns.
	// Durations are rounded up to it.
	Resolution time.Duration
	// ClockWidth is how far the provider's view of the store's clock may be from
	// it: 0 where the store reads its own clock in each write. Elsewhere, with
	// package storeclock, a lock may be held by that much longer than asked for, and
	// found free by as much later again; neither is ever shorter or sooner.
	ClockWidth time.Duration
}

// Capability is a set of optional abilities.
type Capability uint32

// The optional abilities.
const (
	// CapExtend: the provider is an [Extender].
	CapExtend Capability = 1 << iota
	// CapInspect: the provider is an [Inspector].
	CapInspect
	// CapFence: grants carry fencing numbers (R14).
	CapFence
	// CapHolder: a held answer names the holder's label.
	CapHolder
	// CapTimes: a held answer says since when and until when.
	CapTimes
	// CapPersistent: locks survive a restart of the store.
	CapPersistent
)

var capabilityNames = []string{"extend", "inspect", "fence", "holder", "times", "persistent"}

// Has reports whether all of want is in c.
func (c Capability) Has(want Capability) bool { return c&want == want }

// String lists the abilities, separated by commas.
func (c Capability) String() string {
	var names []string
	for i, name := range capabilityNames {
		if c.Has(1 << i) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ",")
}

// Claim is what one acquisition asks for.
type Claim struct {
	// Name is the lock's name.
	Name string
	// Owner is the label that people see as the holder.
	Owner string
	// Token identifies this acquisition and no other: 26 characters of A-Z and
	// 2-7, 130 random bits.
	Token string
	// AtMostFor is how long the lock is held if nobody releases it.
	AtMostFor time.Duration
	// AtLeastFor is how long it stays held after an early release. Release is
	// told again; stores need not keep it.
	AtLeastFor time.Duration
}

// Holder is the text for a store's locked_by field: see [FormatHolder].
func (c Claim) Holder() string { return FormatHolder(c.Owner, c.Token) }

// Grant is a lock that was taken.
type Grant struct {
	// Name, Owner and Token are those of the claim.
	Name, Owner, Token string
	// LockedAt and LockedUntil are the store's times, in UTC.
	LockedAt, LockedUntil time.Time
	// Fence is the fencing number, or 0 where the provider has none.
	Fence int64
	// State is for the provider's own use, such as a record's version. It is
	// nil in a grant that core made to clean up after a lost answer.
	State any
}

// Holder is the text for a store's locked_by field: see [FormatHolder].
func (g Grant) Holder() string { return FormatHolder(g.Owner, g.Token) }

// Record is a lock as an operator sees it.
type Record struct {
	// Name is the lock's name, Owner the holder's or the last holder's label.
	Name, Owner string
	// LockedBy is the store's field as it stands, of which Owner is the
	// readable part. It contains the ownership token.
	LockedBy string
	// LockedAt and LockedUntil are the store's times, in UTC.
	LockedAt, LockedUntil time.Time
	// StoreTime is the store's clock when the record was read, in UTC.
	StoreTime time.Time
	// Fence is the fencing number, or 0 where the provider has none.
	Fence int64
	// State is for the provider's own use, such as a record's version.
	State any
}

// Held reports whether the lock was held when the record was read.
func (r Record) Held() bool { return r.LockedUntil.After(r.StoreTime) }

// Remaining is the time from the reading until the lock is free, or 0.
func (r Record) Remaining() time.Duration { return max(0, r.LockedUntil.Sub(r.StoreTime)) }

// HeldError makes the answer to an attempt from the record that refused it.
func (r Record) HeldError() *HeldError {
	return &HeldError{Name: r.Name, Owner: r.Owner, Since: r.LockedAt, Until: r.LockedUntil}
}

// maxHolder is the width of ShedLock's locked_by column.
const maxHolder = 255

// tokenLength is the length of crypto/rand.Text: 26 base32 characters.
const tokenLength = 26

// FormatHolder makes the text that stores keep in locked_by: "<label>/<token>".
// A label that would make it longer than ShedLock's column of 255 is cut at a
// character's boundary; the token never is.
func FormatHolder(label, token string) string {
	if room := maxHolder - 1 - len(token); len(label) > room {
		label = strings.ToValidUTF8(label[:max(0, room)], "")
	}
	return label + "/" + token
}

// ParseHolder splits what FormatHolder made. For a text that another program
// wrote, such as a host name by ShedLock, the label is the whole text and the
// token is empty.
func ParseHolder(lockedBy string) (label, token string) {
	i := strings.LastIndexByte(lockedBy, '/')
	if i < 0 || len(lockedBy)-i-1 != tokenLength {
		return lockedBy, ""
	}
	for _, b := range []byte(lockedBy[i+1:]) {
		if (b < 'A' || b > 'Z') && (b < '2' || b > '7') {
			return lockedBy, ""
		}
	}
	return lockedBy[:i], lockedBy[i+1:]
}
