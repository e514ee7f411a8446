#!/usr/bin/env bash
# Runs a command with a stack of real servers of its own, whose addresses it
# finds in HOTSKU_TEST_*, and takes the stack down however the command ends.
#   stack/with.sh go test ./...
set -euo pipefail
[ $# -gt 0 ] || { echo "usage: stack/with.sh COMMAND [ARGUMENT…]" >&2; exit 64; }
hotsku=$(cd "$(dirname "$0")/.." && pwd)/bin/hotsku
[ -x "$hotsku" ] || { echo "stack/with.sh: bin/hotsku is missing: run make build" >&2; exit 2; }
name=with-$$
trap '"$hotsku" down --stack "$name" >&2 || true' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
exports=$("$hotsku" up --stack "$name" --env)
eval "$exports"
"$@"
