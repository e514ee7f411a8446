#!/usr/bin/env bash
# commits.sh BASE ROUNDS BENCH-FLAGS...: runs of the commit BASE and of this
# tree in turns, then their comparison. Drift of the machine meets both alike.
set -euo pipefail
cd "$(dirname "$0")/../.."
base=$(git rev-parse --verify --quiet "$1^{commit}") || { echo "bench-compare: there is no commit '$1': make bench-compare BASE=COMMIT" >&2; exit 64; }
rounds=$2
shift 2
[[ $rounds =~ ^[1-9][0-9]?$ ]] || { echo "bench-compare: ROUNDS=$rounds: give 1 to 99; 5 or more can show a change" >&2; exit 64; }
out=reports/out/$(date -u +%Y%m%dT%H%M%SZ)-compare-${base:0:10}
tree=$(mktemp -d)
trap 'git worktree remove --force "$tree" 2>/dev/null || true; rm -rf "$tree"' EXIT
git worktree add --quiet --detach "$tree" "$base"
make -C "$tree" --no-print-directory build
mkdir -p "$out/base" "$out/this"

side() { # NAME FOLDER ROUND
  echo "round $3 of $rounds: $1"
  code=0
  "$2/bin/hotsku" bench --slo report --seed "$3" --out "$out/$1/$3" "${@:4}" >"$out/$1-$3.log" 2>&1 || code=$?
  if [[ ! -f $out/$1/$3/run.json ]]; then
    echo "bench-compare: the run left no verdict (exit $code): see $out/$1-$3.log" >&2
    exit 2
  fi
}

for ((round = 1; round <= rounds; round++)); do
  if ((round % 2)); then
    side base "$tree" "$round" "$@"; side this . "$round" "$@"
  else
    side this . "$round" "$@"; side base "$tree" "$round" "$@"
  fi
done
bin/hotsku compare-runs "$out/base" "$out/this"
