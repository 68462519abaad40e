#!/usr/bin/env bash
# Every model of the zoo compiles for tpu:v5e:2x2 at batch 1024 and fits; the largest batch is found
# where that takes few minutes.
set -uo pipefail
. "$SEXTANT_SRC/tests/tpu/zoo.sh"
failed=0
for model in ${MODELS:-$("$SEXTANT_BIN" zoo | awk 'NR > 1 { print $1 }')}; do
    case $model in
    mnist_cnn | flowers_cnn) zoo_model "$model" --find-largest-batch || failed=1 ;;
    *) zoo_model "$model" || failed=1 ;;
    esac
done
exit $failed
