#!/usr/bin/env bash
# --precision bfloat16: trained, stored, resumed to the bit, evaluated, exported in float32.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/runs.sh"
data='generated:digits?n=512'
words=(train mnist_cnn --data "$data" --seed 3 --batch-size 32 --save-checkpoints-steps 6)
ok "${words[@]}" --precision bfloat16 --epochs 1 --model-dir whole
grep -q '"precision": "bfloat16"' whole/sextant.json || fail 'sextant.json does not say bfloat16'
grep -q 'bfloat16' whole/graphs/train.graph || fail 'the graph computes in float32'
variables whole 16 | grep -q bfloat16 && fail 'a variable is bfloat16'

# another run, in two parts, the second without the option: equal to the bit, no warning
ok "${words[@]}" --precision bfloat16 --max-steps 7 --model-dir parts
ok "${words[@]}" --max-steps 16 --model-dir parts
says_not 'was started in'
warns_not 'was started in'
same_variables whole parts 16
ok "${words[@]}" --max-steps 17 --precision float32 --model-dir parts
warns 'the run was started in bfloat16, which is kept'

# float32 is another run
ok "${words[@]}" --epochs 1 --model-dir wide
grep -q '"precision": "float32"' wide/sextant.json || fail 'sextant.json does not say float32'
grep -q 'bfloat16' wide/graphs/train.graph && fail 'the graph computes in bfloat16'
variables whole 16 >a
variables wide 16 >b
cmp -s a b && fail 'bfloat16 changed nothing'

# evaluation does not depend on the batch; what is exported is float32
for n in 1 7 512; do
    ok evaluate whole --data "$data" --batch-size "$n" --json
    cp out "eval-$n"
    cmp eval-1 "eval-$n" || fail "the results differ at --batch-size $n"
done
ok export whole --out model
ok show model/1
says_not bfloat16
fails 2 "${words[@]}" --precision float16
warns 'float32|bfloat16'
