#!/usr/bin/env bash
# Folders as people have them: files that are no images, broken images, nested folders, odd names.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
photos 3
ok data from-images photos --out clean/all --shards 1
says_line 'photos: 9 images in 3 class folders'
: >photos/rose/Thumbs.db
echo hello >photos/rose/notes.txt
mkdir photos/rose/.cache photos/rose/__MACOSX
cp photos/rose/rose-0.jpg photos/rose/.cache/hidden.jpg
cp photos/rose/rose-0.jpg photos/rose/__MACOSX/ghost.jpg
echo hello >photos/README
ok data from-images photos/ --out plain/all --shards 1
says_line 'photos/: 9 images in 3 class folders; skipped 3 files that are not images'
cmp clean/all-00000-of-00001 plain/all-00000-of-00001 || fail 'the files beside the images change the records'

# Names that need care in CSV, HTML and terminals, and class names beyond ASCII.
class=$'b\xc3\xa4r, "der" <b>'
mkdir "photos/$class"
cp photos/rose/rose-0.jpg "photos/$class/a,\"b\" & 'c'.jpg"
cp photos/rose/rose-1.jpg "photos/$class/"$'\xe8\x8a\xb1 1.JPG'
mkdir -p "photos/$class/nested/deeper"
cp photos/rose/rose-2.png "photos/$class/nested/1.png"
cp photos/rose/rose-2.png "photos/$class/nested/deeper/2.PnG"
ok data from-images photos --out flat/all
says_line 'photos: 11 images in 4 class folders; skipped 3 files that are not images, 2 images in nested folders (--recursive includes them)'
ok data from-images photos --out deep/all --recursive
says_line 'photos: 13 images in 4 class folders; skipped 3 files that are not images'
ok data verify 'deep/all-*' --decode
ok data show 'deep/all-*' --count 13
says "image/class/text (bytes): \"$class\""
says $'image/filename (bytes): "\xe8\x8a\xb1 1.JPG"'
says "image/filename (bytes): \"a,\"b\" & 'c'.jpg\""
tar cf photos.tar photos
ok data from-images photos.tar --out tar/all --recursive
says_line 'photos.tar: 13 images in 4 class folders; skipped 3 files that are not images'
ok data show photos --recursive --count 0
says_line 'photos: 13 images in 4 class folders; skipped 3 files that are not images'

# A zip that marks its names as UTF-8, in any locale.
python3 - <<'END'
import zipfile
image = open("photos/rose/rose-0.jpg", "rb").read()
with zipfile.ZipFile("utf8.zip", "w") as z:
    for name in "rose/bl\u00fcte.jpg", "t\u00fclpe/\u82b1\U0001f33a.jpg": z.writestr(name, image)
END
for locale in C C.UTF-8; do
    LC_ALL=$locale ok data from-images utf8.zip --out utf8/$locale --shards 1
    says_line 'utf8.zip: 2 images in 2 class folders'
    ok data show "utf8/$locale-00000-of-00001" --count 2
    says $'"bl\xc3\xbcte.jpg"'
    says $'"\xe8\x8a\xb1\xf0\x9f\x8c\xba.jpg"'
    says $'t\xc3\xbclpe'
done

# A link to the folder itself, and folders 20 deep.
mkdir odd
cp -r photos/rose photos/tulip odd
rm -r odd/rose/{Thumbs.db,notes.txt,.cache,__MACOSX}
ln -s . odd/tulip/loop
unread='1 nested folder (more than 16 deep, or a link to a folder that contains it)'
ok data from-images odd --out odd-flat/all
says_line "odd: 6 images in 2 class folders; skipped $unread"
ok data from-images odd --out odd-deep/all --recursive
says_line "odd: 6 images in 2 class folders; skipped $unread"
rm odd/tulip/loop
mkdir -p odd/tulip/1/2/3/4/5/6/7/8/9/10/11/12/13/14/15/16/17/18/19/20
cp photos/rose/rose-0.jpg odd/tulip/1
ok data from-images odd --out odd-20/all
says_line "odd: 6 images in 2 class folders; skipped 1 image in a nested folder (--recursive includes them), $unread"
fails 5 data from-images odd --out odd-20-deep/all --recursive
warns 'folders nested more than 16 deep'

# One of each.
mkdir -p single/rose
cp photos/rose/rose-0.jpg single/rose
ok data from-images single --out single-set/all
says_line 'single: 1 image in 1 class folder'

# Broken images are all named, and skipped when asked to.
: >photos/daisy/empty.jpg
printf 'x\n' >photos/daisy/tiny.jpg
head -c 300 photos/rose/rose-0.jpg >photos/daisy/cut.jpg
printf 'GIF89a\020\000\020\000' >photos/daisy/moving.gif
mkdir photos/daisy/folder.png
mkfifo photos/daisy/pipe.jpg
fails 3 data from-images photos --out bad/all
warns 'photos: 6 of 17 images cannot be decoded (--skip-corrupt skips them):'
warns '  photos/daisy/empty.jpg: empty file; expected a JPEG or PNG image'
warns '  photos/daisy/tiny.jpg: not an image: 2 bytes (78 0a); expected a JPEG (ff d8 ff) or PNG (89 50 4e 47)'
warns '  photos/daisy/cut.jpg: '
warns '  photos/daisy/moving.gif: unsupported format GIF; expected JPEG or PNG'
warns '  photos/daisy/folder.png: not a regular file'
warns '  photos/daisy/pipe.jpg: not a regular file'
[ ! -e bad/all-00000-of-00001 ] || fail 'files were left'
ok data from-images photos --out skip/all --skip-corrupt
says 'photos: 11 images in 4 class folders; skipped 3 files that are not images, 2 images in nested folders (--recursive includes them); skipped 6 corrupt images:'
says '  photos/daisy/cut.jpg: '
cmp flat/all-00000-of-00001 skip/all-00000-of-00001 || fail 'the records of the good images differ'
# Only their headers are checked with --no-decode.
rm -r photos/daisy/{empty.jpg,tiny.jpg,moving.gif,folder.png,pipe.jpg}
ok data from-images photos --out headers/all --no-decode
says 'photos: 12 images'
fails 3 data from-images photos --out headers/all
warns 'photos: 1 of 12 images cannot be decoded'
# A set of broken images alone.
rm -r photos/rose photos/tulip "photos/$class" photos/daisy/daisy-*
fails 3 data from-images photos --out none/all --skip-corrupt
warns 'photos: 1 of 1 images cannot be decoded:'
