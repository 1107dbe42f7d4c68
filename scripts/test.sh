#!/usr/bin/env bash
# All tests. Packages that link the Temporal server run without the race detector (it would double six minutes of compiling
# and slow the server under test); all others run with it. Tests that run in parallel do little but wait.
# ONCEPOST_TEST_DB=mysql or mariadb runs one server only.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/browser.sh
declare -a race=() plain=()
while read -r pkg links; do
  if [ "$links" = yes ]; then plain+=("$pkg"); else race+=("$pkg"); fi
done < <(go list -test -f '{{if .ForTest}}{{.ForTest}}{{else}}{{.ImportPath}}{{end}}{{range .Deps}} {{.}}{{end}}' ./... |
  awk '{ sub(/\.test$/, "", $1); links = / go\.temporal\.io\/server\//; if (!($1 in seen)) order[++n] = $1; seen[$1] = (seen[$1] == "yes" || links) ? "yes" : "no" }
       END { for (i = 1; i <= n; i++) print order[i], seen[order[i]] }')
echo "test: ${#race[@]} packages with -race, then ${#plain[@]} that link the Temporal server" >&2
# The longest come first: what comes last has a core for itself, and leaves one idle.
longest() {
  local pkg
  for pkg in starter monitor internal/migrate; do printf '%s\n' "$@" | grep -x "$module/$pkg" || true; done
  for pkg in "$@"; do case ${pkg#"$module/"} in starter | monitor | internal/migrate) ;; *) echo "$pkg" ;; esac; done
}
module=$(go list -m)
mapfile -t race < <(longest "${race[@]}")
status=0
go test -race -p 2 -parallel 8 -timeout 20m "$@" "${race[@]}" || status=$?
go test -p 1 -parallel 6 -timeout 20m "$@" "${plain[@]}" || status=$?
exit "$status"
