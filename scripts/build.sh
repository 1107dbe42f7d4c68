#!/usr/bin/env bash
# Builds the three programs into bin/. The first build compiles the Temporal server for the development stack, which takes
# minutes; so it shows how far it is. (No -trimpath: tests and linters then share what was compiled.)
set -euo pipefail
cd "$(dirname "$0")/.."
command -v go >/dev/null || { echo "Go is needed (https://go.dev/dl), version $(sed -n 's/^go //p' go.mod) or later" >&2; exit 1; }
mkdir -p bin
began=$SECONDS
progress() { awk '!/^#/ && !/:/ { n++; if (n % 100 == 0) { printf "build: %d packages compiled (about 2,000 the first time)\n", n; fflush() } next } { print }' >&2; }
echo "build: oncepost, oncepost-ses, oncepost-dev (the first time it also downloads and compiles the Temporal server: some minutes)" >&2
go build -v -o bin/ ./cmd/... 2> >(progress)
echo "build: done in $((SECONDS - began)) s" >&2
