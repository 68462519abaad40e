#!/usr/bin/env bash
# Each option of train does what its text says: checkpoints kept, lines logged, seeds, order, rates.
. "$SEXTANT_SRC/tests/cli/lib.sh"
data='generated:digits?n=32'

# --- checkpoints ---
kept() {
    (cd "$1" && ls *.index) | sed 's/model.ckpt-//; s/.index//' | sort -n | tr '\n' ' ' >kept
    [ "$(cat kept)" = "$2 " ] || fail "kept $(cat kept), expected $2"
}
short="linear --data $data --batch-size 8 --steps 4 --save-checkpoints-steps 1"
ok train $short --model-dir all --keep-checkpoint-max 0
kept all '0 1 2 3 4'
ok train $short --model-dir two --keep-checkpoint-max 2
kept two '3 4'
ok train linear --data "$data" --batch-size 8 --steps 4 --model-dir ends
kept ends '0 4'
ok train linear --data "$data" --batch-size 8 --steps 4 --model-dir threes --save-checkpoints-steps 3
kept threes '0 3 4'
# more than five by default
ok train linear --data "$data" --batch-size 8 --steps 7 --model-dir five --save-checkpoints-steps 1
kept five '3 4 5 6 7'

# --- lines ---
lines() {
    ok train linear --data "$data" --batch-size 4 --max-steps 8 "$@"
    grep -o 'step [0-9]*/8 ' out | tr -d 'step/ ' | tr '\n' ' ' >lines || true
    cat lines
}
[ "$(lines --log-step-count-steps 3)" = '38 68 88 ' ] || fail "lines $(cat lines)"
[ "$(lines --log-step-count-steps 4)" = '48 88 ' ] || fail "lines $(cat lines)"
[ "$(lines --log-step-count-steps 0)" = '88 ' ] || fail "lines $(cat lines)"
[ "$(lines)" = '88 ' ] || fail "lines $(cat lines)"

# --- what changes the loss, and what does not ---
loss() {
    ok train linear --data "$data" --steps 2 --batch-size 8 "$@"
    sed -n 's/^Loss for final step: //p' out
}
same() {
    [ "$1" = "$2" ] || fail "$3: a loss of $1, expected $2"
}
differs() {
    [ "$1" != "$2" ] || fail "$3: a loss of $1 in spite of it"
}
base=$(loss --seed 3)
same "$(loss --seed 3)" "$base" 'the same again'
same "$(loss --tf-random-seed 3)" "$base" --tf-random-seed
same "$(loss --seed 3 --shuffle)" "$base" --shuffle
same "$(loss --seed 3 --eval-batch-size 3)" "$base" --eval-batch-size
same "$(loss --seed 3 --train-batch-size 8 --batch-size 3)" "$base" --train-batch-size
same "$(loss --seed 3 --base-batch-size 8)" "$base" '--base-batch-size of the batch size'
same "$(loss --seed 3 --steps 2 --json-log --no-json-log)" "$base" --no-json-log
same "$(loss --seed 3 --iterations-per-loop 2)" "$base" --iterations-per-loop
differs "$(loss --seed 4)" "$base" --seed
differs "$(loss --seed 3 --no-shuffle)" "$base" --no-shuffle
differs "$(loss --seed 3 --train-batch-size 4)" "$base" --train-batch-size
differs "$(loss --seed 3 --learning-rate 0.5)" "$base" --learning-rate
differs "$(loss --seed 3 --optimizer adam)" "$base" --optimizer
differs "$(loss --seed 3 --l2 0.5)" "$base" --l2
differs "$(loss --seed 3 --warmup-steps 2)" "$base" --warmup-steps
differs "$(loss --seed 3 --warmup-epochs 1)" "$base" --warmup-epochs
# a batch of 8 at a rate for 4 is trained at twice that rate
same "$(loss --seed 3 --learning-rate 0.25 --base-batch-size 4)" "$(loss --seed 3 --learning-rate 0.5)" \
    '--base-batch-size of half the batch size'
# --steps counts from here, --max-steps and --epochs from the beginning
ok train linear --data "$data" --batch-size 8 --model-dir going --steps 2
ok train linear --data "$data" --batch-size 8 --model-dir going --steps 2
says 'Done at step 4'
ok train linear --data "$data" --batch-size 8 --model-dir going --max-steps 6
says 'Done at step 6'
ok train linear --data "$data" --batch-size 8 --model-dir going --epochs 2
says 'Done at step 8'
ok train linear --data "$data" --batch-size 8 --model-dir going --epochs 2
says_not 'Saved'

# --- what cannot be both, and what is no number ---
pair() {
    fails 2 train linear --data "$data" "$1" 1 "$2" 1
    warns 'are mutually exclusive'
    warns "$1"
    warns "$2"
}
# names are echoed as typed
fails 2 train linear --data "$data" --max_steps 1 --epochs=1 --steps 1
warns_line 'sextant train: --epochs, --max_steps and --steps are mutually exclusive'
fails 2 train linear --data "$data" --steps 1 --iterations_per_loop x
warns '--iterations_per_loop is "x", expected'
fails 2 train linear --data "$data" --steps 1 --augment none,zoom=.2
warns_line 'sextant train: --augment: augmentation "none" cannot be combined with others'
fails 2 train linear --data "$data" --steps 1 --augment zoom=.2,shear=1,zoom=.3
warns_line 'sextant train: --augment: augmentation "zoom" is given twice'
pair --epochs --max-steps
pair --epochs --steps
pair --max-steps --steps
pair --save-checkpoints-steps --save-checkpoints-secs
pair --eval-examples --eval-steps
pair --warmup-epochs --warmup-steps
pair --seed --tf-random-seed
for loop in 0 -1 +3 ' 3' 5x 3.5 1.5s 2d '' 1099511627777; do
    fails 2 train linear --data "$data" --steps 1 --iterations-per-loop "$loop"
    warns "--iterations-per-loop is \"$loop\", expected a number of steps or a time"
done
for loop in 1 3s 5m 1h 1099511627776; do
    ok train linear --data "$data" --steps 1 --iterations-per-loop "$loop"
done
