#!/usr/bin/env bash
# Processes that never come, differ from the chief, or fail: all say which one and why.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/processes.sh"
data='generated:digits?n=640'
words=(train mlp --data "$data" --batch-size 32 --seed 5 --max-steps 60 --iterations-per-loop 1
    --no-compile-cache --param hidden=16)

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
fails 2 "${words[@]}" --num-processes 2 --coordinator localhost:1
warns '--process-id is missing'
fails 2 "${words[@]}" --process-id 0
warns '--coordinator, --num-processes and --process-id belong together'
fails 2 "${words[@]}" --coordinator localhost:1 --num-processes 2 --process-id 2
warns 'process_id is 2, expected 0 to 1, as num_processes is 2'
