#!/usr/bin/env bash
# Processes that are lost, never come, or differ: all others end in time, and say which one and why;
# a run that is started again ends with the bits of one that was left alone.
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

# A process that never comes.
new_port
begin absent 0 3 "${words[@]}" --replicas 1 --join-timeout 1
begin absent 2 3 "${words[@]}" --replicas 1 --join-timeout 2
for i in 0 2; do
    finish absent $i
    [ "$code" = 6 ] || fail "process $i ended with $code"
    told absent $i 'process 1 of 3 did not come within 1 s'
done
new_port
begin alone 1 2 "${words[@]}" --replicas 1 --join-timeout 1 --explain
finish alone 1
[ "$code" = 6 ] || fail "ended with $code"
told alone 1 "options: process 1 of 2; process 0 is at 127.0.0.1:$port"
told alone 1 "process 0 of 2 did not come within 1 s at 127.0.0.1:$port"

# Processes that were started differently.
differs() { # TEXT DATA WORDS...: process 1 has other data, and the words, too
    local text=$1
    other=("${words[@]}")
    other[3]=$2
    shift 2
    new_port
    begin differ 0 2 "${words[@]}" --replicas 1
    begin differ 1 2 "${other[@]}" --replicas 1 "$@"
    for i in 0 1; do
        finish differ $i
        [ "$code" != 0 ] || fail "process $i has trained"
        told differ $i "$text"
    done
}
differs 'process 1 differs from process 0 in its batch size (64, not 32)' "$data" --batch-size 64
differs "process 1 differs from process 0 in the model's training program" "$data" --param num_classes=11
differs 'process 1 differs from process 0 in its training data (641 elements' 'generated:digits?n=641'
differs 'process 1 differs from process 0 in its training data (640 elements' 'generated:digits?n=640&seed=2'
differs 'process 1 differs from process 0 in the order or preprocessing' "$data" --no-shuffle
differs 'none: no file matches' "$here/none"
told differ 0 'process 1 of 2 ('

# A step that is not finite is found by all alike.
new_port
bad=("${words[@]}" --optimizer sgd --learning-rate 1e30 --replicas 1)
for i in 0 1; do begin bad $i 2 "${bad[@]}"; done
for i in 0 1; do
    finish bad $i
    [ "$code" = 4 ] || fail "process $i ended with $code"
    grep -q '^sextant train: step 2: matmul "dense_1/matmul"' err || fail "process $i says otherwise"
done
new_port
begin number 0 2 "${words[@]}" --replicas 1
begin number 1 3 "${words[@]}" --replicas 1
for i in 0 1; do
    finish number $i
    told number $i 'was started as one of 3 processes, process 0 as one of 2'
done
fails 2 "${words[@]}" --num-processes 2
warns 'need a coordinator'
fails 2 "${words[@]}" --coordinator localhost:1 --num-processes 2 --process-id 2
warns 'process_id is 2 of num_processes 2'
