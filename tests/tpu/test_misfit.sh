#!/usr/bin/env bash
# A batch that cannot fit is refused with the figures, exit code 5; the largest that fits is the one
# that a batch which fits is told.
set -uo pipefail
code=0
said=$("$SEXTANT_BIN" compile flowers_cnn --target tpu:v5e:2x2 --batch-size 65536 2>&1 >/dev/null) || code=$?
echo "$said"
[ "$code" = 5 ] && grep -q 'a batch of 65536 does not fit on tpu:v5e:2x2: it needs about' <<<"$said" &&
    grep -qE 'per device, which has 15\.7 GiB; the largest batch that fits is about [0-9]+' <<<"$said" || exit 1
largest=$(sed -n 's/.*largest batch that fits is about \([0-9]*\);.*/\1/p' <<<"$said")
"$SEXTANT_BIN" compile flowers_cnn --target tpu:v5e:2x2 --batch-size 1024 --find-largest-batch --json |
    grep -q "\"largest_batch\": $largest,"
