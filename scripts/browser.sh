#!/usr/bin/env bash
# The browser tests need Chromium. As root on Debian or Ubuntu it is installed; otherwise the command is named.
set -euo pipefail
for name in chromium chromium-browser google-chrome; do
  if command -v "$name" >/dev/null; then exit 0; fi
done
install="apt-get install -y --no-install-recommends chromium"
sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo -n"
if command -v apt-get >/dev/null && $sudo true 2>/dev/null; then
  echo "test: installing Chromium for the browser tests" >&2
  $sudo apt-get update -qq && $sudo $install -qq >/dev/null && exit 0
fi
echo "test: the browser tests need Chromium: sudo $install" >&2
exit 1
