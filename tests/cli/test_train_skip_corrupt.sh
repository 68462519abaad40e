#!/usr/bin/env bash
# Images in a class folder that cannot be used: an error that names one, or with --skip-corrupt left out, counted
# and named. Too large counts as corrupt.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
photos 4
cp -r photos good
printf 'this is no picture' >photos/rose/rose-8.jpg
: >photos/daisy/daisy-8.jpg
head -c 300 photos/tulip/tulip-0.jpg >photos/tulip/tulip-8.jpg
python3 - <<'END' # a PNG whose header says 60000 x 60000
import struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
with open("photos/rose/huge.png", "wb") as f:
    f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b""))
END
train() { ok train mnist_cnn --data "$1" --epochs 2 --batch-size 4 --seed 3 --model-dir "$2" "${@:3}"; }
run train mnist_cnn --data photos --epochs 1
[ "$code" != 0 ] || fail 'a corrupt image went unnoticed'
train photos skipping --skip-corrupt
warns 'skipped 4 corrupt images:'
for file in rose/rose-8.jpg daisy/daisy-8.jpg tulip/tulip-8.jpg rose/huge.png; do warns "photos/$file: "; done
train good whole
. "$SEXTANT_SRC/tests/cli/runs.sh"
same_variables skipping whole "$(ls whole | sed -n 's/^model.ckpt-\([0-9]*\).index$/\1/p' | sort -n | tail -n 1)"
ok evaluate skipping --data good --json
cp out expected
ok evaluate skipping --data photos --skip-corrupt --json
cmp out expected || fail 'other examples were scored'

fails 3 data from-images photos --out data/x
warns 'photos: 4 of '
warns 'huge.png'
ok data from-images photos --out data/x --skip-corrupt
says 'skipped 4 corrupt images:'
says 'photos/rose/huge.png: '

mkdir -p bad/a bad/b
for i in 1 2 3; do echo x >bad/a/$i.jpg; echo x >bad/b/$i.jpg; done
fails 3 train mnist_cnn --data bad --skip-corrupt
warns 'bad: none of 6 images can be decoded:'
