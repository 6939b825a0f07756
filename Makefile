# Targets for people and for CI; `make` alone lists them. A line with two hash
# signs after a target is its description.

GO ?= go
GOLANGCI_LINT_VERSION := v2.15.0
GOLANGCI_LINT := $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)

# Both modules: the released one, and the one that tests it on real servers.
MODULES := . conformancetest/backends
each_module = @set -e; for dir in $(MODULES); do echo "($$dir) $(1)"; (cd $$dir && $(1)); done

# For `make test`: BACKENDS=postgres17,sqlite runs on these only; RACE=1 turns the
# race detector on, SHORT=1 leaves out tests that take long, COUNT=5 repeats, JOBS=1
# runs on one backend at a time and shows output as it comes.
BACKENDS ?=
RACE ?=
SHORT ?=
COUNT ?= 1
JOBS ?= 4
VERIFY_FLAGS = -backends '$(BACKENDS)' -count $(COUNT) -jobs $(JOBS) $(if $(RACE),-race) $(if $(SHORT),-short)

export GOWORK := off

.DEFAULT_GOAL := help
.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the command into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/shedbolt ./cmd/shedbolt

.PHONY: test
test: bin/verify ## run all tests on every backend that this machine can have
	@exec bin/verify $(VERIFY_FLAGS)

.PHONY: test-short
test-short: ## run the tests that need no server and take little time
	$(GO) test -short ./...

.PHONY: race
race: ## like test, with the race detector
	@$(MAKE) --no-print-directory test RACE=1

.PHONY: bench
bench: ## run the benchmarks; set SHEDBOLT_TEST_POSTGRES_DSN (or MYSQL, REDIS) for those of servers
	$(GO) test -run '^$$' -bench . -benchmem ./...

.PHONY: vet
vet: ## run go vet on both modules
	$(call each_module,$(GO) vet ./...)

.PHONY: lint
lint: ## run golangci-lint on both modules
	$(call each_module,$(GOLANGCI_LINT) run ./...)

.PHONY: fmt
fmt: ## format all code
	$(call each_module,$(GOLANGCI_LINT) fmt ./...)

.PHONY: tidy-check
tidy-check: ## fail if a go.mod or go.sum is not tidy
	$(call each_module,$(GO) mod tidy -diff)

.PHONY: walls
walls: ## check what may depend on what, and the rules for the repository's files
	$(GO) test -count=1 ./internal/repocheck

.PHONY: cross
cross: ## check that the code builds for other systems, and the command without cgo
	GOOS=windows $(GO) vet ./...
	GOOS=darwin $(GO) vet ./...
	CGO_ENABLED=0 GOARCH=386 $(GO) build -o /dev/null ./cmd/shedbolt
	CGO_ENABLED=0 GOARCH=386 $(GO) vet ./core/... ./conformancetest/... ./providers/...

.PHONY: images
images: bin/verify ## make the servers' images available where no registry answers
	@exec bin/verify -images -backends '$(BACKENDS)'

.PHONY: clean
clean: ## remove what the other targets have built
	rm -rf bin

# Run as a program of its own rather than by `go run`, so that a signal reaches it
# and it can stop its servers.
.PHONY: bin/verify
bin/verify:
	@cd conformancetest/backends && $(GO) build -o ../../bin/verify ./cmd/verify
