#!/usr/bin/env bash
# The exit codes are documented, and errors carry them.
. "$SEXTANT_SRC/tests/cli/lib.sh"
ok help exit-codes
is <<'TEXT'
Exit codes:
    0  success
    1  the command failed; see the message
    2  invalid option or argument; nothing was done
    3  corrupt data: a record, an image or a checkpoint
    4  training stopped at a NaN or an infinity; the last checkpoint is kept
    5  out of memory or disk space, or over a size limit
    6  a device or a server is unavailable; checkpoints are kept
  129  the terminal was closed (SIGHUP); progress is saved
  130  interrupted by Ctrl-C; progress is saved
  143  terminated by SIGTERM; progress is saved
TEXT
fails 2 version extra
fails 2 help nothing-like-it


# --- every command ends with the code that the table promises
data='generated:digits?n=8'
ok train linear --data "$data" --steps 1 --model-dir run
ok export run --out models
mkdir -p photos/a photos/b corrupt/0
for class in a b; do
    cp "$SEXTANT_SRC/fuzz/corpus/jpeg/rgb.jpg" photos/$class/1.jpg
done
head -c 100 photos/a/1.jpg >corrupt/0/short.jpg
echo 'no image' >corrupt/0/text.jpg
cp corrupt/0/*.jpg .
# a checkpoint with a byte changed
cp -r run damaged
printf 'X' | dd of=damaged/model.ckpt-1.data-00000-of-00001 bs=1 seek=1000 conv=notrunc status=none
env=(env -u PJRT_NAMES_AND_LIBRARY_PATHS -u TPU_LIBRARY_PATH -u VIRTUAL_ENV -u TPU_NAME)
while read -r expected words; do
    [ -n "$expected" ] || continue
    ran=$words
    code=0
    # shellcheck disable=SC2086
    timeout 20 "${env[@]}" "$sextant" $words </dev/null >out 2>err || code=$?
    [ "$code" = "$expected" ] || fail "expected exit code $expected"
    [ "$expected" = 0 ] || grep -q '^sextant' err || fail 'no message'
    [ "$expected" != 2 ] || warns 'see: sextant help'
done <<'TABLE'
0 help train
2 help nosuch
2 nosuch
2 data nosuch
2 help --nosuch
2 completion fish
2 zoo nosuch
0 zoo
1 show nosuch
1 show photos
2 show

2 train nosuch --data generated:digits?n=8
1 train ./nosuch.c --data generated:digits?n=8
2 train linear
2 train linear --data generated:digits?n=8 --nosuch
2 train linear --data generated:digits?n=8 --batch-size 0
2 train linear --data generated:digits?n=8 --steps 1 --epochs 1
2 train linear --data generated:digits?n=8 --augment flip
2 train linear --data generated:digits?n=8 --recipe nosuch
2 train linear --data generated:digits?n=8 --optimizer nosuch
2 train linear --data generated:digits?n=8 --param units
2 train linear --data generated:digits?n=8 --param units=3
2 train linear --data generated:digits?n=8 -- --num_clases 3
2 train linear --data generated:digits?n=8 -- --num_classes many
2 train linear --data generated:digits?n=8 --model-dir photos
2 train linear --data generated:digits?n=8 --device nosuch
2 train linear --data generated:digits?n=8 --device cpu:2
6 train linear --data generated:digits?n=8 --device cuda
6 train linear --data generated:digits?n=8 --device pjrt:tpu
1 train linear --data nosuch
3 train linear --data corrupt

2 evaluate run --data generated:digits?n=8 --checkpoint newest
1 evaluate run --data generated:digits?n=8 --checkpoint 7
1 evaluate nosuch --data generated:digits?n=8
1 evaluate run --data nosuch
3 evaluate damaged --data generated:digits?n=8
6 evaluate run --data generated:digits?n=8 --device cuda

2 predict run
1 predict run --image nosuch.jpg
3 predict run --image short.jpg
3 predict run --image text.jpg
3 predict damaged --image photos/a/1.jpg
6 predict run --image photos/a/1.jpg --device cuda

2 export run
2 export run --out models --version abc
1 export run --out models --version 1
1 export run --out more --checkpoint 7
3 export damaged --out more

2 run models
1 run nosuch --image photos/a/1.jpg
1 run models --image nosuch.jpg
5 run models --image photos/a/1.jpg --model-memory-limit 1K
3 run models --image short.jpg
3 run models --image text.jpg

2 data from-images photos
2 data from-images photos --out x --split abc
2 data from-images photos --out x --split train=.8,val=.9
2 data from-images photos --out x --shards 0
1 data from-images nosuch --out x
3 data from-images corrupt --out x
2 data show
1 data show nosuch
1 data verify nosuch
1 data verify corrupt
2 data take generated:digits?n=8 --out x.npy --count 0
2 data fetch nosuch --dir x
2 data from-idx photos --out x

2 devices --device nosuch
6 devices --device cuda
2 compile linear --target nosuch
6 compile linear --target tpu:v5e:2x2

2 serve --rest_api_port=0
2 serve --model_name=m --model_base_path=models --rest_api_port=99999
2 query http://127.0.0.1:1 --request x --image y
1 query http://127.0.0.1:1/v1/models/m --image nosuch.jpg
6 query http://127.0.0.1:1/v1/models/m
TABLE
