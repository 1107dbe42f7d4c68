#!/bin/bash
# fetch-common.sh is sourced by fetch-mysql.sh and fetch-mariadb.sh. It downloads a package and the libraries that it
# needs with apt and unpacks them below a folder: nothing is installed, nothing outside the folder changes, and any
# user can do it. apt gets lists, state and cache of its own, and an *empty* dpkg status, so that every library down
# to libc comes along and the tree runs by its own loader whatever this machine has.

say() { echo "oncepost: $*" >&2; }

# os_id prints debian or ubuntu, or fails with the reason.
os_id() {
  local id=none
  [ ! -r /etc/os-release ] || id=$(. /etc/os-release && echo "${ID:-} ${ID_LIKE:-}")
  command -v apt-get >/dev/null || { say "no apt-get here: only Debian and Ubuntu can be fetched from"; return 1; }
  case " $id " in
    *" ubuntu "*) echo ubuntu ;;
    *" debian "*) echo debian ;;
    *) say "os-release says '$id': only Debian and Ubuntu can be fetched from"; return 1 ;;
  esac
}

# os_codename prints the release's name, such as bookworm.
os_codename() { . /etc/os-release && echo "${UBUNTU_CODENAME:-${VERSION_CODENAME:?}}"; }

# archive_uri prints the mirror that this machine itself takes its release from, for both forms of source lists, so
# that a local mirror or a proxy stays in use. $1 is the release's name.
archive_uri() {
  local f uri
  for f in /etc/apt/sources.list.d/*.sources; do
    [ -r "$f" ] || continue
    uri=$(awk -v suite="$1" 'BEGIN { RS = ""; FS = "\n" } {
      uri = ""; hit = 0
      for (i = 1; i <= NF; i++) { n = split($i, w, /[ \t]+/)
        if (w[1] == "URIs:") uri = w[2]
        if (w[1] == "Suites:") for (j = 2; j <= n; j++) if (w[j] == suite) hit = 1 }
      if (hit && uri != "") { print uri; exit } }' "$f")
    [ -z "$uri" ] || { echo "$uri"; return; }
  done
  uri=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
    sed -nE "s/^deb +(\[[^]]*\] +)?([^ ]+) +$1 .*/\2/p" | head -n 1)
  [ -n "$uri" ] || { say "apt's sources name no archive for $1"; return 1; }
  echo "$uri"
}

# make_apt_conf writes apt's private configuration below $1, for suite $2, components $3 and keyring $4. It is read
# after /etc/apt (a proxy set there stays); the hooks are cleared, since they would clean or notify the machine's apt.
make_apt_conf() {
  local dir=$1 codename
  codename=$(os_codename)
  mkdir -p "$dir/lists/partial" "$dir/archives/partial" "$dir/state"
  : >"$dir/state/status"
  local uri
  uri=$(archive_uri "$codename")
  echo "deb [signed-by=$4] $uri $2 $3" >"$dir/sources.list"
  cat >"$dir/apt.conf" <<CONF
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::Etc::SourceList "$dir/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State "$dir/state";
Dir::State::Lists "$dir/lists";
Dir::State::status "$dir/state/status";
Dir::Cache "$dir";
Dir::Cache::archives "$dir/archives";
APT::Install-Recommends "0";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
CONF
}

# unpack downloads package $2 and its libraries by the configuration in $1 and unpacks them into $3. Of what it
# depends on only libraries are taken: perl, debconf and the like serve the package's own scripts, which do not run.
unpack() {
  local dir=$1 pkg=$2 root=$3 names deb
  names=$(apt-get -c "$dir/apt.conf" -qq -s install "$pkg" | awk '$1 == "Inst" { print $2 }' |
    grep -E '^(lib.*|zlib1g|mysql-.*|mariadb-.*)$' | grep -vE '^libperl|-perl$|^libdebconf')
  say "downloading $pkg and its libraries ($(wc -w <<<"$names") packages)"
  # shellcheck disable=SC2086
  (cd "$dir/archives" && apt-get -c "$dir/apt.conf" -qq download $names >&2)
  mkdir -p "$root"
  for deb in "$dir"/archives/*.deb; do dpkg-deb -x "$deb" "$root"; done
}

# fetch fills $1 from suite $2, components $3, keyring $4 with package $5. It is atomic (a folder beside it, then a
# rename), and the lock makes a second process wait and then find it there.
fetch() {
  local dir=$1 tmp
  mkdir -p "$(dirname "$dir")"
  exec 9>"$dir.lock"
  flock -n 9 || { say "another process is fetching $dir: waiting for it"; flock 9; }
  [ ! -e "$dir/ok" ] || return 0
  rm -rf "$dir".new.* # left by a fetch that was killed
  tmp=$(mktemp -d "$dir.new.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$tmp'" EXIT
  chmod 755 "$tmp"
  make_apt_conf "$tmp/apt" "$2" "$3" "$4"
  say "reading the package list of $2"
  apt-get -c "$tmp/apt/apt.conf" -qq update >&2
  unpack "$tmp/apt" "$(package_name "$tmp/apt" "$5")" "$tmp/root"
  rm -rf "$tmp/apt"
  : >"$tmp/ok"
  rm -rf "$dir"
  mv "$tmp" "$dir"
  say "$dir is ready ($(du -sh "$dir" | cut -f1))"
}

# package_name prints package $2, or where the archive has it under a versioned name only (Ubuntu's
# mysql-server-core-8.0) the newest of those.
package_name() {
  local all
  all=$(apt-cache -c "$1/apt.conf" pkgnames "$2" | grep -E "^$2(-[0-9.]+)?$" | sort -V) || true
  [ -n "$all" ] || { say "the archive has no $2"; return 1; }
  if grep -qx "$2" <<<"$all"; then echo "$2"; else tail -n 1 <<<"$all"; fi
}
