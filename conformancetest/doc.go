// Package conformancetest checks a provider against the contract of package
// core: exclusion, expiry, minimum hold, ownership, names, store time, contexts
// and faults, fencing, inspection and the shared record format. It imports only
// the standard library and core, and knows no store: a provider of any module
// can use it.
//
//	func TestConformance(t *testing.T) {
//		conformancetest.Run(t, conformancetest.Harness{
//			Name: "Examplestore 1.2",
//			Open: func(tb testing.TB) core.Provider { … },
//			Peek: func(ctx context.Context, name string) (conformancetest.Peeked, error) { … },
//		})
//	}
//
// Each case is a subtest with a stable name, TestConformance/<area>/<case>, and
// cites the rules that it checks. [Cases] lists them all.
//
// # How it measures
//
// Every case has at least two independent clients, made by Harness.Open, and
// reads the store through Harness.Peek, which does not use the provider. Times
// are compared on the store's own clock, as Peek reads it: a lock must be
// refused before lock_until by that clock, and must not be refused at an attempt
// that began, by that clock, later than lock_until plus the resolution. A slow
// machine makes cases slower, not wrong.
//
// # What it can't prove
//
// That a rare race does not exist: run it often, with -race and -count. That a
// store keeps what it has acknowledged when it crashes or fails over. That the
// clock of a store is right.
package conformancetest
