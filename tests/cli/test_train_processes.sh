#!/usr/bin/env bash
# Processes that train in step: the numbers are those of one process with as many replicas, the chief
# alone writes, and the run goes on in any number of processes.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/runs.sh"
. "$SEXTANT_SRC/tests/cli/processes.sh"
data='generated:digits?n=150'
# More than the devices evaluate at once, and a rest, which each process reads whole.
eval='generated:digits?n=300&seed=2'
# The last batch of an epoch, of 22, is divided by 2, not by 4: each process then reads all of it.
words=(train mlp --data "$data" --eval-data "$eval" --batch-size 32 --seed 5 --epochs 2
    --save-checkpoints-steps 3 --no-compile-cache --param hidden=16)
one=("${words[@]}" --device pjrt --pjrt-plugin "$plugin")

ok "${one[@]}" --replicas 2 --model-dir one2
together two 2 "${words[@]}" --replicas 1 --explain --model-dir two
same_variables one2 two 10
cmp one2/history.json two/history.json || fail 'other metrics or evaluations'
[ ! -s two.1.out ] || fail 'a worker prints'
grep -q '^epoch 2/2' two.0.out || fail 'the chief prints nothing'
told two 1 "options: process 1 of 2; process 0 is at 127.0.0.1:"
told two 0 'mirrored: 2 replicas on pjrt, 1 in each of 2 processes, of which this is 0'

ok "${one[@]}" --replicas 4 --model-dir one4
together four 4 "${words[@]}" --replicas 1 --model-dir four
same_variables one4 four 10
cmp one4/history.json four/history.json || fail 'other metrics or evaluations of four'
together pairs 2 "${words[@]}" --replicas 2 --model-dir pairs --iterations-per-loop 2
same_variables one4 pairs 10

# With shards, the number of processes may change in between, and no bit does.
steps=(train mlp --data "$data" --batch-size 32 --seed 5 --shards 4 --no-compile-cache --require-exact --param hidden=16)
ok "${steps[@]}" --device pjrt --pjrt-plugin "$plugin" --max-steps 9 --model-dir shards
together s2 2 "${steps[@]}" --replicas 1 --max-steps 4 --model-dir s
together s4 4 "${steps[@]}" --replicas 1 --max-steps 7 --model-dir s
ok "${steps[@]}" --device pjrt --pjrt-plugin "$plugin" --replicas 2 --max-steps 9 --model-dir s
same_variables shards s 9

# Every example is scored once.
ok evaluate one2 --data "$eval" --json --device pjrt --pjrt-plugin "$plugin" --replicas 2
cp out alone.json
together eval 2 evaluate one2 --data "$eval" --json --replicas 1
cmp alone.json eval.0.out || fail 'processes evaluate otherwise'
[ ! -s eval.1.out ] || fail 'a worker prints'
new_port
begin other 0 2 evaluate one2 --data "$eval" --replicas 1
begin other 1 2 evaluate one2 --data "$data" --replicas 1
for i in 0 1; do
    finish other $i
    [ "$code" != 0 ] || fail "process $i has evaluated other data"
    told other $i 'process 1 differs from process 0 in its evaluation data (150 elements'
done

# TF_CONFIG says the same as the options.
new_port
cluster="\"cluster\": {\"chief\": [\"127.0.0.1:$port\"], \"worker\": [\"127.0.0.1:1\"]}"
for i in 0 1; do
    [ "$i" = 0 ] && task=chief || task=worker
    TF_CONFIG="{$cluster, \"task\": {\"type\": \"$task\", \"index\": 0}}" "$sextant" \
        "${one[@]}" --replicas 1 --explain --model-dir tf >tf.$i.out 2>tf.$i.err &
    pids[tf.$i]=$!
done
for i in 0 1; do
    finish tf $i
    [ "$code" = 0 ] || fail "TF_CONFIG, task $i"
done
told tf 1 "TF_CONFIG: worker 0 is process 1 of 2; process 0 is at 127.0.0.1:$port"
same_variables one2 tf 10
TF_CONFIG="{$cluster, \"task\": {\"type\": \"worker\", \"index\": 0}}" fails 1 train mlp --data "$data" --device cpu
warns '2 processes can share batches on PJRT devices only (tpu, cuda, pjrt:NAME), not on cpu; unset TF_CONFIG'
