#!/usr/bin/env bash
# A program compiled against older headers, whose option structs lack their last field, runs with
# today's library: in each public function that takes options.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/include"
cp -r "$SEXTANT_SRC/include/sextant" "$dir/include"
python3 "$SEXTANT_SRC/tests/tools/older_headers.py" "$dir/include/sextant" >"$dir/structs"
flags=()
[ -z "${SEXTANT_SANITIZE:-}" ] || flags+=("-fsanitize=$SEXTANT_SANITIZE")
gcc -std=c11 -D_GNU_SOURCE -DOLDER -Wall -Wextra -Werror "${flags[@]}" -I"$dir/include" "$SEXTANT_SRC/tests/tools/calls.c" \
    -o "$dir/older_caller" -L"$SEXTANT_BUILD" -Wl,-rpath,"$SEXTANT_BUILD" -lsextant
"$dir/older_caller" "$dir" >"$dir/out" 2>&1 || { echo "exit code $?"; cat "$dir/out"; exit 1; }
grep -qx done "$dir/out"
while read -r name; do
    grep -qx "$name" "$dir/out" || { echo "calls.c calls no function that takes $name" && exit 1; }
done <"$dir/structs"
[ "$(wc -l <"$dir/structs")" -ge 35 ] || { echo "only $(wc -l <"$dir/structs") structs found"; exit 1; }
