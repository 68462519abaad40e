#!/usr/bin/env bash
# Types as Cloud users write them, small and large; hosts and their part of the input.
set -uo pipefail
failed=0
for target in v5litepod-16 v6e-8 v4-8 v5p-8 v3-8 v2-8; do
    if said=$("$SEXTANT_BIN" compile linear --target "$target" --batch-size 1024 --no-largest 2>&1); then
        sed -n '1p' <<<"$said"
    else
        echo "$target: $said"
        # A generation that this libtpu no longer knows: one line that says so and what to use.
        grep -q 'this libtpu does not compile for .* a current type' <<<"$said" || failed=1
    fi
    if [ "$target" = v5litepod-16 ]; then
        grep -q '  host 3   4 devices, examples 768 … 1023 (256)' <<<"$said" || failed=1
    fi
done
exit $failed
