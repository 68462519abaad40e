#!/usr/bin/env bash
# tools/test-summary counts what CTest writes, and never calls a lost test skipped.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat >"$dir/all.xml" <<'XML'
<?xml version="1.0"?>
<testsuite name="x">
<testcase name="good" status="run"/>
<testcase name="bad" status="fail"><failure message=""/></testcase>
<testcase name="lost" status="notrun"><skipped message="Unable to find executable"/></testcase>
<testcase name="far" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
<system-out>noise
SKIP: no network
</system-out></testcase>
</testsuite>
XML
grep -v 'bad\|lost' "$dir/all.xml" >"$dir/good.xml"
check() {
    local expected=$1 code=$2 got=0
    shift 2
    python3 "$SEXTANT_SRC/tools/test-summary" "$@" >"$dir/out" || got=$?
    [ "$got" = "$code" ] || { echo "exit code $got, expected $code"; exit 1; }
    [ "$(tail -n 1 "$dir/out")" = "$expected" ] || { echo "expected: $expected"; cat "$dir/out"; exit 1; }
}
check '1 passed, 2 failed, 1 skipped' 1 "$dir/all.xml"
grep -qx 'skipped  far: no network' "$dir/out"
grep -qx 'failed   lost' "$dir/out"
check '1 passed, 0 failed, 1 skipped' 0 "$dir/good.xml"
check '0 passed, 0 failed, 0 skipped' 1 "$dir/missing.xml"
