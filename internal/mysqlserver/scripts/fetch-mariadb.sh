#!/bin/bash
# fetch-mariadb.sh DIR unpacks the release's own MariaDB server into DIR/root: 10.11 on Debian 12.
# On Ubuntu it is found the same way (not run by us).
set -euo pipefail
. "$(dirname "$0")/fetch-common.sh"
os=$(os_id)
case $os in
  debian) fetch "$1" "$(os_codename)" main /usr/share/keyrings/debian-archive-keyring.gpg mariadb-server-core ;;
  ubuntu) fetch "$1" "$(os_codename)" "main universe" /usr/share/keyrings/ubuntu-archive-keyring.gpg mariadb-server-core ;;
esac
