#!/usr/bin/env bash
# The options that say where to compute, over XLA's CPU plugin.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/pjrt.sh"
. "$SEXTANT_SRC/tests/cli/runs.sh"
data='generated:digits?n=96'
ok train mnist_cnn --data "$data" --batch-size 32 --seed 3 --model-dir d --device pjrt:cpu:2 \
    --dump-stablehlo hlo --explain
warns 'mirrored: 2 replicas on pjrt:cpu'
ls hlo/*.mlir >/dev/null || fail 'no program was dumped'
ok predict d --data "$data" --device pjrt:cpu --out p.csv
ok predict d --data "$data" --device pjrt --pjrt-plugin "$SEXTANT_PJRT_PLUGIN" --replicas 2 --out q.csv
cmp p.csv q.csv || fail 'replicas change predictions'

# With --shards, neither the replicas nor the virtual devices change a bit, of a last batch of 16 that
# 6 replicas do not divide, either.
strict() { # DIR WORDS...
    ok train mnist_cnn --data 'generated:digits?n=112' --batch-size 48 --seed 3 --shards 6 \
        --model-dir "$@"
}
strict s1 --device pjrt:cpu
strict s2 --device pjrt:cpu:2
strict s3 --device pjrt:cpu --virtual-devices 3
strict s6 --device pjrt:cpu --virtual-devices 8 --replicas 6
for n in 2 3 6; do same_variables s1 s$n 3; done
fails 2 train mnist_cnn --data "$data" --device pjrt:cpu:4 --shards 6
warns 'shards is 6, which 4 replicas cannot share equally; give a multiple of 4, such as 8'
fails 2 train mnist_cnn --data "$data" --device pjrt:cpu:2 --shards 1

ok train mnist_cnn --data "$data" --batch-size 32 --seed 3 --device pjrt:cpu:2 --batch-norm replica
fails 2 train mnist_cnn --data "$data" --device pjrt:cpu:2 --replicas 3
warns 'the number of devices in its name is 2'
fails 2 train mnist_cnn --data "$data" --device pjrt:cpu --virtual-devices 2 --replicas 3
warns '3 replicas requested, but pjrt:cpu has 2 devices'
ok devices --device pjrt:cpu --virtual-devices 3
[ "$(grep -c '^pjrt:cpu  /device:CPU:' out)" = 3 ] || fail 'not three devices'
