#!/usr/bin/env bash
# Types as Cloud users write them, small and large: devices, hosts and their part of the input. The two
# cores of a v4 or v5p chip are one device.
set -uo pipefail
failed=0
while read -r target devices hosts kind; do
    if ! said=$("$SEXTANT_BIN" compile linear --target "$target" --batch-size 1024 2>&1); then
        echo "$target: $said"
        # A generation that this libtpu no longer knows: one line that says so and what to use.
        grep -q 'cannot compile for .* a current type' <<<"$said" || failed=1
        continue
    fi
    sed -n '1p' <<<"$said"
    grep -qE ": $devices × $kind on $hosts hosts?\$" <<<"$said" || failed=1
    if [ "$target" = v5litepod-16 ]; then
        grep -q '  host 3   4 devices, examples 768 … 1023 (256)' <<<"$said" || failed=1
    fi
done <<'T'
v5litepod-16 16 4 TPU v5 lite
v6e-8 8 1 TPU v6 lite
v4-8 4 1 TPU v4
v4-16 8 2 TPU v4
v5p-8 4 1 TPU v5
v5p-16 8 2 TPU v5
tpu7x-8 8 1 TPU7x
v3-8 8 1 TPU v3
v2-8 8 1 TPU v2
T
exit $failed
