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

    $compiler -std=c++17 "${warnings[@]}" "${include[@]}" "$SEXTANT_SRC/examples/custom_loop.cpp" -o "$dir/custom_loop" "${link[@]}"
    rm -rf "$dir/loop"
    "$dir/custom_loop" "$dir/loop" 7 'generated:digits?n=150&seed=1' 2 >"$dir/out"
    grep -qE '^step 5: accuracy [01]\.[0-9]+$' "$dir/out" || fail 'no accuracy' "$dir/out"
    "$SEXTANT_BUILD/examples/custom_loop" "$dir/loop_of_c" 7 'generated:digits?n=150&seed=1' \
        'generated:digits?n=40&seed=2' 2 >"$dir/out"
    cmp "$dir"/loop{,_of_c}/model.ckpt-7.data-00000-of-00001 || fail 'other bits than from C'
    rm -r "$dir/loop_of_c"

    # A model with named features.
    cat >"$dir/named.cpp" <<'CPP'
#include <sextant/sextant.hpp>
#include <cstdio>
static sx_spec build(sx_builder *b, const sx_batch *in, const sx_params *)
{
    sx_value city = sx_one_hot(b, sx_feature(b, in, "city"), 3);
    sx_value x = sx_concat(b, 1, sx_reshape(b, sx_feature(b, in, "age"), SX_BATCH, 1), city);
    sx::device_scope on(b, "/cpu:0");
    return sx_classifier_spec(b, sx_dense(b, x, 2), sx_label(b, in, "y"));
}
static void prepare(sx_builder *b, const sx_batch *in, const sx_params *)
{
    sx_output(b, "age", sx_mul(b, sx_feature(b, in, "age"), sx_constant_f32(b, 0.1)));
    sx_output(b, "city", sx_feature(b, in, "city"));
}
static const sx_model_def named =
    SX_MODEL_DEF(sx::name = "named", sx::build = build, sx::preprocess = prepare,
                 sx::inputs = {sx_feature_of("age", SX_F32), sx_feature_of("city", SX_I32, sx::optional = true)},
                 sx::labels = {sx_feature_of("y", SX_I32)}, sx::example_weight = "w");
static int run()
{
    float age[4] = {1, 2, 3, 4}, w[4] = {1, 0, 2, 1};
    int32_t city[4] = {0, 1, 2, 0}, y[4] = {0, 1, 1, 0};
    const char *names[] = {"y", "w", "city", "age"};
    const sx_tensor columns[] = {{sx_type_of(SX_I32, 4), y}, {sx_type_of(SX_F32, 4), w},
                                 {sx_type_of(SX_I32, 4), city}, {sx_type_of(SX_F32, 4), age}};
    sx::unique<sx_dataset> data;
    sx::unique<sx_model> model;
    sx_eval_result result;
    sx::check(sx_dataset_from_tensors(4, names, columns, nullptr, nullptr, data.out()));
    sx::check(sx_model_create(&named, nullptr, model.out()));
    sx::check(sx_model_compile(model.get(), sx::device = "cpu"));
    sx::check(sx_model_fit(model.get(), data.get(), sx::epochs = 3, sx::batch_size = 2));
    sx::check(sx_model_evaluate(model.get(), data.get(), &result));
    std::printf("named: %lld examples, loss %d\n", static_cast<long long>(result.examples), result.loss > 0);
    return 0;
}
int main()
{
    try {
        return run();
    } catch (const std::exception &e) {
        std::fprintf(stderr, "%s\n", e.what());
        return 1;
    }
}
CPP
    $compiler -std=c++17 "${warnings[@]}" "${include[@]}" "$dir/named.cpp" -o "$dir/named" "${link[@]}"
    "$dir/named" >"$dir/out" 2>&1 || fail 'the model with named features fails' "$dir/out"
    grep -qx 'named: 4 examples, loss 1' "$dir/out" || fail 'no evaluation' "$dir/out"

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
