#!/usr/bin/env bash
# Ctrl-C finishes the step, saves and exits with 130; SIGTERM with 143.
. "$SEXTANT_SRC/tests/cli/lib.sh"
for signal in INT TERM; do
    rm -f out err
    fresh=
    [ "$signal" = INT ] || fresh=--fresh # which would delete what the stop saved
    "$sextant" train mnist_cnn --data 'generated:digits?n=60000' --model-dir run-$signal \
        --epochs 1000 --log-step-count-steps 1 $fresh >out 2>err &
    pid=$!
    until grep -q "^epoch" out 2>/dev/null || ! kill -0 $pid; do sleep 0.02; done
    kill -$signal $pid
    code=0
    wait $pid || code=$?
    ran="train, SIG$signal"
    [ "$code" = $((128 + $(kill -l $signal))) ] || fail "exit code $code"
    step=$(sed -n 's/^Stopped at step \([0-9]*\);.*/\1/p' out)
    [ -n "$step" ] || fail 'it does not say where it stopped'
    says_line "Stopped at step $step; run the same command${fresh:+ without --fresh} to continue."
    [ -f "run-$signal/model.ckpt-$step.index" ] || fail "no checkpoint for step $step"
    [ ! -s err ] || grep -qv 'sextant train:' err || fail 'a stop is no error'
done
