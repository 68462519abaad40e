#!/usr/bin/env bash
# predict --model: a line of JSON for each example, in shards; several processes; continued after a kill.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
photos 8
ok train mnist_cnn --data photos --model-dir run --steps 2 --batch-size 4 --seed 1 -- --num_classes 3
ok export run --out models/m

# As the model answers alone, but for the last bits; the batch size and the shards change nothing.
ok predict --model models/m --data photos --out p --shards 3
says_line 'p: 3 of 3 shards, 24 examples'
[ "$(echo p/*)" = 'p/job.json p/prediction.results-00000-of-00003 p/prediction.results-00001-of-00003 p/prediction.results-00002-of-00003' ] ||
    fail "$(echo p/*)"
ok run models/m --image photos/rose/rose-0.jpg --json
python3 - <<'PY' || fail 'the rows are wrong'
import glob, json
rows = [json.loads(line) for path in sorted(glob.glob("p/*results*")) for line in open(path)]
assert [row["id"] for row in rows] == list(range(24))
assert rows[8]["file"] == "photos/rose/rose-0.jpg" and rows[8]["label"] == "rose"
is_, was = rows[8]["prediction"], json.load(open("out"))["predictions"][0]
assert is_["class"] == was["class"] and is_["classid"] == was["classid"]
assert all(abs(a - b) < 1e-6 for a, b in zip(is_["probabilities"], was["probabilities"]))
assert [len(open(path).readlines()) for path in sorted(glob.glob("p/*results*"))] == [8, 8, 8]
PY
cat p/*results* >all
ok predict --model models/m/1 --data photos --out one --shards 1 --batch-size 1
cmp one/*results* all || fail 'the batch size changes the rows'
ok predict --model models/m --data photos --out virtual --virtual-devices 3
cat virtual/*results* | cmp - all || fail 'devices that share a batch change the rows'

# More shards than examples: some are empty.
ok predict --model models/m --data photos --out empty --shards 25
says_line 'empty: 25 of 25 shards, 24 examples'
cat empty/*results-*-of-00025 | cmp - all || fail 'empty shards'

# Four processes at once share the work, and one that is killed leaves its shard to the others.
for i in 1 2 3 4; do
    "$sextant" predict --model models/m --data photos --out many --shards 24 --threads 1 -q &
done
wait
ok predict --model models/m --data photos --out many
says_line 'many: 24 of 24 shards, 24 examples'
cat many/*results* | cmp - all || fail 'several processes write other rows'
for shards in 1 5 10; do
    "$sextant" predict --model models/m --data photos --out killed --shards 24 -q &
    while kill -0 $! 2>/dev/null && [ "$(find killed -name '*results*' 2>/dev/null | wc -l)" -lt $shards ]; do
        sleep 0.01
    done
    kill -9 $! 2>/dev/null || true
    wait $! 2>/dev/null || true
done
touch killed/.prediction.results-00000-of-00024.tmp-0123456789abcdef # of one that was killed
ok predict --model models/m --data photos --out killed --shards 24
[ "$(find killed -name '.*')" = '' ] || fail "left: $(find killed -name '.*')"
says_line 'killed: 24 of 24 shards, 24 examples'
cat killed/*results* | cmp - all || fail 'what was killed and continued has other rows'

# Ctrl-C says how to go on.
for _ in $(seq 20000); do echo '[0]'; done >long.jsonl
"$sextant" predict --model models/m --data long.jsonl --out stopped --shards 1 --max-errors 20000 >out 2>err &
until [ -e stopped/job.json ] || ! kill -0 $!; do sleep 0.01; done
kill -INT $!
! wait $! || fail 'it was not stopped'
grep -qx 'stopped: 0 of 1 shard, 0 examples; .*' out || fail "$(cat out err)"
grep -q '; run the same command to continue' out || fail "$(cat out)"

# JSON lines, as the server takes them; an example that fails fails alone, and is named.
{
    printf '{"image_bytes": {"b64": "%s"}}\n\n' "$(base64 -w0 photos/rose/rose-0.jpg)"
    printf '{"b64": "AAAA"}\n'
    printf '{"b64": "%s"}\n' "$(base64 -w0 photos/daisy/daisy-2.png)"
} >lines.jsonl
fails 3 predict --model models/m --data lines.jsonl --out j
warns 'lines.jsonl: line 3: image 0: not an image'
ok predict --model models/m --data lines.jsonl --out j --max-errors 1
says_line 'j: 1 of 1 shard, 3 examples; 1 failed, see j/prediction.errors-*'
[ "$(cut -c 1-60 j/prediction.errors-*)" = '{"id": 1, "error": "image 0: not an image: 3 bytes (00 00 00' ] || fail "$(cat j/*errors*)"
[ "$(sed -n 1p j/*results* | cut -d , -f 2-)" = "$(sed -n 9p all | cut -d , -f 4-)" ] || fail 'JSON gives another row'
gzip -k lines.jsonl
ok predict --model models/m --data lines.jsonl.gz --out gz --max-errors 1
cmp j/*results* gz/*results* || fail 'compressed lines'

# A line that is half a value, or more than one, fails; the rows of the others stay theirs.
printf '\xef\xbb\xbf[%s\n0]\n[0], [0]\n[0]\n' 1 >lines.jsonl
ok predict --model models/m --data lines.jsonl --out half --max-errors 4 --signature tensors
for error in '{"id": 0, "error": "JSON Parse error: Missing a comma or ] after an array element. at offset: 2"}' \
    '{"id": 1, "error": "JSON Parse error: The document root must not be followed by other values. at offset: 1"}' \
    '{"id": 2, "error": "JSON Parse error: The document root must not be followed by other values. at offset: 3"}'; do
    grep -qF "$error" half/*errors* || fail "$(cat half/*errors*)"
done

# Records: the image in them; arrays under the input's name or any other.
ok data from-images photos --out records --shards 2
ok predict --model models/m --data 'records-*' --out r --shards 1
python3 - <<'PY' || fail 'records give other predictions'
import glob, json
rows = lambda pattern: sorted(json.dumps(json.loads(line)["prediction"]) for line in open(glob.glob(pattern)[0]))
assert rows("r/*results*") == rows("one/*results*")
PY
# One that cannot be read is an example that fails; so is each of several in a batch.
python3 - <<'PY'
import glob, struct
data = bytearray(open(sorted(glob.glob("records-00000*"))[0], "rb").read())
at = 0
for record in range(4):
    size = struct.unpack("<Q", data[at:at + 8])[0]
    if record in (1, 3):
        data[at + 12 + size // 2] ^= 1
    at += 12 + size + 4
open("damaged", "wb").write(data)
PY
fails 3 predict --model models/m --data damaged --out d --shards 1 --max-errors 1
warns 'damaged: record 3'
cp damaged from_first
ok predict --model models/m --data damaged --out d --shards 1 --max-errors 2
grep -q '; 2 failed, see d/prediction.errors-\*$' out || fail "$(cat out)"
grep -q '^{"id": 1, .*"error": ".*damaged: record 1' d/*errors* || fail "$(cat d/*errors*)"
grep -q '^{"id": 3, .*"error": ".*damaged: record 3' d/*errors* || fail "$(cat d/*errors*)"
sed -n 's/"file": "[^"]*", //; 1p; 3p' r/*results* >before
sed -n 's/"file": "[^"]*", //; 1,2p' d/*results* | cmp - before || fail 'another row beside those that cannot be read'
# The first one counts as any other.
python3 -c '
f = open("from_first", "r+b")
f.seek(12)
byte = f.read(1)[0]
f.seek(12)
f.write(bytes([byte ^ 1]))'
fails 3 predict --model models/m --data from_first --out f --shards 1 --max-errors 2
warns 'from_first: record 3'
ok predict --model models/m --data from_first --out f --shards 1 --max-errors 3
grep -q '^{"id": 0, .*"error": ".*from_first: record 0' f/*errors* || fail "$(cat f/*errors*)"
sed -n 's/"file": "[^"]*", //; 1p' f/*results* | cmp - <(sed -n 2p before) || fail 'another row than without the first one'
python3 - <<'PY'
import struct
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 28, 28, 1), }".ljust(117) + "\n"
open("x.npy", "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(head)) + head.encode() + struct.pack("<f", 0.25) * (3 * 28 * 28))
PY
ok predict --model models/m --data x.npy --signature tensors --out npy
[ "$(wc -l <npy/prediction.results-00000-of-00001)" = 3 ] || fail 'rows of an array'

# What does not fit is refused, and nothing is overwritten.
fails 1 predict --model models/m --data lines.jsonl --out p
warns 'p has predictions of another job: its data is "photos", not "lines.jsonl"'
fails 1 predict --model models/m --data photos --out p --shards 4
warns 'p has predictions in 3 shards, not 4; leave out --shards to continue them'
fails 1 predict --model models/m --data photos --out photos
warns 'photos is not empty and not a job of predictions'
fails 1 predict --model models/m --data photos --out t --signature none
warns 'no signature "none"; the model has "'
! grep -q saved_model_init_op err || fail "$(cat err)"
fails 1 predict --model models/m --data photos --out t --signature tensors
warns 'this data has only images or arrays without names'
fails 2 predict --model models/m --data photos
warns '--model needs --data and --out'
fails 2 predict run --data photos --shards 2
warns '--shards needs --model'
fails 2 predict run --model models/m --data photos --out t
warns 'give RUN_DIR or --model, not both'
fails 2 predict --model models/m --data photos --out t --checkpoint best
fails 1 predict --model models/m --data photos --out p --feature image=other
warns 'its --feature is [], not ["image=other"]'
cp x.npy "$(printf 'x\377.npy')"
fails 1 predict --model models/m --data "$(printf 'x\377.npy')" --signature tensors --out t
warns 'which is not UTF-8'
sed -i 's/"photos"/"others"/' p/job.json
fails 3 predict --model models/m --data photos --out p
warns 'p/job.json is damaged; remove its directory to begin again: '
