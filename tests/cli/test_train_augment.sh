#!/usr/bin/env bash
# Augmentations: of a model's own fields, and --augment, which takes their place; the run records them.
. "$SEXTANT_SRC/tests/cli/lib.sh"
cat >net.c <<'C'
#include <sextant/model.h>
static sx_spec net(sx_builder *b, const sx_batch *in, const sx_params *p)
{
    return sx_classifier_spec(b, sx_dense(b, sx_flatten(b, in->features), 5), in->labels);
}
SX_MODEL(net, .build = net, .image = {16, 16, 3}, .scale = SX_MINUS1_1, .augment = SX_FLIP_LEFT_RIGHT,
         .random_crop = 4, .random_brightness = .25f, .random_contrast = {.5f, 1.5f})
C
data='generated:flowers?n=12&size=24'
train() { # DIR OPTIONS
    local dir=$1
    shift
    ok train ./net.c --data "$data" --model-dir "$dir" --steps 4 --batch-size 4 --seed 3 "$@"
    losses=$(grep '^Loss' out)
}
has() { # DIR FIELD VALUE, of the run's preprocessing
    python3 - "$@" <<'PY' || fail "$1: $2 is not $3"
import json, sys
path, field, value = sys.argv[1:]
assert json.load(open(path + "/sextant.json"))["preprocess"][field] == json.loads(value)
PY
}
train own
own=$losses
has own flip_left_right true
has own extra_height 4
has own crop '"random"'
has own brightness_max_delta 0.25
has own contrast_upper 1.5
has own zoom 0.0
train same --augment flip_left_right,crop=4,brightness=.25,contrast=.5:1.5
[ "$losses" = "$own" ] || fail "the same augmentations give other losses than $own"
train other --augment flip_left_right,zoom=.3,shear=10
has other crop '"center"'
has other shear_degrees 10.0
has other brightness_max_delta 0.0
[ "$losses" != "$own" ] || fail 'other augmentations give the same losses'
train none --augment none
has none flip_left_right false
# A run keeps its own when it is resumed, which is said, or refused by --require-exact.
resume='train ./net.c --model-dir other --steps 1 --batch-size 4 --seed 3'
ok $resume --data "$data" --augment flip_left_right,zoom=.3,shear=10 --require-exact
warns_not warning
ok $resume --data "$data" --augment none
warns 'warning: the augmentation is none, but the run was started with flip_left_right,shear=10,zoom=0.3, which is kept'
has other shear_degrees 10.0
fails 1 $resume --data "$data" --augment none --require-exact
warns 'cannot resume exactly: the augmentation is none, but the run was started with'
ok $resume --data "$data" --recipe simple --augment flip_left_right,zoom=.3,shear=10
warns 'warning: the run was started with different preprocessing (recipe, scale), which is kept'
fails 1 $resume --data "$data" --augment flip_left_right,zoom=.3,shear=10 --require-exact --learning-rate 7
warns 'cannot resume exactly: the learning rate is 7, but the run was started with'
fails 2 train ./net.c --data "$data" --steps 1 --augment flip
warns 'unknown augmentation "flip"'
ok zoo ./net.c
says_line '  augment  flip_left_right,crop=4,brightness=0.25,contrast=0.5:1.5'
