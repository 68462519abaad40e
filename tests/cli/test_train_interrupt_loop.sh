#!/usr/bin/env bash
# Ctrl-C while a device loops on two replicas: the launch ends, is saved, and the run goes on from
# there to the bits of one that was left alone.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/pjrt.sh"
. "$SEXTANT_SRC/tests/cli/runs.sh"
words=(train mnist_cnn --data 'generated:digits?n=1600' --batch-size 8 --seed 3 --max-steps 250
    --device pjrt:cpu --replicas 2 --iterations-per-loop 50 --log-step-count-steps 50)
ok "${words[@]}" --model-dir whole
rm -f out err
ran="${words[*]} --model-dir run, SIGINT"
"$sextant" "${words[@]}" --model-dir run >out 2>err </dev/null &
pid=$!
until grep -q 'step 50/250' out 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.01; done
sleep 0.03 # launches take several times as long: it is in one of them
kill -INT $pid
code=0
wait $pid || code=$?
[ "$code" = 130 ] || fail 'expected exit code 130'
step=$(sed -n 's/^Stopped at step \([0-9]*\); run the same command to continue\.$/\1/p' out)
case $step in 100 | 150 | 200) ;; *) fail "it stopped at step $step, inside a launch" ;; esac
says "step $step/250"
says "Saved run/model.ckpt-$step."
[ "$(ls run/model.ckpt-*.index | wc -l)" = 2 ] || fail 'a checkpoint that nobody asked for'
ok "${words[@]}" --model-dir run
says "Current step $step."
same_variables whole run 250
