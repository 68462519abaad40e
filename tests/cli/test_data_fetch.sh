#!/usr/bin/env bash
# Addresses are fetched, checked and unpacked; a second call has nothing to do.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
photos 2
tar czf photos.tgz photos
sum=$(sha256sum photos.tgz | cut -d ' ' -f 1)
ok data fetch "file://$PWD/photos.tgz" --dir got --sha256 "$sum"
says_line 'unpacked photos.tgz into got'
diff -r photos got/photos
ok data fetch "file://$PWD/photos.tgz" --dir got
says 'photos.tgz already exists'
ok data show got --count 0
says '6 images in 3 class folders'
fails 3 data fetch "file://$PWD/photos.tgz" --dir other --sha256 "$(printf %064d 1)"
warns "$sum"
[ ! -e other/photos ] || fail 'unpacked all the same'
printf 'hello' >plain.txt
ok data fetch "file://$PWD/plain.txt" --dir got
[ "$(cat got/plain.txt)" = hello ] || fail 'plain file'
fails 1 data fetch flowrs --dir x
warns 'did you mean "flowers"'
fails 1 data fetch "file://$PWD/nothing" --dir x
warns nothing
