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
fails 6 "${words[@]}" --device pjrt
warns 'pip install libtpu (tpu) or '
warns 'or xla-cpu-pjrt (cpu) in the active virtual environment'
[ "$(wc -l <err)" = 1 ] || fail 'what to install is one line'
faulty version:0:0.40 1 "${words[@]}" "${on[@]}"
warns 'has PJRT version 0.40; supported: 0.57 to 0.116'
faulty abort 6 "${words[@]}" "${on[@]}"
warns 'crashed (Aborted); output: F0817 Check failed: chips > 0'
faulty exit 6 "${words[@]}" "${on[@]}"
warns 'exited with code 3; output: no licence'
faulty initialize 1 "${words[@]}" "${on[@]}"
warns 'the chips are asleep'
faulty client 6 "${words[@]}" "${on[@]}"
warns 'no chip in this machine'
faulty 'missing:0:LoadedExecutable_Execute' 1 "${words[@]}" "${on[@]}"
warns 'has no PJRT_LoadedExecutable_Execute'
SX_PJRT_REF_FAULT=noise ok "${words[@]}" "${on[@]}" --steps 1

# --- programs
rejected="compile:0:loc(\"dense/matmul\"): error: not for me"
faulty "$rejected" 1 "${words[@]}" "${on[@]}" --no-compile-cache
warns 'rejected the program (use --dump-stablehlo DIR to see it): '
warns ': matmul "dense/matmul": PJRT Client_Compile: loc("dense/matmul"): error: not for me'
faulty "$rejected" 1 "${words[@]}" "${on[@]}" --no-compile-cache --dump-stablehlo hlo
warns 'rejected the program (see hlo): '
grep -q 'loc("dense/matmul")' hlo/*.mlir || fail 'no program was dumped'

# --- steps
steps=("${words[@]}" "${on[@]}" --save-checkpoints-steps 4 --iterations-per-loop 1 --max-steps 12)
ok "${steps[@]}" --model-dir whole
faulty lost:11 6 "${steps[@]}" --model-dir run
warns 'step 11 failed (the checkpoint of step 8 is kept; the run can be resumed from it): '
warns 'executing on /device:CPU:0: PJRT LoadedExecutable_Execute: device lost'
faulty oom:2 5 "${steps[@]}" --model-dir run
warns 'step 10 failed (the checkpoint of step 8'
faulty 'later:3:too hot' 6 "${steps[@]}" --model-dir run
warns 'step 11 failed (the checkpoint of step 8'
ok "${steps[@]}" --model-dir run
cmp whole/model.ckpt-12.data-00000-of-00001 run/model.ckpt-12.data-00000-of-00001 ||
    fail 'a run that goes on has other weights'
SX_PJRT_REF_FAULT=strict ok "${steps[@]}" --model-dir strict --replicas 2 --no-compile-cache
ok "${steps[@]}" --model-dir lenient --replicas 2
cmp {strict,lenient}/model.ckpt-12.data-00000-of-00001 ||
    fail 'a plugin that wants structs of its own sizes trains otherwise'
SX_PJRT_REF=limit=100000 fails 5 "${steps[@]}" --model-dir small
warns "of each device's memory, and /device:CPU:0 has 97.7 KiB"
