#!/usr/bin/env bash
# The example programs run, and do what they say; the model file compiles against the public headers.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bin=$SEXTANT_BUILD/examples
train='generated:digits?n=320&seed=1' eval='generated:digits?n=100&seed=2'

expect() {
    grep -qE "$1" "$dir/out" || {
        echo "no line matches: $1"
        cat "$dir/out"
        exit 1
    }
}

echo "estimator_mnist"
"$bin/estimator_mnist" "$dir/run" 20 "$train" "$eval" >"$dir/out"
expect '^step 20  loss [0-9.]+  accuracy [0-9.]+ '
expect '^finished at step 20$'
expect '^test: step 20, 100 examples, loss '
expect '^example 4: class [0-9], probability 0\.'
expect "^exported to $dir/run/export/1$"

echo "estimator_mnist, again: the same run goes on"
"$bin/estimator_mnist" "$dir/run" 20 "$train" "$eval" >"$dir/out"
expect '^already finished at step 20$'
"$bin/estimator_mnist" "$dir/run" 25 "$train" "$eval" >"$dir/out"
expect '^test: step 25, 100 examples'

echo "infer"
"$bin/infer" "$dir/run/export/1" fuzz/corpus/png/gray.png fuzz/corpus/png/gray.png >"$dir/out"
expect '^fuzz/corpus/png/gray.png: class [0-9] [0-9], probability 0\.'
if "$bin/infer" "$dir/run/export/1" "$dir/nothing.png" 2>"$dir/out"; then
    echo "infer accepts a missing image"
    exit 1
fi
expect 'cannot read .*/nothing.png'

echo "keras_style_mnist"
"$bin/keras_style_mnist" "$dir/saved" 2 "$train" "$eval" >"$dir/out"
expect '^epoch 2  loss [0-9.]+  accuracy [0-9.]+  val_loss [0-9.]+  val_accuracy '
expect '^test: 100 examples, loss '
test -e "$dir/saved/sextant.json"

echo "text_attention"
"$bin/text_attention" "$dir/text" 40 >"$dir/out"
expect '^step 40  loss 0\.[0-9]+  accuracy (0\.9|1\.0)'
expect "^exported to $dir/text/export/1$"
"$bin/text_attention" "$dir/text" 60 >"$dir/out"
expect '^going on from step 40$'
"$bin/text_attention" "$dir/whole" 60 >/dev/null
cmp "$dir/text/export/2/variables/variables.data-00000-of-00001" \
    "$dir/whole/export/1/variables/variables.data-00000-of-00001"
"$SEXTANT_BIN" run "$dir/text/export" --input_exprs 'text=["what a nice day", "an awful poor meal"]' >"$dir/out"
expect '^\[1 0\]$'

echo "flowers.c"
for compiler in gcc clang-14; do
    if command -v $compiler >/dev/null; then
        $compiler -std=c11 -Wall -Wextra -Werror -Iinclude -fPIC -shared examples/flowers.c -o "$dir/flowers.so"
        nm -D "$dir/flowers.so" | grep -q ' sextant_model_v1$'
    fi
done
