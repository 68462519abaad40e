#!/usr/bin/env bash
# A run that continues where oneDNN uses other instructions: the bits of a step may differ, so that a
# warning names both, and --require-exact refuses.
. "$SEXTANT_SRC/tests/cli/lib.sh"
[ "$(uname -m)" = x86_64 ] || { echo 'SKIP: oneDNN chooses an instruction set on x86-64 alone'; exit 77; }
train() { # STEPS WORDS...
    local steps=$1
    shift
    run train mlp --data 'generated:digits?n=64' --model-dir run --seed 5 --max-steps "$steps" "$@"
}
train 2
[ "$code" = 0 ] || fail 'expected success'
warns_not 'results may differ in the last bits'
train 4 --require-exact
[ "$code" = 0 ] || fail 'the same machine must do'
export DNNL_MAX_CPU_ISA=SSE41
train 6 --require-exact
[ "$code" != 0 ] || fail 'another instruction set must be refused'
warns 'the checkpoint was computed with'
warns 'isa:sse41'
train 6
[ "$code" = 0 ] || fail 'expected success'
warns 'results may differ in the last bits'
warns 'isa:sse41'
warns ' caches:'
