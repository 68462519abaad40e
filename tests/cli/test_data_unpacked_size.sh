#!/usr/bin/env bash
# A small archive that decompresses to much is refused before it fills the memory; the refusal says the limit and
# the option that raises it.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
python3 - <<'END'
import zipfile
with zipfile.ZipFile("zeros.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as z:
    for i in range(9): z.writestr(f"{'ab'[i % 2]}/{i}.jpg", bytes(32 << 20))
END
[ "$(stat -c %s zeros.zip)" -lt 2000000 ] || fail 'the archive is not small'
fails 5 data from-images zeros.zip --out data/x --skip-corrupt
warns 'sextant data from-images: zeros.zip: decompresses to more than 256.0 MiB'
warns_not 'unpack the archive'
warns '100 times'
warns '--max-unpacked-size'
[ ! -e data ] || fail 'something was written'
fails 3 data from-images zeros.zip --out data/x --max-unpacked-size 288M
warns '9 of 9 images cannot be decoded'

photos 3
python3 -c 'import shutil; shutil.make_archive("photos", "zip", ".", "photos")'
ok data from-images photos.zip --out data/x
fails 5 data from-images photos.zip --out data/y --max-unpacked-size 100
warns 'more than 100 bytes'
fails 5 data show photos.zip --max-unpacked-size 1K
warns 'more than 1.0 KiB'
