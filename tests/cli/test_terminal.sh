#!/usr/bin/env bash
# On a terminal one line is written over; finished epochs and evaluations stay.
. "$SEXTANT_SRC/tests/cli/lib.sh"
script -qec true /dev/null >/dev/null 2>&1 </dev/null || { echo 'SKIP: script(1) makes no pseudo-terminal here'; exit 77; }
ran='train on a terminal'
code=0
TERM=xterm script -qec "stty cols 120; '$sextant' train linear --data 'generated:digits?n=320' \
    --eval-data 'generated:digits?n=64' --epochs 2 --seed 1" /dev/null >out 2>err </dev/null || code=$?
[ "$code" = 0 ] || fail 'it failed'
tr '\r' '\n' <out | sed 's/\x1b\[K//g' >lines
cp lines out
says 'Training for 20 steps (2 epochs in total). Current step 0.'
grep -qE '^epoch 1/2  step 10/20  loss [0-9.]+  accuracy [0-9.]+  [0-9.]+ s$' out || fail 'no line of the epoch'
grep -qE '^Eval results at step 20: ' out || fail 'no results'
says 'Elapsed '
# A compile that takes long counts its seconds.
[ -n "${SEXTANT_SANITIZE:-}" ] && exit 0
TERM=xterm SX_PJRT_REF=compile=1300 script -qec "stty cols 120; '$sextant' train linear --device pjrt \
    --pjrt-plugin '$SEXTANT_TEST_BIN/libpjrt_ref.so' --data 'generated:digits?n=320' --steps 1" \
    /dev/null >out 2>err </dev/null || fail 'it failed'
says 'compiling the train program'
