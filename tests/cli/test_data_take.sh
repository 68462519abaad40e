#!/usr/bin/env bash
# Examples as .npy; drawn data are the same every time.
. "$SEXTANT_SRC/tests/cli/lib.sh"
ok data take 'generated:digits?n=50' --count 3 --out a.npy
says_line 'a.npy: 3 examples'
ok data take 'generated:digits?n=50' --count 3 --out b.npy
cmp a.npy b.npy
ok data take 'generated:digits?n=50' --skip 1 --count 3 --out b.npy
! cmp -s a.npy b.npy || fail 'another range, the same file'
[ "$(stat -c %s a.npy)" = $((128 + 3 * 784)) ] || fail 'size of a.npy'
fails 1 data take 'generated:digits?n=50' --skip 49 --count 3 --out c.npy
fails 2 data take 'generated:digits?n=50' --count 0 --out c.npy
warns '--count is 0, expected 1 to'
ok data take 'generated:digits?n=50' --count 2 --size 32 --channels 1 --out d.npy
[ "$(stat -c %s d.npy)" = $((128 + 2 * 32 * 32 * 4)) ] || fail 'size of d.npy'
# No file is replaced but an array, and labels get a file of their own.
printf 'notes' >notes.txt
fails 1 data take 'generated:digits?n=50' --out notes.txt
warns 'notes.txt already exists and is not a .npy file; remove it first'
fails 1 data take 'generated:digits?n=50' --out c.npy --labels notes.txt
[ "$(cat notes.txt)" = notes ] || fail 'notes.txt was replaced'
fails 1 data take 'generated:digits?n=50' --out c.npy --labels c.npy
warns 'c.npy: expected different files for examples and labels'
[ ! -e c.npy ] || fail 'c.npy was written'
: >empty
ok data take 'generated:digits?n=50' --count 3 --out empty --labels l.npy
cmp a.npy empty
