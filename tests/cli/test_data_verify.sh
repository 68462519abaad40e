#!/usr/bin/env bash
# A flipped byte and a cut file: file, record number, offset; --skip-corrupt counts.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/idx.sh"
idx t 20
ok data from-idx t-images-idx3-ubyte t-labels-idx1-ubyte --out d
ok data verify d-00000-of-00001
says '20 records in 1 file'
size=$(stat -c %s d-00000-of-00001)
record=$((size / 20))
cp d-00000-of-00001 good
printf '\xff\x00\xff' | dd of=d-00000-of-00001 bs=1 seek=$((record * 3 + 200)) conv=notrunc status=none
fails 3 data verify d-00000-of-00001
warns 'd-00000-of-00001: record 3'
warns "offset $((record * 3))"
fails 3 data verify d-00000-of-00001 --skip-corrupt
says '1 corrupt'
head -c $((size - 10)) good >d-00000-of-00001
fails 3 data verify d-00000-of-00001
warns 'record 19'
fails 2 data verify good --recursive
warns 'unknown option --recursive'
mkdir folder
fails 1 data verify folder
warns_line "sextant data verify: folder is a directory; expected TFRecord or CSV files, such as 'folder/*'"
tar cf some.tar good
fails 1 data verify some.tar
warns_line 'sextant data verify: some.tar is an archive; only TFRecord and CSV files can be verified'
fails 1 data verify t-images-idx3-ubyte
warns 't-images-idx3-ubyte is an IDX file'
fails 1 data verify nothing-here
warns nothing-here
