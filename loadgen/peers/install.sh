#!/usr/bin/env bash
# Installs the load generators that loadgen is compared with, as far as this machine lets it: wrk and hey
# as Debian packages, vegeta and k6 as Go modules, oha as a crate. What cannot be installed is named and
# left out of the comparison. Quick when nothing is missing. Not part of make setup.
#
#   HOTSKU_CACHE  where vegeta, k6 and oha go, in peers/bin; default as in stack/setup.sh
#
# Prints the folder of the binaries that are not on the path. Exit code 0 however many there are.
set -uo pipefail

vegeta_version=v12.13.0 k6_version=v1.8.1 oha_version=1.16.0

say() { printf 'peers: %s\n' "$*" >&2; }

if [ -n "${HOTSKU_CACHE-}" ]; then cache=$HOTSKU_CACHE
elif [ "$(id -u)" = 0 ]; then cache=/var/cache/hotsku
else cache=${XDG_CACHE_HOME:-${HOME:?set HOME or HOTSKU_CACHE}/.cache}/hotsku
fi
dir=$cache/peers
mkdir -p "$dir/bin" || { say "cannot write into $cache; set HOTSKU_CACHE"; exit 1; }
exec 9>"$dir/.lock" && flock 9
log=$dir/install.log

# try NAME COMMAND...: runs it quietly unless NAME is there.
try() {
  local name=$1
  shift
  if command -v "$name" >/dev/null || [ -x "$dir/bin/$name" ]; then return; fi
  say "installing $name"
  "$@" >"$log" 2>&1 </dev/null || say "$name could not be installed and is left out: $(tail -n 1 "$log")"
}

debian() {
  [ "$(id -u)" = 0 ] || { echo "not root: apt-get install $1" && return 1; }
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends -o DPkg::Lock::Timeout=120 "$1" ||
    { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$1"; }
}
module() { GOBIN=$dir/bin GOFLAGS=-mod=mod go install "$1"; }
crate() { command -v cargo >/dev/null || { echo "no cargo" && return 1; }; cargo install --locked --root "$dir" "$@"; }

try wrk debian wrk
try hey debian hey
try vegeta module "github.com/tsenart/vegeta/v12@$vegeta_version"
try k6 module "go.k6.io/k6@$k6_version"
try oha crate oha --version "$oha_version"
echo "$dir/bin"
