#!/usr/bin/env bash
# Processes that are lost, and one that is asked to stop: all others end in time, and say which one; a
# run that is started again ends with the bits of one that was left alone.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/runs.sh"
. "$SEXTANT_SRC/tests/cli/processes.sh"
data='generated:digits?n=640'
words=(train mlp --data "$data" --batch-size 32 --seed 5 --max-steps 60
    --save-checkpoints-steps 4 --iterations-per-loop 1 --no-compile-cache --param hidden=16)
ok "${words[@]}" --device pjrt --pjrt-plugin "$plugin" --replicas 2 --model-dir alone

# kill -9 of a worker, then of the chief; each time the run goes on where it was.
slow=(SX_PJRT_REF=step=50000)
until_step() { # NAME STEP: waits for the checkpoint of the step
    for _ in $(seq 400); do
        [ ! -f "run/model.ckpt-$1.index" ] || return 0
        sleep 0.05
    done
    fail "no checkpoint of step $1"
}
for lost in 1 0; do
    new_port
    export "${slow[@]}"
    for i in 0 1; do begin kill$lost $i 2 "${words[@]}" --replicas 1 --model-dir run; done
    unset SX_PJRT_REF
    until_step $((lost == 1 ? 8 : 20))
    kill -9 "${pids[kill$lost.$lost]}" || fail 'nothing was killed'
    start=$SECONDS
    finish kill$lost $((1 - lost))
    [ "$code" = 6 ] || fail "the other process ended with $code"
    [ $((SECONDS - start)) -le 8 ] || fail 'the other process has waited too long'
    wait "${pids[kill$lost.$lost]}" || true
done
told kill1 0 'failed (the checkpoint of step '
told kill1 0 'process 1 of 2 ('
told kill1 0 ') was lost: its connection was closed'
told kill0 1 'process 0 of 2, the chief, at 127.0.0.1:'
told kill0 1 ' was lost: '
together again 2 "${words[@]}" --replicas 1 --model-dir run
same_variables alone run 60

# A device that never answers does not keep its process, once the other is lost.
rm -rf run
new_port
SX_PJRT_REF_FAULT=stuck:6 begin stuck 0 2 "${words[@]}" --replicas 1 --model-dir run
begin stuck 1 2 "${words[@]}" --replicas 1 --model-dir run
until_step 4
kill -9 "${pids[stuck.1]}"
finish stuck 0
[ "$code" = 6 ] || fail "ended with $code"
told stuck 0 'process 1 of 2 ('
wait "${pids[stuck.1]}" || true

# Ctrl-C and SIGTERM end the wait for others at once.
for i in 0 1; do
    new_port
    begin early$i $i 2 "${words[@]}" --replicas 1 --model-dir early
    sleep 1
    [ "$i" = 0 ] && signal=INT || signal=TERM
    kill -$signal "${pids[early$i.$i]}"
    start=$SECONDS
    finish early$i $i
    [ "$code" = $((i == 0 ? 130 : 143)) ] || fail "process $i ended with $code"
    [ $((SECONDS - start)) -le 5 ] || fail "process $i has waited on"
    [ ! -e early ] || fail 'a run was begun'
done

# Ctrl-C of one ends all at one step, with a checkpoint.
for asked in 1 0; do
    rm -rf run
    new_port
    export "${slow[@]}"
    for i in 0 1; do begin stop$asked $i 2 "${words[@]}" --replicas 1 --model-dir run; done
    unset SX_PJRT_REF
    until_step 4
    kill -INT "${pids[stop$asked.$asked]}"
    for i in 0 1; do
        finish stop$asked $i
        [ "$code" = $((i == asked ? 130 : 1)) ] || fail "process $i ended with $code"
    done
    step=$(ls run/*.index | sed 's/.*-\([0-9]*\).index/\1/' | sort -n | tail -1)
    grep -q "Stopped at step $step;" stop$asked.0.out || fail 'the chief stopped elsewhere'
done
together again 2 "${words[@]}" --replicas 1 --model-dir run
same_variables alone run 60
