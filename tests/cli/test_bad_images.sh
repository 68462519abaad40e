#!/usr/bin/env bash
# Pictures that are none, or end too early: the record or the file is named.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/records.sh"
jpeg=$SEXTANT_SRC/fuzz/corpus/jpeg/rgb.jpg
records good.tfrecord "0=$jpeg" "1=$jpeg" "2=$jpeg"
ok train mnist_cnn --data good.tfrecord --steps 1 --model-dir run -- --num_classes 3
cp "$jpeg" rgb.jpg
ok predict run --image rgb.jpg

echo 'no picture at all' >none.jpg
head -c 200 "$jpeg" >cut.jpg
: >nothing.jpg
{ printf '\x89PNG\r\n\x1a\n' && head -c 100 /dev/zero; } >zeros.png
for picture in none.jpg nothing.jpg cut.jpg zeros.png; do
    records bad.tfrecord "0=$jpeg" "1=$picture" "2=$jpeg"
    for command in "train mnist_cnn --steps 1" "evaluate run" "predict run"; do
        fails 3 $command --data bad.tfrecord
        warns 'bad.tfrecord: record 1: '
    done
    fails 3 predict run --image rgb.jpg $picture
    warns "$picture"
done
records bad.tfrecord "0=$jpeg" "1=none.jpg"
fails 3 predict run --data bad.tfrecord
warns 'expected a JPEG (ff d8 ff) or PNG (89 50 4e 47)'
