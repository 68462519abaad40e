#!/usr/bin/env bash
# Plain lines of a whole run; a finished run says so; --steps goes on; --fresh begins again.
. "$SEXTANT_SRC/tests/cli/lib.sh"
data='generated:digits?n=320'
ok train linear --data "$data" --eval-data 'generated:digits?n=64&seed=2' --model-dir run \
    --epochs 2 --seed 5 --log-step-count-steps 5
says_line 'Training for 20 steps (2 epochs in total). Current step 0.'
grep -qE '^epoch 1/2  step 5/20  loss [0-9.]+  accuracy [0-9.]+  [0-9,]+ img/s  input [0-9]+ %  eta [0-9:]+$' out ||
    fail 'no progress line'
grep -qE '^Eval results at step 10: accuracy = [0-9.]+, loss = [0-9.]+ \(best so far\)$' out || fail 'eval 10'
grep -qE '^Eval results at step 20: ' out || fail 'eval 20'
grep -qE '^Elapsed [0-9.]+ s: compile [0-9.]+ s, train [0-9.]+ s, evaluate [0-9.]+ s, save [0-9.]+ s\.$' out ||
    fail 'no times'
says_line 'Done at step 20 (finished).'
grep -qE '^Loss for final step: [0-9.]+\.$' out || fail 'no loss of the final step'
warns 'generated digits: 320 of uint8[28,28,1]'
ok train linear --data "$data" --model-dir run --epochs 2
says 'This run has already finished: it is at step 20.'
ok train linear --data "$data" --model-dir run --steps 3
says_line 'Resuming from run/model.ckpt-20.'
says_line 'Done at step 23 (finished).'
ok train linear --data "$data" --model-dir run --max_steps=25
says_line 'Done at step 25 (finished).'
ok train linear --data "$data" --model-dir run --max-steps 4 --fresh
says '. Current step 0.'
says_line 'Done at step 4 (finished).'
# The remaining time is shown once the rate of some steps is known.
ok train linear --data "$data" --steps 8 --log-step-count-steps 1
[ "$(grep -c '^epoch 1/1  step ./8 .* img/s' out)" = 8 ] || fail 'lines'
[ "$(grep -c 'step [1-4]/8 .*  eta' out)" = 0 ] || fail 'remaining time from the first steps'
[ "$(grep -c 'step [5-8]/8 .*  eta' out)" = 4 ] || fail 'no remaining time'
ok train linear --data "$data" --steps 2
says_line 'Done at step 2 (finished).'
