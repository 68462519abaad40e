#!/usr/bin/env bash
# Class folders, or a .tar of them, become record files that show and verify read.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
photos 10
ok data from-images photos/ --out data/ --split train=.8,val=.1,test=.1 --shards 2
says_line "$(grep '^data/train: 24 records in 2 files' out)"
[ "$(ls data | tr '\n' ' ')" = 'test-00000-of-00002 test-00001-of-00002 train-00000-of-00002 train-00001-of-00002 val-00000-of-00002 val-00001-of-00002 ' ] || fail "$(ls data)"
quiet
ok data show 'data/train-*' --count 1
says '24 records in 2 files'
says '3 classes: daisy, rose, tulip'
says 'image/class/text (bytes): "'
ok data verify 'data/*-of-*' --decode
says '30 records in 6 files'
says 'all good'
cp data/train-00000-of-00002 first
tar cf photos.tar -C photos daisy rose tulip
ok data from-images photos.tar --out again --split train=.8,val=.1,test=.1 --shards=2
cmp first again/train-00000-of-00002 || fail 'the same images from a .tar give other records'
