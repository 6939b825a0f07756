// Package memory keeps locks in this process: the reference for the contract in
// package core, and the double for tests of code that takes locks.
//
// # Requirements
//
// None. A [Store] stands for the server, and every [Provider] made on it for one
// client. A service that runs in a single process can use it for real, to keep
// two schedules of one task apart.
//
// # Schema
//
// None.
//
// # Clock
//
// The store's clock is the process's, or the one given to [NewStore]. [Clock]
// is a clock for tests: it stands still until it is moved.
//
// # Guarantees and limits
//
// All of the contract within one process. Locks end with the process. Every
// operation is atomic and takes no I/O. Resolution: 1 ns.
//
// # Errors
//
// core.ErrHeld, core.ErrLost and the context's own error, no others.
//
// # Client ownership
//
// There is nothing to close.
package memory
