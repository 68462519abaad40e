#!/usr/bin/env bash
# C++17 has every function with options: with g++ and clang++, without warnings, the calls of
# tests/tools/calls.c build the same graphs and train to the same numbers as from C. The C++ example
# runs, and its mistakes are errors of the compiler.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
sanitize=()
[ -z "${SEXTANT_SANITIZE:-}" ] || sanitize+=("-fsanitize=$SEXTANT_SANITIZE")
include=(-I"$SEXTANT_SRC/include")
link=("${sanitize[@]}" -L"$SEXTANT_BUILD" -Wl,-rpath,"$SEXTANT_BUILD" -lsextant)
warnings=(-Wall -Wextra -Wpedantic -Werror)
calls=$SEXTANT_SRC/tests/tools/calls.c
fail() {
    echo "$1"
    [ -z "${2:-}" ] || cat "$2"
    exit 1
}

gcc -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror "${include[@]}" "$calls" -o "$dir/c" "${link[@]}"
mkdir "$dir/of-c"
"$dir/c" "$dir/of-c" >"$dir/c.out" 2>&1 || fail 'the C program fails' "$dir/c.out"
grep -q 'calls.c:[0-9]*: dense "dense": input float32' "$dir/c.out" || fail 'no line of the call' "$dir/c.out"
compilers=(g++)
[ -n "${SEXTANT_SANITIZE:-}" ] || ! command -v clang++-14 >/dev/null || compilers+=(clang++-14)
for compiler in "${compilers[@]}"; do
    rm -rf "$dir/of-cpp" && mkdir "$dir/of-cpp"
    $compiler -x c++ -std=c++17 "${warnings[@]}" "${include[@]}" "$calls" -x none -o "$dir/cpp" "${link[@]}"
    "$dir/cpp" "$dir/of-cpp" >"$dir/cpp.out" 2>&1 || fail "the program of $compiler fails" "$dir/cpp.out"
    diff "$dir/c.out" "$dir/cpp.out" || fail "$compiler: other output than from C"

    $compiler -std=c++17 "${warnings[@]}" "${include[@]}" "$SEXTANT_SRC/examples/digits.cpp" -o "$dir/digits" "${link[@]}"
    "$dir/digits" 2 'generated:digits?n=320&seed=1' 'generated:digits?n=100&seed=2' >"$dir/out"
    grep -qE '^epoch 2  loss [0-9.]+  accuracy [0-9.]+  val_loss ' "$dir/out" || fail 'no history' "$dir/out"
    grep -qE '^example 4: class [0-9], probability 0\.' "$dir/out" || fail 'no prediction' "$dir/out"
    ! "$dir/digits" 1 "$dir/nothing" 2>"$dir/out" || fail 'data that do not exist are accepted'
    grep -q 'digits: .*nothing' "$dir/out" || fail 'no message' "$dir/out"

    # What is wrong in C is wrong in C++.
    refuses() { # MESSAGE STATEMENT
        cat >"$dir/bad.cpp" <<CPP
#include <sextant/sextant.hpp>
sx_value f(sx_builder *b, sx_value x);
sx_value f(sx_builder *b, sx_value x) { $2 }
CPP
        ! $compiler -std=c++17 "${include[@]}" -fsyntax-only "$dir/bad.cpp" 2>"$dir/out" || fail "$compiler accepts: $2"
        grep -qE "$1" "$dir/out" || fail "$compiler, of: $2" "$dir/out"
    }
    refuses "no member named .*padding" 'return sx_dense(b, x, 3, sx::padding = SX_SAME);'
    refuses 'more values than the option has' 'return sx_nn_conv2d(b, x, x, sx::strides = {1, 2, 3});'
    refuses 'come before options by name' 'return sx_conv2d(b, x, sx::padding = SX_SAME, 32);'
    refuses '' 'return sx_conv2d(b, x, 32, 3, sx::padding = "same");'
    sed -i 's/sextant.hpp/sextant.h/' "$dir/bad.cpp"
    ! $compiler -std=c++17 "${include[@]}" -fsyntax-only "$dir/bad.cpp" 2>"$dir/out" || fail "$compiler takes the C macros"
    grep -q include_sextant_sextant_hpp "$dir/out" || fail 'the header for C++ is not named' "$dir/out"
done
