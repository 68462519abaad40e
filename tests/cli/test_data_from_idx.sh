#!/usr/bin/env bash
# An IDX pair becomes records in either form; gzip is seen through.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/idx.sh"
idx t 20
gzip t-images-idx3-ubyte
ok data from-idx t-images-idx3-ubyte.gz t-labels-idx1-ubyte --out data/raw
says 'data/raw: 20 records in 1 file'
ok data show 'data/raw-*' --count 1
says 'image_raw (bytes): <784 bytes>'
ok data from-idx t-images-idx3-ubyte.gz t-labels-idx1-ubyte --out data/png --format png
ok data show 'data/png-*' --count 1
says 'image/encoded (bytes): <PNG 28x28, 1 channel'
ok data take 'data/raw-*' --count 20 --out raw.npy --labels raw-labels.npy
ok data take 'data/png-*' --count 20 --out png.npy --labels png-labels.npy
cmp raw.npy png.npy && cmp raw-labels.npy png-labels.npy || fail 'the two forms differ'
ok data take t-images-idx3-ubyte.gz,t-labels-idx1-ubyte --count 20 --out idx.npy
cmp raw.npy idx.npy || fail 'the IDX file itself differs'
fails 1 data from-idx t-images-idx3-ubyte.gz t-images-idx3-ubyte.gz --out data/x
fails 2 data from-idx t-images-idx3-ubyte.gz --out data/x
warns 'expected IMAGES LABELS'
