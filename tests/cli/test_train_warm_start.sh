#!/usr/bin/env bash
# A run begins with the weights of another run, or with some of them; what cannot be is named.
. "$SEXTANT_SRC/tests/cli/lib.sh"
data='generated:digits?n=320'
loss() { sed -n 's/^Loss for final step: \(.*\)\.$/\1/p' out; }
ok train linear --data "$data" --model-dir a --epochs 20
ok train linear --data "$data" --seed 5 --steps 1
cold=$(loss)
ok train linear --data "$data" --seed 5 --steps 1 --warm-start-from a
awk "BEGIN { exit !($(loss) < $cold / 2) }" || fail 'no warm start'
ok train linear --data "$data" --seed 5 --steps 1 --warm-start-from a/model.ckpt-0 --vars-to-warm-start dense/bias
[ "$(loss)" = "$cold" ] || fail 'a bias of 0 is what it was'
fails 1 train mlp --data "$data" --steps 1 --warm-start-from a --model-dir b
warns 'warm start from a'
warns '"dense/kernel"'
warns 'use vars_to_warm_start to exclude variables'
[ ! -e b ] || fail 'something was written'
fails 1 train linear --data "$data" --steps 1 --warm-start-from nowhere
warns 'nowhere: not a run, SavedModel or complete checkpoint'
