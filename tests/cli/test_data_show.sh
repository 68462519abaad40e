#!/usr/bin/env bash
# The whole output of `sextant data show` for each kind of data.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/idx.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
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
  image: <JPEG 8x8, 1 channels, 357 bytes>
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
python3 - "$SEXTANT_SRC/fuzz/corpus/jpeg/gray.jpg" <<'P'
import struct, sys
def npy(name, descr, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    with open(name, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)
npy("x.npy", "<f4", "(4, 2)", struct.pack("<8f", *range(8)))
npy("y.npy", "<i8", "(4,)", struct.pack("<4q", 0, 1, 1, 2))

table = []
for c in range(256):
    for _ in range(8):
        c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
    table.append(c)
def masked(data):
    c = 0xFFFFFFFF
    for byte in data:
        c = c >> 8 ^ table[(c ^ byte) & 255]
    c ^= 0xFFFFFFFF
    return (c >> 15 | c << 17) + 0xA282EAD8 & 0xFFFFFFFF
def varint(v):
    v &= 2**64 - 1
    out = b""
    while v > 127:
        out, v = out + bytes([v & 127 | 128]), v >> 7
    return out + bytes([v])
def field(n, data):
    return bytes([n << 3 | 2]) + varint(len(data)) + data
def feature(key, kind, packed):
    return field(1, field(1, key) + field(2, field(kind, packed)))
def texts(*values):
    return b"".join(field(1, v) for v in values)
example = field(1, b"".join([
    feature(b"a_text", 1, texts(b"x" * 60)),
    feature(b"b_text", 1, texts(b"y" * 61)),
    feature(b"c_bytes", 1, texts(b"\x00\x01", b"")),
    feature(b"d_floats", 2, field(1, struct.pack("<3f", 0.1, -2.5, 1e10))),
    feature(b"e_eight", 3, field(1, b"".join(varint(v) for v in [-1, 0, 1, 2, 3, 4, 5, 2**40]))),
    feature(b"f_nine", 3, field(1, b"".join(varint(v) for v in range(9)))),
    feature(b"g_none", 1, b""),
    feature(b"image", 1, texts(open(sys.argv[1], "rb").read())),
]))
with open("e.tfrecord", "wb") as f:
    size = struct.pack("<Q", len(example))
    f.write(size + struct.pack("<I", masked(size)) + example + struct.pack("<I", masked(example)))
P
ok data show e.tfrecord
is <<'T'
1 records in 1 file; image: image, JPEG; no labels
e.tfrecord: record 0
  a_text (bytes): "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
  b_text (bytes): "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"...
  c_bytes (bytes): <2 bytes>, <0 bytes>
  d_floats (float): 0.100000001, -2.5, 1e+10
  e_eight (int64): -1, 0, 1, 2, 3, 4, 5, 1099511627776
  f_nine (int64): 0, 1, 2, 3, 4, 5, 6, 7, ... (9 values)
  g_none (bytes): 
  image (bytes): <JPEG 8x8, 1 channels, 357 bytes>
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
  image/encoded (bytes): <JPEG 8x8, 1 channels, 357 bytes>
  image/filename (bytes): "tulip-1.jpg"
  image/format (bytes): "JPEG"
  image/height (int64): 8
  image/width (int64): 8
T
