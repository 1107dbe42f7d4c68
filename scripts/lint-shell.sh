#!/usr/bin/env bash
# Every script parses, and begins with strict mode.
set -euo pipefail
cd "$(dirname "$0")/.."
while IFS= read -r script; do
  bash -n "$script"
  grep -q '^set -euo pipefail' "$script" || { echo "$script: lacks 'set -euo pipefail'" >&2; exit 1; }
done < <(git ls-files '*.sh' .ci/run | grep -v fetch-common)
