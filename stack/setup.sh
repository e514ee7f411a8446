#!/usr/bin/env bash
# Installs the servers hotsku runs: redis-server, PostgreSQL 15, a Java runtime (Debian packages) and
# RocketMQ (Maven artifacts, see rocketmq/pom.xml). Quick when nothing is missing. Never starts the
# packages' own services and never creates the system's PostgreSQL cluster.
#
#   HOTSKU_CACHE  where RocketMQ's jars go; default /var/cache/hotsku for root,
#                 ${XDG_CACHE_HOME:-~/.cache}/hotsku otherwise
#   --check       install nothing: say what is missing and exit 2 if anything is
#
# Exit codes: 0 all is there, 2 something is missing and could not be installed, 64 bad command line.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
pom=$here/rocketmq/pom.xml
rocketmq_version=$(sed -n 's|.*<rocketmq.version>\(.*\)</rocketmq.version>.*|\1|p' "$pom")

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { say "$*"; exit 2; }

check_only=
case "$#:${1-}" in
  0:) ;;
  1:--check) check_only=1 ;;
  *) say "unknown arguments: $*; usage: setup.sh [--check]"; exit 64 ;;
esac

if [ -n "${HOTSKU_CACHE-}" ]; then cache=$HOTSKU_CACHE
elif [ "$(id -u)" = 0 ]; then cache=/var/cache/hotsku
elif [ -n "${XDG_CACHE_HOME-}" ]; then cache=$XDG_CACHE_HOME/hotsku
else cache=${HOME:?set HOME or HOTSKU_CACHE}/.cache/hotsku
fi
case $cache in /*) ;; *) say "HOTSKU_CACHE must be an absolute path, not $cache"; exit 64 ;; esac
rocketmq=$cache/rocketmq-$rocketmq_version

# at_least WANT VERSION: VERSION's major number is WANT or higher.
at_least() { local major=${2%%.*}; [ -n "$major" ] && [ "$major" -ge "$1" ] 2>/dev/null; }
have_redis() {
  command -v redis-server >/dev/null &&
    at_least 7 "$(redis-server --version | sed -n 's/.* v=\([0-9.]*\).*/\1/p')"
}
have_postgres() { [ -x /usr/lib/postgresql/15/bin/initdb ] && [ -x /usr/lib/postgresql/15/bin/postgres ]; }
have_java() {
  command -v java >/dev/null &&
    at_least 17 "$(java -version 2>&1 | sed -n 's/.* version "\([0-9.]*\).*/\1/p' | head -n 1)"
}
# The pom beside the jars is the one they were fetched for; the folder gets its name only when whole.
have_rocketmq() { cmp -s "$pom" "$rocketmq/pom.xml"; }

# missing_packages prints the Debian packages that are needed and not there, one a line.
missing_packages() {
  have_redis || echo redis-server
  have_postgres || echo postgresql-15
  have_java || echo openjdk-17-jre-headless
  have_rocketmq || command -v mvn >/dev/null || echo maven
}

# What an interrupted installation must not leave behind.
part= guarded=
clean_up() {
  [ -z "$part" ] || rm -rf "$part"
  [ -z "$guarded" ] || unguard_services
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# guard_services keeps package scripts from starting services or creating a cluster until the script
# ends. An administrator's policy-rc.d that would allow a start is set aside and put back.
policy=/usr/sbin/policy-rc.d
no_cluster=/etc/postgresql-common/createcluster.d/hotsku-setup.conf
guard_services() {
  local rc=0
  guarded=1
  if [ -e "$policy" ]; then "$policy" redis-server start >/dev/null 2>&1 || rc=$?; fi
  if [ "$rc" != 101 ]; then
    if [ -e "$policy" ]; then mv "$policy" "$policy.before-hotsku"; fi
    printf '#!/bin/sh\n# Written by hotsku setup for the time of an installation.\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  mkdir -p "${no_cluster%/*}"
  echo "create_main_cluster = false" >"$no_cluster"
}
unguard_services() {
  rm -f "$no_cluster"
  if grep -qs 'hotsku setup' "$policy"; then rm -f "$policy"; fi
  if [ -e "$policy.before-hotsku" ]; then mv "$policy.before-hotsku" "$policy"; fi
}

# may_install PACKAGE...: fails, with what to do, where the packages cannot be installed.
may_install() {
  local hint="install the packages $* (Debian's names for redis 7, PostgreSQL 15, Java 17, Maven) and run setup again"
  [ -z "$check_only" ] || fail "missing; $hint"
  command -v apt-get >/dev/null || fail "this machine has no apt-get; $hint"
  [ "$(id -u)" = 0 ] || fail "not root, so nothing was installed; $hint: sudo apt-get install --no-install-recommends $*"
}

install_packages() {
  local packages=("$@") log
  guard_services
  log=$(mktemp)
  export DEBIAN_FRONTEND=noninteractive
  say "installing ${packages[*]}"
  local install=(apt-get install -y -q --no-install-recommends -o Dpkg::Options::=--force-confold -o DPkg::Lock::Timeout=120 "${packages[@]}")
  if ! "${install[@]}" >"$log" 2>&1 </dev/null; then
    # A fresh machine has no package lists, an old one stale ones.
    say "updating the package lists"
    if ! { apt-get update -q -o DPkg::Lock::Timeout=120 && "${install[@]}"; } >"$log" 2>&1 </dev/null; then
      tail -n 5 "$log" >&2
      fail "apt-get could not install ${packages[*]} (its whole output: $log)"
    fi
  fi
  rm -f "$log"
  # Installed for hotsku, which starts its own: they need not run at the next boot either.
  if [ -d /run/systemd/system ]; then
    for p in "${packages[@]}"; do
      case $p in
        redis-server) systemctl disable -q redis-server || true ;;
        postgresql-15) systemctl disable -q postgresql || true ;;
      esac
    done
  fi
}

install_rocketmq() {
  say "fetching RocketMQ $rocketmq_version into $cache"
  local log
  rm -rf "$cache"/.rocketmq.* # of a setup that was killed; none other runs
  part=$(mktemp -d "$cache/.rocketmq.XXXXXX") || fail "cannot write into $cache; set HOTSKU_CACHE to a folder you may write"
  log=$(mktemp)
  if ! mvn -B -f "$pom" dependency:copy-dependencies -DoutputDirectory="$part/lib" >"$log" 2>&1 </dev/null; then
    grep -m 5 ERROR "$log" >&2 || tail -n 5 "$log" >&2
    fail "Maven could not fetch RocketMQ (its whole output: $log); check that Maven reaches its repository"
  fi
  rm -f "$log"
  cp "$pom" "$part/pom.xml"
  chmod -R u=rwX,go=rX "$part"
  rm -rf "$rocketmq" # the jars of another pom
  mv -T "$part" "$rocketmq" || fail "cannot rename the fetched jars to $rocketmq"
}

mapfile -t packages < <(missing_packages)
[ "${#packages[@]}" = 0 ] || may_install "${packages[@]}"
if [ "${#packages[@]}" = 0 ] && have_rocketmq; then exit 0; fi
[ -z "$check_only" ] || fail "missing RocketMQ $rocketmq_version in $rocketmq; run setup without --check"

# Other users' servers read the jars, whatever the caller's umask. One setup at a time; the next finds the
# work done.
umask 022
mkdir -p "$cache" 2>/dev/null && exec 9>"$cache/.setup-lock" ||
  fail "cannot write into $cache; set HOTSKU_CACHE to a folder you may write"
flock 9

mapfile -t packages < <(missing_packages)
if [ "${#packages[@]}" -gt 0 ]; then
  install_packages "${packages[@]}"
  mapfile -t packages < <(missing_packages)
  [ "${#packages[@]}" = 0 ] || fail "still missing after the installation: ${packages[*]}"
fi
have_rocketmq || install_rocketmq
