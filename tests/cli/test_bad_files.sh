#!/usr/bin/env bash
# Files that are missing, unreadable, empty, or folders: named, with what is wrong, by every command.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/idx.sh"
data='generated:digits?n=64'
ok train linear --data "$data" --model-dir run --steps 1

mkdir empty
: >nothing.tfrecord
: >nothing.tar
for source in missing 'missing/train-*' empty nothing.tfrecord nothing.tar; do
    for command in "train linear" "evaluate run" "predict run"; do
        fails 1 $command --data "$source"
        warns "${source%%/*}"
    done
done
fails 1 train linear --data "$data" --eval-data missing --model-dir fresh
warns missing
[ ! -e fresh ] || fail 'a model-dir was begun without its data'
for command in evaluate predict; do
    fails 1 $command missing --data "$data"
    warns 'missing is not a run directory'
    fails 1 $command empty --data "$data"
    warns 'empty is not a run directory'
done
fails 1 export missing --out m
warns 'missing is not a run directory'
[ ! -e m ] || fail 'something was exported'
for command in show "data show" "data verify" "data take --out x.npy"; do
    fails 1 $command missing
    warns missing
done
fails 1 run missing --image "$SEXTANT_SRC/fuzz/corpus/jpeg/rgb.jpg"
warns missing
fails 1 predict run --image missing.jpg
warns 'missing.jpg: No such file'
fails 1 predict run --image empty
warns 'empty: Is a directory'
fails 1 data from-idx missing empty --out x
warns 'missing: No such file'
fails 1 predict run --data "$data" --out no/such/folder/p.csv
warns 'no/such/folder'
echo plain >plain
fails 1 train linear --data "$data" --model-dir plain/run --steps 1
warns 'plain'
grep -qx plain plain || fail 'a file was replaced by a folder'

# libarchive is loaded with the first archive.
mkdir none
echo >none/libarchive.so.13
tar cf run.tar run
LD_LIBRARY_PATH=$here/none fails 1 data from-images run.tar --out y
warns "run.tar: $here/none/libarchive.so.13: "
warns "libarchive.so.13 is part of Debian's package libarchive13"
LD_LIBRARY_PATH=$here/none ok data show "$data"

# Unreadable: root reads everything, so root asks as somebody else.
idx t 20
ok data from-idx t-images-idx3-ubyte t-labels-idx1-ubyte --out r
chmod 755 .
chmod 000 r-00000-of-00001
if [ "$(id -u)" = 0 ]; then
    printf '#!/bin/sh\nexec setpriv --reuid=65534 --regid=65534 --clear-groups "$SEXTANT_BIN" "$@"\n' >asked
    chmod 755 asked
    sextant=./asked
fi
fails 1 train linear --data 'r-*'
warns 'r-00000-of-00001: Permission denied'
