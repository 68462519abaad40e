#!/usr/bin/env bash
# A directory with other files becomes a run only with --force. A model-dir belongs to one training at a time; --fresh deletes nothing until the new run begins; a
# broken checkpoint is passed over, and that is said.
. "$SEXTANT_SRC/tests/cli/lib.sh"
data='generated:digits?n=60000'
"$sextant" train mlp --data "$data" --model-dir run --epochs 1000 --log-step-count-steps 1 >train.out 2>&1 &
pid=$!
trap 'kill $pid 2>/dev/null || true; wait; rm -rf "$here"' EXIT
until grep -q "^epoch" train.out 2>/dev/null || ! kill -0 $pid; do sleep 0.02; done
for words in '' --fresh; do
    fails 1 train mlp --data "$data" --model-dir run --max-steps 5 $words
    warns 'run is in use by another process'
done
ok evaluate run --data 'generated:digits?n=64' --json
kill -INT $pid
code=0
wait $pid || code=$?
[ "$code" = 130 ] || fail "the first training ended with $code: $(tail -n 3 train.out)"

rm -r run
mkdir photos photos/daisy photos/rose photos/sunflower photos/tulip
fails 2 train linear --data 'generated:digits?n=64' --model-dir photos --steps 1
warns 'photos is not empty and not a run directory (it has daisy, rose, sunflower, …)'
warns 'choose another --model-dir, or add --force'
fails 2 train linear --data 'generated:digits?n=64' --model-dir photos --steps 1 --fresh
[ "$(ls photos | wc -l)" = 4 ] || fail 'something was written'
ok train linear --data 'generated:digits?n=64' --model-dir photos --steps 1 --force
[ -d photos/daisy ] || fail 'a folder of the user is gone'
ok train linear --data 'generated:digits?n=64' --model-dir photos --steps 1
says 'Resuming'
mkdir -p empty/lost+found && touch empty/.keep
ok train linear --data 'generated:digits?n=64' --model-dir empty --steps 1
rm empty/sextant.json # what a kill may leave is no foreign folder
run train linear --data 'generated:digits?n=64' --model-dir empty --steps 1
warns_not 'is not a run directory'

data='generated:digits?n=320'
ok train mlp --data "$data" --model-dir run --epochs 2 --save-checkpoints-steps 10
fails 1 train mlp --data nothing-here --model-dir run --fresh
fails 1 train flowers_cnn --data "$data" --model-dir run --fresh -- --num_classes 3
fails 1 train mlp --data "$data" --eval-data nothing-here --model-dir run --fresh
ok evaluate run --data "$data" --json
says '"step": 20,'
cp out whole
printf 'xxxx' | dd of=run/model.ckpt-20.data-00000-of-00001 bs=1 seek=3000 conv=notrunc status=none
fails 3 evaluate run --data "$data" --json
warns 'the newest checkpoint, step 20, is damaged'
warns 'choose one of them with --checkpoint STEP'
ok evaluate run --data "$data" --json --checkpoint 10
says '"step": 10,'
fails 3 evaluate run --data "$data" --checkpoint 20
warns 'wrong checksum'
ok train mlp --data "$data" --model-dir run --epochs 2
warns 'skipping a broken checkpoint'
ok evaluate run --data "$data" --json
cmp out whole || fail 'what was lost has come back otherwise'
