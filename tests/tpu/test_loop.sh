#!/usr/bin/env bash
# The step loop: its arguments are one step's and the further staged batches, its layers the step's.
set -uo pipefail
compile() {
    "$SEXTANT_BIN" compile mnist_cnn --target tpu:v5e:2x2 --batch-size 1024 --json \
        --iterations-per-loop "$1"
}
one=$(mktemp) four=$(mktemp)
trap 'rm -f "$one" "$four"' EXIT
compile 1 >"$one" && compile 4 >"$four" || exit 1
python3 - "$one" "$four" <<'P'
import json, sys
one, four = (json.load(open(path)) for path in sys.argv[1:])
more = four['memory']['argument_bytes'] - one['memory']['argument_bytes']
staged = 3 * 256 * (28 * 28 + 1) * 4
print(f"three further batches are {staged:,} bytes; the loop's arguments take {more:,} more")
assert staged <= more <= 1.2 * staged, more
assert 0.95 < four['flops'] / one['flops'] < 1.05, (one['flops'], four['flops'])
assert {l['name'] for l in one['layers']} == {l['name'] for l in four['layers']}
P
