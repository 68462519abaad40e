#!/usr/bin/env bash
# The data commands as a user types them: class folders to records, looked at, checked, taken out.
set -euo pipefail
sextant=$SEXTANT_BIN
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"

fail() {
    echo "FAILED: $1" >&2
    exit 1
}
has() { grep -qF -- "$2" <<<"$1" || fail "expected \"$2\" in: $1"; }
refuses() { # code, part of the message, words of the command
    local code=0 output expected=$1 part=$2
    shift 2
    output=$("$sextant" "$@" 2>&1) || code=$?
    [ "$code" = "$expected" ] || fail "$* gave exit code $code, expected $expected: $output"
    has "$output" "$part"
}

# Forty PNG files in two class folders, in a tar.
python3 - <<'PY'
import os, struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for c, name in enumerate(["cats", "dogs"]):
    os.makedirs("photos/" + name)
    for i in range(20):
        rows = b"".join(b"\0" + bytes([i, c, 7] * 4) for _ in range(3))
        png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 4, 3, 8, 2, 0, 0, 0))
        png += chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
        open(f"photos/{name}/{i}.png", "wb").write(png)
PY
tar -cf photos.tar photos

has "$("$sextant" data from-images photos.tar --out data/ --split train=.75,test=.25 --shards 2)" \
    "data/train: 30 records in 2 files"
has "$("$sextant" data show 'data/train-*' --count 1)" "2 classes: cats, dogs"
has "$("$sextant" data show data/train-00000-of-00002 data/train-00001-of-00002 --count 0)" "30 records"
has "$("$sextant" data verify 'data/*' --decode)" "40 records in 4 files"
has "$("$sextant" data take 'data/test-*' --count 3 --out x.npy --labels y.npy)" "x.npy: 3 examples"
"$sextant" data take photos --skip 20 --count 20 --size 8 --out z.npy >/dev/null
python3 - <<'PY'
x, y, z = (open(n + ".npy", "rb").read() for n in "xyz")
assert b"'shape': (3, 3, 4, 3)" in x and b"'|u1'" in x, x[:80]
assert b"'shape': (3,)" in y and b"'<i8'" in y, y[:80]
assert b"'shape': (20, 8, 8, 3)" in z and b"'<f4'" in z, z[:80]
PY
has "$("$sextant" data fetch "file://$dir/photos.tar" --dir fetched)" "unpacked photos.tar"
has "$("$sextant" data fetch "file://$dir/photos.tar" --dir fetched)" "already exists"
has "$("$sextant" data show fetched --count 0)" "40 images in 2 class folders"

# One flipped bit.
printf '\x01' | dd of=data/train-00001-of-00002 bs=1 seek=60 conv=notrunc status=none
refuses 3 "data/train-00001-of-00002: record 0 at offset 0" data verify 'data/train-*'
refuses 3 "29 records in 2 files" data verify 'data/train-*' --skip-corrupt

refuses 1 'similar names: "photos' data show photso
refuses 1 "unknown data set" data show generated:dogs
refuses 2 "split" data from-images photos --out data --split train=2
refuses 2 "--shards" data from-images photos --out data --shards 0
refuses 2 "expected image=KEY" data show photos --feature picture=x
refuses 2 "did you mean \"flowers\"" data fetch flowrs --dir fetched
echo "no image" >photos/dogs/20.jpg
refuses 3 "photos/dogs/20.jpg: not an image: 9 bytes starting with 6e 6f 20 69" data from-images photos --out data/again
echo passed
