#!/usr/bin/env bash
# examples/training_loop.c and custom_loop.c: a loop of one's own writes the checkpoints that `sextant train` writes, to the
# byte, on any number of threads and in strict mode; each continues the other's runs.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export XDG_CACHE_HOME=$dir/cache
data='generated:digits?n=150&seed=1' test='generated:digits?n=40&seed=2'
steps=11 # 5 an epoch: the last ends in the middle of the third

loop() { # RUN STEPS THREADS VIRTUAL_DEVICES
    "$SEXTANT_BUILD/examples/training_loop" "$dir/$1" "$2" "$data" "$test" "$3" "$4" >"$dir/out"
}
program() { # the same
    local devices=()
    [ "$4" = 0 ] || devices=(--virtual-devices "$4")
    "$SEXTANT_BIN" train examples/training_loop.c --data "$data" --model-dir "$dir/$1" --seed 7 --quiet \
        --max-steps "$2" --save-checkpoints-steps 5 --device cpu --threads "$3" "${devices[@]}"
}
same() { # RUN RUN
    local file
    for file in model.ckpt-$steps.index model.ckpt-$steps.data-00000-of-00001; do
        cmp "$dir/$1/$file" "$dir/$2/$file"
    done
}

loop own 11 1 0
grep -qE '^epoch 2: step 10, mean loss [0-9.]+$' "$dir/out"
grep -qE '^test: step 11, 40 examples, loss ' "$dir/out"
for threads in 1 2; do
    echo "threads: $threads"
    program "fit$threads" 11 $threads 0
    loop "loop$threads" 11 $threads 0
    same "fit$threads" "loop$threads"

    echo "threads: $threads, the program continues a loop, and the reverse"
    loop "loop_fit$threads" 7 $threads 0
    program "loop_fit$threads" 11 $threads 0
    program "fit_loop$threads" 7 $threads 0
    loop "fit_loop$threads" 11 $threads 0
    for run in loop_fit fit_loop; do
        "$SEXTANT_BIN" evaluate "$dir/$run$threads" --data "$test" --json --quiet >"$dir/$run.json"
    done
    cmp "$dir/loop_fit.json" "$dir/fit_loop.json"
    same "loop_fit$threads" "fit_loop$threads"
done

echo "strict mode"
program strict_fit 11 2 4
loop strict1 11 1 4
loop strict2 11 2 4
same strict1 strict2
same strict1 strict_fit
! cmp -s "$dir"/{strict1,loop1}/model.ckpt-$steps.data-00000-of-00001

custom() { # RUN STEPS VIRTUAL_DEVICES
    "$SEXTANT_BUILD/examples/custom_loop" "$dir/$1" "$2" "$data" "$test" "$3" >"$dir/out" 2>"$dir/err"
}
for devices in 1 4; do
    echo "a step function under a strategy of $devices"
    program "custom_fit$devices" 11 2 $devices
    custom "custom$devices" 11 $devices
    same "custom_fit$devices" "custom$devices"
    grep -qE "^mirrored: $devices virtual devices? on cpu$" "$dir/out"
    grep -qE '^step 10: loss [0-9.]+, accuracy of the last 5 steps [01]\.[0-9]+$' "$dir/out"
    accuracy=$(sed -n 's/^test: accuracy //p' "$dir/out")
    "$SEXTANT_BIN" evaluate "$dir/custom$devices" --data "$test" --json --quiet >"$dir/out"
    python3 -c "import json, sys; sys.exit(round(json.load(open(sys.argv[1]))[\"accuracy\"], 4) != float(sys.argv[2]))" \
        "$dir/out" "$accuracy"

    echo "it continues its run, and the program continues it"
    custom "again$devices" 7 $devices
    custom "again$devices" 11 $devices
    custom "half$devices" 7 $devices
    program "half$devices" 11 2 $devices
    same "again$devices" "half$devices"
done
[ ! -s "$dir/err" ]
