#!/usr/bin/env bash
# Plugins and devices that fail: what is said, the exit code, what is kept. Our own PJRT plugin
# (tests/pjrt_ref) fails as SX_PJRT_REF_FAULT tells it to.
. "$SEXTANT_SRC/tests/cli/lib.sh"
unset PJRT_NAMES_AND_LIBRARY_PATHS TPU_LIBRARY_PATH VIRTUAL_ENV
plugin=$SEXTANT_TEST_BIN/libpjrt_ref.so
words=(train mlp --data 'generated:digits?n=640' --batch-size 32 --seed 3)
on=(--device pjrt --pjrt-plugin "$plugin")
faulty() {
    local fault=$1
    shift
    SX_PJRT_REF_FAULT=$fault fails "$@"
}

# --- plugins
fails 1 "${words[@]}" --device pjrt
warns 'pip install xla-cpu-pjrt'
[ "$(wc -l <err)" = 1 ] || fail 'what to install is one line'
faulty version:0:0.40 1 "${words[@]}" "${on[@]}"
warns 'speaks PJRT 0.40; this build speaks 0.57 up to 0.116'
faulty abort 6 "${words[@]}" "${on[@]}"
warns 'ended the process that tried it (Aborted); it wrote: F0817 Check failed: chips > 0'
faulty exit 6 "${words[@]}" "${on[@]}"
warns '(exit code 3); it wrote: no licence'
faulty initialize 1 "${words[@]}" "${on[@]}"
warns 'the chips are asleep'
faulty client 6 "${words[@]}" "${on[@]}"
warns 'no chip in this machine'
faulty 'missing:0:LoadedExecutable_Execute' 1 "${words[@]}" "${on[@]}"
warns 'has no PJRT_LoadedExecutable_Execute'
faulty strict 1 "${words[@]}" "${on[@]}"
warns 'size: expected'
SX_PJRT_REF_FAULT=noise ok "${words[@]}" "${on[@]}" --steps 1

# --- programs
rejected="compile:0:loc(\"dense/matmul\"): error: not for me"
faulty "$rejected" 1 "${words[@]}" "${on[@]}" --no-compile-cache
warns 'rejected the program (--dump-stablehlo DIR shows it): '
warns ': matmul "dense/matmul": PJRT Client_Compile: loc("dense/matmul"): error: not for me'
faulty "$rejected" 1 "${words[@]}" "${on[@]}" --no-compile-cache --dump-stablehlo hlo
warns 'rejected the program (hlo shows it): '
grep -q 'loc("dense/matmul")' hlo/*.mlir || fail 'no program was dumped'

# --- steps
steps=("${words[@]}" "${on[@]}" --save-checkpoints-steps 4 --iterations-per-loop 1 --steps 12)
ok "${steps[@]}" --model-dir whole
faulty lost:11 6 "${steps[@]}" --model-dir run
warns 'step 11 failed (the checkpoint of step 8 is kept, and the run goes on from it): '
warns 'executing on /device:CPU:0: PJRT LoadedExecutable_Execute: device lost'
faulty oom:2 5 "${steps[@]}" --model-dir run
warns 'step 10 failed (the checkpoint of step 8'
faulty later:3:too hot 6 "${steps[@]}" --model-dir run
warns 'step 11 failed (the checkpoint of step 8'
ok "${words[@]}" "${on[@]}" --save-checkpoints-steps 4 --max-steps 12 --model-dir run
cmp whole/model.ckpt-12.data-00000-of-00001 run/model.ckpt-12.data-00000-of-00001 ||
    fail 'a run that goes on has other weights'
SX_PJRT_REF=limit=100000 fails 5 "${steps[@]}" --model-dir small
warns 'Out of memory allocating '

# --- signals
stop_when() { # FILE TEXT: waits for it, then Ctrl-C
    until grep -q "$2" "$1" 2>/dev/null || ! kill -0 $pid; do sleep 0.05; done
    kill -INT $pid
}
SX_PJRT_REF=delay=50000 "$sextant" "${words[@]}" "${on[@]}" --epochs 1000 --model-dir loop \
    --iterations-per-loop 5 --log-step-count-steps 1 >out 2>err &
pid=$!
stop_when out '^epoch'
code=0
wait $pid || code=$?
ran='train, Ctrl-C in a launch'
[ "$code" = 130 ] || fail "exit code $code"
step=$(sed -n 's/^Stopped at step \([0-9]*\);.*/\1/p' out)
[ -n "$step" ] && [ -f "loop/model.ckpt-$step.index" ] || fail 'nothing was saved'
SX_PJRT_REF_FAULT=stuck:3 "$sextant" "${words[@]}" "${on[@]}" --epochs 1000 --model-dir stuck \
    --iterations-per-loop 1 --log-step-count-steps 1 >out 2>err &
pid=$!
stop_when out 'step 2'
sleep 0.5
kill -INT $pid # a device that does not come back: the second ends it at once
code=0
wait $pid || code=$?
ran='train, Ctrl-C on a stuck device'
[ "$code" = 130 ] || fail "exit code $code"
