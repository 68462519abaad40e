#!/usr/bin/env bash
# Files made to do harm: names that would command the terminal, links into nowhere, pictures and
# arrays that claim or expand to gigabytes, archives that are cut off.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
. "$SEXTANT_SRC/tests/cli/records.sh"

# no_controls: neither output has a control character but newline.
no_controls() {
    ! LC_ALL=C grep -q $'[\x01-\x09\x0b-\x1f\x7f]' out err || fail 'a control character was printed'
    ! LC_ALL=C grep -q $'\xc2[\x80-\x9f]' out err || fail 'a C1 control character was printed'
}

# ---- Control characters ----
with_tfrecord "$SEXTANT_SRC/fuzz/corpus/jpeg/rgb.jpg" <<'P'
import sys
from tfrecord import *
image = open(sys.argv[1], "rb").read()
write("escape.tfrecord", [example(
    feature(b"image/encoded", BYTES, texts(image)),
    feature(b"image/class/label", INTS, ints(0)),
    feature(b"image/class/text", BYTES, texts(b"\x1b[31mred\x07\n\xc2\x9b2Jclass")),
    feature(b"\x1b]0;title\x07key", BYTES, texts(b"\xc2\x9b2Jplain")))])
P
ok data show escape.tfrecord --count 1
no_controls
says '1 class: ?[31mred???2Jclass'
says '  ?]0;title?key (bytes): "?2Jplain"'
photos 3
escape=$'photos/\e[5mblink'
mkdir "$escape"
cp photos/rose/rose-0.jpg "$escape/"
printf 'not a picture' >"$escape/bad.jpg"
fails 3 data from-images photos --out o/all
no_controls
warns 'photos/?[5mblink/bad.jpg: not an image'
ok data from-images photos --out o/all --skip-corrupt
no_controls
ok data show 'o/all-*' --count 20
no_controls
rm -r "$escape" o

# ---- One image that cannot be used ----
ln -s nowhere photos/rose/dangling.jpg
ln -s /dev/zero photos/rose/endless.jpg
python3 - <<'P'
import struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
with open("photos/tulip/huge.png", "wb") as f:
    f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b""))
P
fails 3 data from-images photos --out o/all
warns 'photos: 3 of 12 images cannot be decoded (--skip-corrupt skips them):'
warns '  cannot open photos/rose/dangling.jpg: No such file or directory'
warns '  photos/rose/endless.jpg: not a regular file'
warns '  photos/tulip/huge.png: image of 60000x60000 pixels is larger than the limit'
[ ! -e o ] || [ -z "$(ls o)" ] || fail 'files were left'
ok data from-images photos --out o/all --skip-corrupt
says 'o/all: 9 records'
rm photos/rose/{dangling,endless}.jpg photos/tulip/huge.png

# ---- Cut archives ----
python3 - <<'P'
import os, zipfile
with zipfile.ZipFile("whole.zip", "w") as z:
    for folder, _, names in os.walk("photos"):
        for name in names:
            z.write(os.path.join(folder, name))
    offsets = sorted(i.header_offset for i in z.infolist())
data = open("whole.zip", "rb").read()
open("members.zip", "wb").write(data[:offsets[5]])  # five whole members
open("directory.zip", "wb").write(data[:-10])
P
ok data show whole.zip --count 0
says '9 images in 3 class folders'
for file in members.zip directory.zip; do
    fails 3 data show $file
    warns "$file: "
    fails 3 data from-images $file --out o/cut
done

# ---- Arrays ----
python3 - <<'P'
import gzip, struct
def idx(name, kind, dims, data, opener=open):
    with opener(name, "wb") as f:
        f.write(bytes([0, 0, kind, len(dims)]) + struct.pack(">%dI" % len(dims), *dims) + data)
idx("images", 8, [3, 2, 2], bytes(12))
idx("labels", 8, [3], bytes(3))
idx("negative", 12, [3], struct.pack(">3i", 1, -5, 0))
idx("thin", 8, [3, 0, 2], b"")
idx("claims", 8, [2**32 - 1] * 3, b"x")
idx("expands.gz", 8, [3, 2, 2], bytes(64 << 20), gzip.open)
head = "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }"
head += " " * (63 - (10 + len(head)) % 64) + "\n"
with open("lowest.npy", "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
            + struct.pack("<3q", -2**63, 0, 1))
head = head.replace("(3,)", "(3037000500, 3037000500, 8)").rstrip() + "\n"
with open("claims.npy", "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
P
fails 1 data from-idx images negative --out o/idx
warns 'negative: label -5 of example 1 is negative'
fails 1 data from-idx thin labels --out o/idx
warns 'thin: images without pixels: uint8[0,2,1]'
fails 3 data from-idx claims labels --out o/idx
warns 'claims: IDX uint8[4294967295,4294967295,4294967295] is larger than any file'
fails 3 data show claims.npy
warns 'claims.npy: int64[3037000500,3037000500,8] is larger than any file'
fails 3 data from-idx expands.gz labels --out o/idx
warns 'expands.gz: IDX uint8[3,2,2] needs 12 bytes, the file has more'
fails 1 data show lowest.npy,lowest.npy --label-base 1
warns 'lowest.npy: the label of example 0 is too small'
! ls o/idx* >/dev/null 2>&1 || fail 'files were left'
