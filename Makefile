# make demo   the main job on this machine: a sign-up transaction becomes a mail. It stays up; ONCE=1 ends with the result.
# make test   all tests, on MySQL and on MariaDB.
# make lint   the linters.
# make bench  the figures of the README, on this machine.
# Everything that is needed is fetched into .cache and Go's own caches by itself.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
export ONCEPOST_CACHE ?= $(CURDIR)/.cache
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
WORKFLOWCHECK := go.temporal.io/sdk/contrib/tools/workflowcheck@v0.6.0

.PHONY: build demo test lint bench clean

build:
	@scripts/build.sh

demo: build
	@bin/oncepost-dev demo $(if $(ONCE),--once)

test: build
	@scripts/test.sh

lint:
	go vet ./...
	go run $(GOLANGCI) run ./...
	go run $(WORKFLOWCHECK) -config .workflowcheck.yml ./workflows/... ./examples/...
	scripts/lint-shell.sh

bench: build
	@scripts/bench.sh

clean:
	rm -rf bin
