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

# The replicas are the named devices. Sums in a fixed order need no all-reduce.
ok train mnist_cnn --data "$data" --batch-size 32 --seed 3 --model-dir named --device pjrt:cpu \
    --devices cpu:3,cpu:1 --all-reduce reduction-to-one-device --dump-stablehlo ordered --explain
warns 'mirrored: 2 replicas on pjrt:cpu: cpu:3,cpu:1; sums in a fixed order'
if grep -l all_reduce ordered/*.mlir; then fail 'a program reduces in the order of the device'; fi
grep -q all_gather ordered/*.mlir || fail 'nothing is gathered'
ok predict named --data "$data" --device pjrt:cpu --out r.csv
ok predict named --data "$data" --device pjrt:cpu --devices cpu:0,cpu:3 --out s.csv
cmp r.csv s.csv || fail 'named replicas change predictions'
fails 2 train mnist_cnn --data "$data" --device pjrt:cpu --virtual-devices 2 --devices cpu:0,cpu:2
warns 'there is no CPU:2; virtual_devices has 2 devices'
fails 2 train mnist_cnn --data "$data" --device pjrt:cpu:2 --all-reduce hierarchical-copy
warns 'XLA chooses the algorithm'
fails 1 train mnist_cnn --data "$data" --device pjrt:cpu:2 --strategy central-storage
warns 'use mirrored, which computes the same'

# A batch norm exchanges its moments once, and once the sums of its gradient.
cat >norms.c <<'EOF'
#include <sextant/sextant.h>
static sx_spec build(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    sx_value x = sx_conv2d(b, in->features, 4, 3);
    for (int64_t i = sx_param_int(p, "norms", 3); i > 0; i--) {
        x = sx_conv2d(b, sx_batch_norm(b, x), 4, 3);
    }
    return sx_classifier_spec(b, sx_dense(b, sx_flatten(b, x), 10), in->labels,
                              .optimizer = sx_adam(.learning_rate = 1e-3));
}
SX_MODEL(net, .build = build, .image = {28, 28, 1}, .scale = SX_0_1)
EOF
exchanges() { # NORMS: how many gathers and reductions the programs have
    ok train ./norms.c --data "$data" --batch-size 32 --seed 3 --device pjrt:cpu:2 \
        --dump-stablehlo "norms$1" -- --norms "$1"
    grep -ho '"stablehlo.all_[a-z]*"' "norms$1"/*.mlir | sort | uniq -c | tr -s ' \n' ' '
}
exchanges 0 >none
exchanges 3 >three
python3 - none three <<'PY' || fail 'a batch norm exchanges more than once in a direction'
import sys
def read(path):
    words = open(path).read().split()
    return dict(zip(words[1::2], map(int, words[::2])))
none, three = map(read, sys.argv[1:])
gather, reduce = '"stablehlo.all_gather"', '"stablehlo.all_reduce"'
assert none.get(gather, 0) == 0 and three[gather] == 3, three
assert three[reduce] - none[reduce] == 3, (none, three)
PY
ok train mnist_cnn --data "$data" --batch-size 32 --seed 3 --device pjrt:cpu:2 --batch-norm replica
fails 2 train mnist_cnn --data "$data" --device pjrt:cpu:2 --replicas 3
warns 'the number of devices in its name is 2'
fails 2 train mnist_cnn --data "$data" --device pjrt:cpu --virtual-devices 2 --replicas 3
warns '3 replicas requested, but pjrt:cpu has 2 devices'
ok devices --device pjrt:cpu --virtual-devices 3
[ "$(grep -c '^pjrt:cpu  /device:CPU:' out)" = 3 ] || fail 'not three devices'
