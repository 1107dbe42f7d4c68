#!/usr/bin/env bash
# All figures of the README, one after the other. Takes about three quarters of an hour; needs about 15 GB of disk in $TMPDIR for a while.
set -euo pipefail
cd "$(dirname "$0")/.."
go build -o bin/bench ./bench
for figure in drain latency idle express sizes mail churn large locks; do
  bin/bench "$figure"
done
