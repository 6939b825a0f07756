// Package repocheck has tests only. They check what no compiler does: what each
// package may depend on, what each provider's folder holds, that a consumer gets
// what it uses and no more, and that documentation shows tested code and targets
// that exist. `make walls` runs them.
package repocheck
