#!/usr/bin/env bash
# tools/deps is silent if everything is installed; without root it lists what is missing, with the reason.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# A fake dpkg-query reports everything but cmake as installed; a fake id and sudo say we are not root.
cat >"$dir/dpkg-query" <<'SH'
#!/bin/bash
shift 3
for package in "$@"; do
    [ "$package" = "$MISSING" ] || echo "$package install ok installed"
done
SH
printf '#!/bin/bash\necho 1000\n' >"$dir/id"
printf '#!/bin/bash\nexit 1\n' >"$dir/sudo"
printf '#!/bin/bash\necho "apt-get must not run"\n' >"$dir/apt-get"
chmod +x "$dir"/*
export PATH=$dir:$PATH MISSING=none
[ -z "$("$SEXTANT_SRC/tools/deps" 2>&1)" ] || { echo "not quiet"; exit 1; }
export MISSING=cmake
if "$SEXTANT_SRC/tools/deps" >"$dir/out" 2>&1; then
    echo "succeeded with a package missing"
    exit 1
fi
grep -q '^  cmake  *build system' "$dir/out"
grep -q 'apt-get install cmake$' "$dir/out"
[ "$(grep -c '^  ' "$dir/out")" = 1 ]
# What is optional is told, and is no failure.
export MISSING=libre2-dev
"$SEXTANT_SRC/tools/deps" >"$dir/out" 2>&1 || { echo "failed for an optional package"; exit 1; }
grep -q '^  libre2-dev  *optional: ' "$dir/out"
