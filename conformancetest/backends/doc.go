// Package backends runs the conformance suite on real servers, with the newest
// release of each client library. It is a module of its own, which is never
// tagged, so that testcontainers-go and the newest clients reach nobody who uses
// Shedbolt: see docs/adr/0001.
//
// `make test` runs it, together with the root module's tests on the oldest
// supported clients, through cmd/verify. A plain `go test ./...` in this folder
// works as well.
//
// # Where a server comes from
//
// For each backend of [All], the first that there is:
//
//  1. SHEDBOLT_TEST_<BACKEND>_DSN names a running server. Tests create and drop
//     schemas and roles there, of names that nothing else uses.
//  2. A container of the image that SHEDBOLT_IMAGE_<BACKEND> names.
//  3. A container of the official image, if the machine has it or a registry
//     answers. The prefix that testcontainers-go knows for a mirror of Docker
//     Hub (TESTCONTAINERS_HUB_IMAGE_NAME_PREFIX) applies.
//  4. A container of a lab image, which lab/build makes of Debian's packages.
//
// SHEDBOLT_TEST_IMAGES may be "official" or "lab", to use that kind only.
// Otherwise the test is skipped, with the reason; or it fails, if
// SHEDBOLT_TEST_REQUIRE is "all" or lists the backend.
//
// Backends whose server's clock is wrong need a lab image, because official ones
// can't shift it; MySQL 8.4 needs its official image, because Debian has no package
// of it. Where only images of the other kind can be had, such a backend is not run,
// the table says so, and "all" does not include it: to name it does.
package backends
