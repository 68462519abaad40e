#!/usr/bin/env bash
# Checkpoints that are damaged or missing: export, predict and evaluate refuse an older one that was
# not asked for, train says which one it continues from, and a run that lost all does not begin again.
. "$SEXTANT_SRC/tests/cli/lib.sh"
data='generated:digits?n=320'
ok train mlp --data "$data" --eval-data "$data" --model-dir saved --epochs 2 --save-checkpoints-steps 10
cp -r saved run
printf 'xxxx' | dd of=run/model.ckpt-20.data-00000-of-00001 bs=1 seek=3000 conv=notrunc status=none
fails 3 export run --out models/d
warns 'the newest checkpoint, step 20, is damaged'
warns 'steps with a whole checkpoint: 0, 10; choose one of them with --checkpoint STEP'
[ ! -e models/d/1 ] || fail 'an older checkpoint was exported'
fails 3 predict run --data "$data"
warns 'steps with a whole checkpoint: 0, 10'
ok export run --out models/d --checkpoint 10
ok export run --out models/d --checkpoint best
fails 3 evaluate run --data "$data" --json
warns 'steps with a whole checkpoint: 0, 10; choose one of them with --checkpoint STEP'
ok evaluate run --data "$data" --json --checkpoint 10
says '"step": 10,'
fails 3 train mlp --data "$data" --model-dir started --steps 1 --warm-start-from run
warns 'run: the newest checkpoint cannot be used'
warns 'the newest intact one is run/model.ckpt-10; name it instead of the directory to use it'
ok train mlp --data "$data" --model-dir started --steps 1 --warm-start-from run/model.ckpt-10

rm -r run && cp -r saved run && rm run/model.ckpt-20.index
fails 3 export run --out models/e
warns 'the newest checkpoint, step 20, has no .index file'
fails 3 evaluate run --data "$data" --json
warns 'the newest checkpoint, step 20, has no .index file'
rm run/checkpoint # history.json names the step too
fails 3 evaluate run --data "$data" --json
warns 'the newest checkpoint, step 20, has no .index file'
ok train mlp --data "$data" --eval-data "$data" --model-dir run --epochs 2 --save-checkpoints-steps 10
warns 'using step 10 instead of 20'
ok export run --out models/e
warns_not 'instead of'

rm -r run && cp -r saved run && rm run/model.ckpt-*
fails 3 evaluate run --data "$data"
warns "the run's checkpoints are lost, but best/ has step"
warns '--checkpoint best'
warns_not 'has not been trained yet'
ok evaluate run --data "$data" --checkpoint best
fails 3 train mlp --data "$data" --model-dir run --epochs 1
warns '--warm-start-from run/best'
warns '--fresh'
[ ! -e run/model.ckpt-0.index ] || fail 'the run began again'
ok train mlp --data "$data" --model-dir other --epochs 1 --warm-start-from run/best
ok train mlp --data "$data" --model-dir run --epochs 1 --fresh
[ ! -e run/best ] || fail 'best/ was not cleared'
! grep -q val_loss run/history.json || fail 'history.json was not cleared'

rm -r run && cp -r saved run && rm -r run/best
fails 1 evaluate run --data "$data" --checkpoint best
warns 'is lost: best/ does not have it; available steps: 0, 10, 20'

# What differs from the run that is resumed is named.
data='generated:digits?n=64'
ok train mlp --data "$data" --model-dir plain --steps 1
ok train mlp --data "$data" --model-dir plain --steps 1 --learning-rate 0.1
warns 'warning: the learning rate is 0.1, but the run was started with 0.001, which is kept'
ok train flowers_cnn --data "$data" --model-dir flowers --steps 1 --param dropout=0.2
ok train flowers_cnn --data "$data" --model-dir flowers --steps 1 --param dropout=0.3
warns 'warning: parameter dropout is 0.3, but the run was started with 0.2, which is kept'
