#!/usr/bin/env bash
# --model-memory-limit of run and serve; a directory of versions in the place of a version.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
photos 2
ok train mnist_cnn --data photos --model-dir run --steps 1 -- --num_classes 3
ok export run --out models/m
ok export run --out models/m
image=photos/rose/rose-0.jpg
ok run models/m --image $image --model-memory-limit 64M
cp out newest
ok run models/m/2 --image $image --model_memory_limit=none
diff out newest || fail 'run models/m is not the newest version'
ok show models/m
says_line 'SavedModel models/m/2'
mkdir models/m/3
ok run models/m --image $image
fails 1 run models --image $image
warns 'models has no saved_model.pb, and no numbered version directory with one'
fails 5 run models/m --image $image --model-memory-limit 20K
warns 'would exceed the memory limit of the model (--model-memory-limit): '
warns ' of 20.0 KiB in use'
fails 5 run models/m --image $image --model_memory_limit 20K
warns 'the memory limit of the model (--model_memory_limit): '
fails 2 run models/m --image $image --model_memory_limit 4X
warns '--model_memory_limit is "4X", expected a size like 512M or 2G, or none'
fails 2 run models/m --image $image --model-memory-limit=99999999999G
warns '--model-memory-limit is "99999999999G", expected a size'
fails 2 run models/m --image $image --model-memory-limit -5
warns '--model-memory-limit is -5, expected at least 1'
"$sextant" serve --model_name=m --model_base_path=models/m --port=0 --rest_api_port=0 --model_memory_limit=20KiB >serve.out 2>serve.err &
server=$!
trap 'kill $server 2>/dev/null || true; rm -rf "$here"' EXIT
until grep -q 'cannot load version 2: .* would exceed the memory limit of the model' serve.err; do
    kill -0 $server || { cat serve.err; fail 'the server ended'; }
    sleep 0.02
done
! grep -q -e --model serve.err || fail 'clients read this error: it must not name an option'
grep -q '^Serving' serve.out && fail 'a model beyond the limit is served'
kill -TERM $server
code=0
wait $server || code=$?
ran='serve, SIGTERM'
[ "$code" = 0 ] || fail 'exit code'
