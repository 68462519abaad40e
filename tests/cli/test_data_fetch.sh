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
# What an earlier call left is checked, too.
ok data fetch "file://$PWD/plain.txt" --dir got --sha256 "$(sha256sum plain.txt | cut -d ' ' -f 1)"
says 'plain.txt already exists'
fails 3 data fetch "file://$PWD/plain.txt" --dir got --sha256 "$sum"
warns "got/plain.txt already exists, with SHA-256 $(sha256sum plain.txt | cut -d ' ' -f 1), expected $sum"
fails 3 data fetch "file://$PWD/photos.tgz" --dir got --sha256 "$(printf %064d 1)"
warns 'has SHA-256'
# A damaged archive is not kept: once it is whole on the server, it is downloaded again.
tar cf photos.tar photos
head -c 1000 photos.tar >cut.tar
fails 3 data fetch "file://$PWD/cut.tar" --dir cut
warns 'cut.tar'
mv photos.tar cut.tar
ok data fetch "file://$PWD/cut.tar" --dir cut
diff -r photos cut/photos
# A checksum that is none is refused before anything is downloaded.
fails 2 data fetch "file://$PWD/photos.tgz" --dir none --sha256 "${sum}0"
warns "--sha256 is \"${sum}0\", expected 64 hexadecimal digits"
fails 2 data fetch "file://$PWD/photos.tgz" --dir none --sha256 "${sum%?}g"
warns "expected 64 hexadecimal digits"
fails 2 data fetch flowers --dir none --sha256 "$sum"
warns '--sha256 is for URLs'
[ ! -e none ] || fail 'a directory was made'
fails 2 data fetch flowrs --dir x
warns 'did you mean "flowers"'
fails 1 data fetch "file://$PWD/nothing" --dir x
warns nothing
[ -z "$(find x -type f)" ] || fail 'an empty download was left'
