#!/usr/bin/env bash
# Metrics and predictions are identical to the bit at every batch size, with any number of threads.
. "$SEXTANT_SRC/tests/cli/lib.sh"
data='generated:digits?n=1100&seed=4'
for model in mnist_cnn mlp; do
    ok train $model --data 'generated:digits?n=640' --model-dir $model --epochs 1 --seed 1
    for batch in 32 1 7 1024; do
        ok evaluate $model --data "$data" --json --batch-size $batch
        cp out $batch.json
        ok predict $model --data "$data" --out $batch.csv --batch-size $batch
        says_line "$batch.csv: 1100 rows"
        cmp 32.json $batch.json || fail "$model: another evaluation at batch size $batch"
        cmp 32.csv $batch.csv || fail "$model: other predictions at batch size $batch"
    done
    for threads in 1 2 3 40; do
        ok evaluate $model --data "$data" --json --batch-size 100 --threads $threads
        cmp 32.json out || fail "$model: another evaluation with $threads threads"
        ok predict $model --data "$data" --out t.csv --batch-size 100 --threads $threads
        cmp 32.csv t.csv || fail "$model: other predictions with $threads threads"
    done
done
# During training as well: the same scores, whatever the batch size of the evaluation.
for batch in 1 7 1024; do
    ok train mlp --data 'generated:digits?n=320' --eval-data "$data" --model-dir e$batch --epochs 2 \
        --seed 1 --eval-batch-size $batch
    cmp e1/history.json e$batch/history.json || fail "another history at eval batch size $batch"
done
