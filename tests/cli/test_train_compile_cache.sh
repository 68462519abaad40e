#!/usr/bin/env bash
# A program is compiled once: the second run takes it from the user's cache, unless told not to.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/pjrt.sh"
train() { # RUN_DIR OPTIONS...
    ok train mnist_cnn --data 'generated:digits?n=64' --device pjrt --steps 1 --model-dir "$@"
}
train run1
says 'Elapsed '
says_not '(from the cache)'
[ "$(ls cache/sextant/compiled | wc -l)" = 1 ] || fail 'one program is kept'
train run2
says '(from the cache)'
diff -r run1/model.ckpt-1.data-00000-of-00001 run2/model.ckpt-1.data-00000-of-00001 || fail 'other bits'
train run3 --no-compile-cache
says_not '(from the cache)'
train run4 --json-log
says '"from_cache":true'
says '"device":"/device:CPU:0"'
# what cannot be kept is told, and changes nothing
echo 'no folder' >file
XDG_CACHE_HOME=$PWD/file train run5
says_not '(from the cache)'
warns 'warning: compile cache: cannot store the program: '
diff -r run1/model.ckpt-1.data-00000-of-00001 run5/model.ckpt-1.data-00000-of-00001 || fail 'other bits'
