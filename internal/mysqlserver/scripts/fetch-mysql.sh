#!/bin/bash
# fetch-mysql.sh DIR unpacks a real MySQL server into DIR/root. Debian's releases carry MariaDB only, its development
# suite sid has MySQL; sid moves, so no version is named here. On Ubuntu it is the release's own (not run by us).
set -euo pipefail
. "$(dirname "$0")/fetch-common.sh"
os=$(os_id)
case $os in
  debian) fetch "$1" sid main /usr/share/keyrings/debian-archive-keyring.gpg mysql-server-core ;;
  ubuntu) fetch "$1" "$(os_codename)" "main universe" /usr/share/keyrings/ubuntu-archive-keyring.gpg mysql-server-core ;;
esac
