// Package core holds what every part of Shedbolt agrees on: the contract of a
// scheduled-task lock, the small interface a store implements, and the Locker
// and Lease that applications use. It imports only the standard library.
//
// A scheduled task that every replica triggers must run on at most one replica
// at a time. A [Locker] takes a named lock in a store the team already runs,
// through a [Provider], and judges it by the store's own clock. AtMostFor is
// the upper bound: a holder that dies blocks nobody for longer. AtLeastFor is
// the lower bound: a replica whose tick comes a little later does not repeat a
// task that was quick. A lock that is held means skip, never wait.
//
//	locker, err := core.New(provider)
//	…
//	result, err := locker.Run(ctx, core.Lock{
//		Name:       "nightly-report",
//		AtMostFor:  30 * time.Minute,
//		AtLeastFor: 1 * time.Minute,
//	}, func(ctx context.Context) error {
//		return report(ctx)
//	})
//
// # What it is not
//
// Shedbolt is not a mutex for hot paths, not a queue and not a workflow engine,
// and it does not promise exactly-once effects. A lock in a store bounds how
// many replicas start a task; a paused process, a broken network or an operator
// can still lead to a task that is cut short or repeated. Keep tasks
// idempotent, and use [Lease.Fence] where the resource can check it.
//
// # The contract
//
// Code, conformance cases and documentation cite these rules by number.
//
// R1, exclusion: for one name, at any instant of the store's clock, at most one
// grant is live.
//
// R2, one attempt: [Provider.Acquire] tries once and never waits for a holder.
// Retry, settling and renewal exist once, here in core.
//
// R3, three outcomes: granted; [ErrHeld], with the holder's label, since when
// and until when as far as the store can tell; or an error. A store that is
// down, read-only, misconfigured, throttling or deadlocking is never reported
// as held. When the answer to a write is lost, core repeats the claim under the
// same token, which a provider recognises, or takes the claim back; only when
// neither can be done is the outcome [ErrUncertain].
//
// R4, expiry: a lock nobody releases is free from the instant at which the
// store's clock reaches lock_until, which is the store's time of acquisition
// plus AtMostFor: not before, free at equality, and not later than the store's
// resolution after.
//
// R5, minimum hold: after release the lock stays held until the store's time of
// the original acquisition plus AtLeastFor, also after an extension, and also
// when the task failed or panicked.
//
// R6, ownership: release and extension act only on the grant they belong to,
// which is known by a random token made here for every acquisition. For
// anything else the store stays unchanged, byte for byte, and the caller gets
// [ErrLost]. Owner labels are for people and never decide anything.
//
// R7, extension: succeeds only while the grant is live, sets lock_until to the
// store's now plus the duration, and never re-creates a record.
//
// R8, names: 1 to 64 Unicode code points, valid UTF-8, no control characters,
// no white space at either end; checked here before any I/O, so that every
// backend agrees; a refusal is [ErrInvalidName] and says which rule was broken.
// Two different names are two locks on every backend.
//
// R9, store time: only the store's clock decides expiry. A client whose wall
// clock is off by hours changes nothing.
//
// R10, durations: AtMostFor is required, more than zero, and has no silent
// default. AtLeastFor is between zero and AtMostFor. Durations are rounded up
// to the store's resolution, never down; more than [MaxDuration] is refused
// with [ErrInvalidDuration].
//
// R11, contexts: every call is bounded by its context, also when the client
// library ignores it or the server hangs; at most the clean-up limit (see
// [WithCleanupLimit]) is added for giving back what may have been taken.
// Release runs with cancellation removed and the same limit of its own, so a
// cancelled task still releases. A cancelled attempt leaves no live lock behind.
//
// R12, late grant: local monotonic time counts from before the request. A grant
// that is used up when its answer arrives is given back, not used.
//
// R13, loss is told: when a lease can no longer be trusted, contexts made from
// it are cancelled with cause [ErrLost] before another owner can start.
//
// R14, fencing: where a provider declares [CapFence], grants of one name carry
// strictly increasing numbers.
//
// R15, not re-entrant: a second acquisition of a held name is held, also for
// the same process. [FromContext] finds the lease a task already has.
//
// R16, no hidden work: no goroutines, connections or statements beyond the
// calls made. Nothing remains after release.
//
// R17, fail closed: on any error the task does not run.
//
// R18, no secrets: passwords and ownership tokens do not appear in errors, logs
// or String methods.
//
// R19, shared format: records are those of ShedLock for the JVM, so that both
// can share one lock: never deleted on release, columns listed by name, extra
// columns optional.
//
// # Clocks
//
// Times in [Grant], [Record] and [HeldError] are the store's, in UTC. They
// compare with each other but not with time.Now: the two clocks may differ by
// hours. [Lease.Deadline] is the local, monotonic end of a lease. It is
// conservative: it counts from before the request that took the lease, so the
// store's lock_until comes later by at least the time the request took. A
// further margin covers clocks that run at slightly different rates and the time
// a cancellation needs: AtMostFor/1000 + 20 ms, at most a tenth of AtMostFor; and
// one step of the store's clock, which may show a time up to a step ago.
//
// A store whose writes can't read its clock is served by package storeclock. What
// it can't know of that clock, [Capabilities].ClockWidth, makes a lock last a
// little longer than R4 says, and never shorter.
package core
