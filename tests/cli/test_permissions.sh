#!/usr/bin/env bash
# Files and directories that the user may not read or write: each is named, with the reason, and an
# unreadable checkpoint is not taken for a damaged one.
. "$SEXTANT_SRC/tests/cli/lib.sh"
data='generated:digits?n=8'
ok train linear --data "$data" --steps 2 --save-checkpoints-steps 1 --model-dir run
cp -r run closed
mkdir -p photos/a photos/b secret
cp "$SEXTANT_SRC/fuzz/corpus/jpeg/rgb.jpg" photos/a/1.jpg
cp photos/a/1.jpg photos/b/1.jpg
chmod 000 run/model.ckpt-2.data-00000-of-00001 photos/b secret
if [ "$(id -u)" = 0 ]; then # permissions do not bind root
    command -v setpriv >/dev/null || { echo 'SKIP: setpriv is missing'; exit 77; }
    chmod a+rwx "$here" run run/.backup run/best 2>/dev/null || true
    chmod -R a+rwX run/graphs
    chmod a+rw run/*.json run/checkpoint
    cp "$sextant" "$here/program"
    printf '#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups %s/program "$@"\n' "$here" >as-nobody
    chmod a+rx as-nobody program
    sextant=$here/as-nobody
fi
trap 'chmod -R u+rwX "$here"; rm -rf "$here"' EXIT
refuses() { # CODE REASON WORDS...
    fails "$1" "${@:3}"
    warns "$2"
}
refuses 1 'run/model.ckpt-2.data-00000-of-00001: Permission denied' evaluate run --data "$data"
warns_not 'damaged'
refuses 1 'Permission denied' train linear --data "$data" --model-dir run --max-steps 3
warns_not 'skipping a broken checkpoint'
[ -e run/model.ckpt-2.index ] && [ ! -e run/model.ckpt-3.index ] || fail 'training went on from another checkpoint'
refuses 1 'run/model.ckpt-2.data-00000-of-00001: Permission denied' train linear --data "$data" --steps 1 --warm-start-from run
ok evaluate run --data "$data" --checkpoint 1
refuses 1 'cannot list secret: Permission denied' train linear --data "$data" --model-dir secret
refuses 1 'secret/sextant.json: Permission denied' evaluate secret --data "$data"
refuses 1 'cannot list secret: Permission denied' run secret --image photos/a/1.jpg
refuses 1 'cannot list photos/b: Permission denied' data from-images photos --out out
# An image that cannot be read is not a corrupt one, which could be skipped.
chmod 755 photos/b
chmod 000 photos/b/1.jpg
for skip in '' --skip-corrupt; do
    # shellcheck disable=SC2086
    refuses 1 'cannot open photos/b/1.jpg: Permission denied' data from-images photos --out out $skip
    warns_not 'corrupt'
    warns_not 'decoded'
done
refuses 1 'cannot open photos/b/1.jpg: Permission denied' train mnist_cnn --data photos --skip-corrupt
chmod 644 photos/b/1.jpg
chmod 000 photos/b
refuses 1 'photos/b/1.jpg: Permission denied' predict run --checkpoint 1 --image photos/b/1.jpg

# A run that cannot be written to is refused before a step is trained.
chmod -R a+rX closed
chmod 555 closed
refuses 1 'save checkpoints in closed: Permission denied' train linear --data "$data" --model-dir closed --max-steps 3
says_not 'Training for'
ok evaluate closed --data "$data"
