#!/usr/bin/env bash
# The whole output of `sextant data show` for each kind of data.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/idx.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
. "$SEXTANT_SRC/tests/cli/records.sh"
idx t 3
ok data show t-images-idx3-ubyte,t-labels-idx1-ubyte
is <<'T'
t-images-idx3-ubyte: IDX, image: uint8[3,28,28,1]; 3 classes, labels from 0 (highest: 2, example 2)
t-images-idx3-ubyte: row 0
  image: uint8[28,28,1]
  label: 0
  class: 0
t-images-idx3-ubyte: row 1
  image: uint8[28,28,1]
  label: 1
  class: 1
T
photos 3
ok data show photos --count 2
is <<'T'
photos: 9 images in 3 class folders
photos/daisy/daisy-0.jpg
  image: <JPEG 9x12, 3 channels, 695 bytes>
  label: 0
  class: daisy
photos/daisy/daisy-1.jpg
  image: <JPEG 8x8, 1 channel, 357 bytes>
  label: 0
  class: daisy
T
ok data show 'generated:digits?n=5' --count 1
is <<'T'
generated digits: 5 of uint8[28,28,1], seed 1; 10 classes
generated:digits: number 0
  image: uint8[28,28,1]
  label: 1
  class: 1
T

# Eight values of a list are shown, 60 bytes of a text; bytes that are no text are counted.
with_tfrecord "$SEXTANT_SRC/fuzz/corpus/jpeg/gray.jpg" <<'P'
import struct, sys
from tfrecord import *
def npy(name, descr, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    with open(name, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)
npy("x.npy", "<f4", "(4, 2)", struct.pack("<8f", *range(8)))
npy("y.npy", "<i8", "(4,)", struct.pack("<4q", 0, 1, 1, 2))
write("e.tfrecord", [example(
    feature(b"a_text", BYTES, texts(b"x" * 60)),
    feature(b"b_text", BYTES, texts(b"y" * 61)),
    feature(b"c_bytes", BYTES, texts(b"\x00\x01", b"")),
    feature(b"d_floats", FLOATS, floats(0.1, -2.5, 1e10)),
    feature(b"e_eight", INTS, ints(-1, 0, 1, 2, 3, 4, 5, 2**40)),
    feature(b"f_nine", INTS, ints(*range(9))),
    feature(b"g_none", BYTES, b""),
    feature(b"image", BYTES, texts(open(sys.argv[1], "rb").read())),
)])
P
ok data show e.tfrecord
is <<'T'
1 record in 1 file; image: image, JPEG; no labels
e.tfrecord: record 0
  a_text (bytes): "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
  b_text (bytes): "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"...
  c_bytes (bytes): <2 bytes>, <0 bytes>
  d_floats (float): 0.100000001, -2.5, 1e+10
  e_eight (int64): -1, 0, 1, 2, 3, 4, 5, 1099511627776
  f_nine (int64): 0, 1, 2, 3, 4, 5, 6, 7, ... (9 values)
  g_none (bytes): 
  image (bytes): <JPEG 8x8, 1 channel, 357 bytes>
T
ok data show x.npy,y.npy
is <<'T'
x.npy: .npy, features: float32[4,2]; 3 classes, labels from 0 (highest: 2, example 3)
x.npy: row 0
  features: float32[2]
  label: 0
  class: 0
x.npy: row 1
  features: float32[2]
  label: 1
  class: 1
T
ok data from-images photos --out set --shards 1
ok data show 'set-*' --count 1
is <<'T'
9 records in 1 file; image: image/encoded, JPEG; label: image/class/label, from 0 (schema file); 3 classes: daisy, rose, tulip
set-00000-of-00001: record 0
  image/class/label (int64): 2
  image/class/text (bytes): "tulip"
  image/encoded (bytes): <JPEG 8x8, 1 channel, 357 bytes>
  image/filename (bytes): "tulip-1.jpg"
  image/format (bytes): "JPEG"
  image/height (int64): 8
  image/width (int64): 8
T

# More files than may be open at first.
mkdir many
for ((i = 0; i < 100; i++)); do echo '[0]' >many/$i.jsonl; done
(ulimit -Sn 64 && ok data show 'many/*.jsonl')
says 'JSON lines, 100'
