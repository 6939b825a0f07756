// Package storeclock knows what time it is on a store whose writes can't read the
// store's clock: DynamoDB, ZooKeeper, some servers that speak MongoDB's protocol.
// It is for authors of providers, and imports only the standard library.
//
// The answers of such a store carry its time, be it in a header or as the time of
// a write. Each says that at some instant between the request and the answer the
// store's clock was within an [Interval]: at least as wide as the clock's step (a
// second, for HTTP's Date), and then there is the time the answer took. A [Clock]
// intersects what answers say, so it soon knows more than any of them: steps of a
// second, seen at different fractions of a second, leave little room.
//
// # How to use it
//
// A provider takes the end of the interval that can't do harm:
//
//   - a lock is free when Earliest has reached its lock_until;
//   - a new lock_until, and locked_at, count from Latest;
//   - a grant may be extended while Latest is before its lock_until.
//
// What is not known of the clock then makes locks a little longer, never two
// holders: while one client's interval and another's both contain the store's time,
// the Latest of the one that has written is not before the Earliest of the one that
// waits.
//
// # What it relies on
//
// The local clock is used to measure the time between answers, never as a clock on
// the wall, which may be wrong by any amount. It and the store's clock may run apart
// by [DefaultDrift] unless [WithDrift] says otherwise, by which the interval grows
// with age. Everything known is dropped
//
//   - when the local wall clock and the local monotonic clock have run apart, because
//     a suspended machine's monotonic clock stands still (a wall clock that was set
//     does the same, and costs no more than a few answers);
//   - when an answer comes from another server than the one before;
//   - when an answer contradicts, because the store's clock was set. Between that
//     moment and the next answer the interval is wrong, and a change by less than its
//     width is noticed late. A store's clock that is set breaks locks in any store;
//   - when nothing has been heard for [DefaultMaxAge], or what [WithMaxAge] says.
//
// A virtual machine that is stopped and continued so that neither of its clocks sees
// the gap can't notice before the next answer: that of the write for which the clock
// was read, for example. [Clock.Outrun] then says that the write is to be made again.
package storeclock
