#!/usr/bin/env bash
# Truncated and bit-flipped records: file, record number, offset; --skip-corrupt counts them.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/idx.sh"
idx t 20
ok data from-idx t-images-idx3-ubyte t-labels-idx1-ubyte --out d --format raw
file=d-00000-of-00001
size=$(stat -c %s $file)
record=$((size / 20))
[ $((record * 20)) = "$size" ] || fail 'the records are not of one size'
cp $file good
ok train linear --data $file --model-dir run --epochs 1 --batch-size 4
checksums() { find run -type f -exec sha256sum {} + | sort; }
hash=$(checksums)

# all NUMBER OFFSET LEFT RECORDS: every command names record and offset, or leaves out and counts.
all() {
    local number=$1 offset=$2 left=$3 records=$4
    rm -rf .sextant cache
    fails 3 train linear --data $file
    warns "$file: record $number at offset $offset"
    for command in evaluate predict; do
        fails 3 $command run --data $file
        warns "$file: record $number at offset $offset"
    done
    fails 3 data verify $file
    warns "$file: record $number"
    warns "offset $offset"
    ok train linear --data $file --skip-corrupt --epochs 1
    warns "skipped $records corrupt record"
    ok evaluate run --data $file --skip-corrupt --json
    warns "skipped $records corrupt record"
    says "\"examples\": $left,"
    ok predict run --data $file --skip-corrupt --out p.csv
    says_line "p.csv: $left rows"
}
printf '\xff' | dd of=$file bs=1 seek=$((record * 3 + 200)) conv=notrunc status=none # its data
all 3 $((record * 3)) 19 1
cp good $file
printf '\xff' | dd of=$file bs=1 seek=$((record * 7 + 9)) conv=notrunc status=none # its length's CRC
all 7 $((record * 7)) 19 0
head -c $((size - 10)) good >$file
all 19 $((record * 19)) 19 0
head -c $((record * 5 + 6)) good >$file
all 5 $((record * 5)) 5 0
[ "$hash" = "$(checksums)" ] || fail 'the run has changed'
cp good $file
ok evaluate run --data $file --json
says '"examples": 20,'

