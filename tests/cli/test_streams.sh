#!/usr/bin/env bash
# Standard streams that are full, closed or a pipe without a reader, and a terminal that goes away.
. "$SEXTANT_SRC/tests/cli/lib.sh"
data='generated:digits?n=64'
ok train linear --data "$data" --steps 3 --model-dir whole

# Lost output is an error with its reason.
ran='zoo >/dev/full'
code=0
"$sextant" zoo >/dev/full 2>err || code=$?
[ "$code" = 1 ] || fail 'expected exit code 1'
warns 'sextant: cannot write to stdout: No space left on device'
for shell in bash zsh; do
    ran="completion $shell >/dev/full"
    code=0
    "$sextant" completion $shell >/dev/full 2>err || code=$?
    [ "$code" = 1 ] || fail 'expected exit code 1'
    warns 'sextant: cannot write to stdout'
    ran="completion $shell >&-"
    code=0
    "$sextant" completion $shell >&- 2>err || code=$?
    [ "$code" = 1 ] || fail 'expected exit code 1'
    warns 'sextant: cannot write to stdout'
done
ran='predict >/dev/full'
code=0
"$sextant" predict whole --data "$data" >/dev/full 2>err || code=$?
[ "$code" = 5 ] || fail 'expected exit code 5'
warns 'cannot write to stdout: No space left on device'
ran='zoo >&-'
code=0
"$sextant" zoo >&- 2>err || code=$?
[ "$code" = 1 ] || fail 'expected exit code 1'
warns 'sextant: cannot write to stdout: Bad file descriptor'

# What is printed never gets into a file that was given the number of a closed stream.
ran='train <&- >&- 2>&-'
"$sextant" train linear --data "$data" --steps 3 --model-dir closed --log-step-count-steps 1 <&- >&- 2>&- || true
[ -e closed/model.ckpt-3.index ] || fail 'the run did not end'
! grep -rqa 'Training for\|Saved\|epoch 1/' closed || fail 'output was written into a file of the run'
cmp whole/model.ckpt-3.data-00000-of-00001 closed/model.ckpt-3.data-00000-of-00001 || fail 'the run differs'

# A reader that goes away does not end training.
ran='train | head'
"$sextant" train linear --data "$data" --steps 3 --model-dir unread --log-step-count-steps 1 2>err | head -n 1 >out
cmp whole/model.ckpt-3.data-00000-of-00001 unread/model.ckpt-3.data-00000-of-00001 || fail 'the run differs'

# The terminal is closed: the run is saved, and goes on to the same end. nohup's runs go on.
long='generated:digits?n=20000'
start() { # [WRAPPER]: trains until something is saved
    "$@" "$sextant" train linear --data "$long" --batch-size 4 --steps 1500 --save-checkpoints-steps 50 --model-dir run \
        </dev/null >out 2>err &
    pid=$!
    until [ -e run/model.ckpt-50.index ]; do
        kill -0 "$pid" || fail 'training ended'
        sleep 0.01
    done
}
ran='train, then SIGHUP'
start
kill -HUP "$pid"
code=0
wait "$pid" || code=$?
[ "$code" = 129 ] || fail 'expected exit code 129'
says 'Stopped at step'
ok train linear --data "$long" --batch-size 4 --max-steps 1500 --model-dir run
says 'Resuming from'
rm -r run
ran='train, then SIGHUP again and again' # a closed terminal sends it twice
start
while kill -HUP "$pid" 2>kills; do :; done
code=0
wait "$pid" || code=$?
[ "$code" = 129 ] || fail 'expected exit code 129'
says 'Stopped at step'
rm -r run
ran='nohup train, then SIGHUP'
start nohup
kill -HUP "$pid"
wait "$pid" || fail 'SIGHUP ended a run that ignores it'
