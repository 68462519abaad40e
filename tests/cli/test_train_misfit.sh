#!/usr/bin/env bash
# A batch that does not fit in the device's memory is refused before the data are read and before
# anything is written, with both sizes and the largest that fits; a small one trains.
. "$SEXTANT_SRC/tests/cli/lib.sh"
export PJRT_NAMES_AND_LIBRARY_PATHS=ref:$SEXTANT_BUILD/tests/libpjrt_ref.so SX_PJRT_REF=devices=1,limit=400000
train() { run train linear --data 'generated:digits?n=512' --device pjrt --steps 1 --iterations-per-loop 1 --model-dir run1 "$@"; }
train --batch-size 256
[ "$code" = 5 ] || fail 'expected exit code 5'
warns 'a batch of 256 takes '
warns " of each device's memory, and /device:CPU:0 has 390.6 KiB; the largest batch that fits is about "
[ ! -e run1 ] || fail 'something was written'
train --batch-size 16
[ "$code" = 0 ] || fail 'a small batch does not train'
