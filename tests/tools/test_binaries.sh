#!/usr/bin/env bash
# What was built is hardened, and exports the public API and nothing else.
set -euo pipefail
if [ -n "$SEXTANT_SANITIZE" ]; then
    echo "SKIP: a sanitizer build is not hardened"
    exit 77
fi
exec "$SEXTANT_SRC/tools/check-binaries" "$SEXTANT_BUILD"
