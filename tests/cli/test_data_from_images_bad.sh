#!/usr/bin/env bash
# Bad sources name what is wrong, and write nothing.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
fails 1 data from-images nowhere/ --out data/x
warns nowhere
mkdir empty
fails 1 data from-images empty --out data/x
warns empty
photos 3
printf 'this is no picture' >photos/rose/rose-9.jpg
fails 3 data from-images photos --out data/x
warns 'rose/rose-9.jpg'
[ ! -e data/x-00000-of-00001 ] || fail 'files were left'
rm photos/rose/rose-9.jpg
fails 2 data from-images photos --out data --split train=.8,val=.8
warns_line 'sextant data from-images: --split: invalid split "train=.8,val=.8": the fractions add up to more than 1; expected, for example, train=.8,val=.1,test=.1'
fails 2 data from-images photos --out data/
warns_line 'sextant data from-images: --out is "data/", expected a prefix of file names, such as data/train, or a directory with --split'
fails 2 data from-images photos
warns '--out PATH is required'
fails 2 data from-images --out data
warns 'expected SOURCE'
fails 2 data from-images photos --out data --shards 0
warns '--shards is 0, expected 1 to 100000'
