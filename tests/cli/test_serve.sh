#!/usr/bin/env bash
# serve and query: an answer as run gives it; a new version takes over; SIGTERM drains, exit 0.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
. "$SEXTANT_SRC/tests/cli/server.sh"
photos 3
ok train mnist_cnn --data photos --model-dir run --steps 2 -- --num_classes 3
ok export run --out models/m
start m --model_name=m --model_base_path=models/m
image=photos/rose/rose-0.jpg
ok query "$url" --image $image photos/daisy/daisy-0.jpg
grep -qE "^$image: (daisy|rose|tulip) [0-9.]+ %$" out || fail 'answer'
cut -d % -f 1 out >by_query
ok run models/m/1 --image $image photos/daisy/daisy-0.jpg
cut -d % -f 1 out | diff - by_query || fail 'run and query differ'
ok query "$url"
says '"version": "1"'
fails 5 query "$url" --max-response-bytes 20
warns 'the response is larger than 20 bytes; raise --max-response-bytes'
ok data take photos --size 28 --channels 1 --count 2 --out x.npy
ok query "$url" --signature tensors --input x.npy --json
says '"probabilities"'
ok query "$url" --signature tensors --input image=x.npy
grep -qE '^1: (daisy|rose|tulip) [0-9.]+ %$' out || fail 'answer of an array'
echo '{"instances": [{"b64": "bm8="}]}' >request.json
fails 1 query "$url" --request request.json
warns 'HTTP status 400'
head -c 200 $image >cut.jpg
fails 1 query "$url" --image cut.jpg
warns 'HTTP status 400: image 0: JPEG: image is truncated'
fails 1 query "${url}x" --image $image
warns 'HTTP status 404: Servable not found'
fails 1 serve --model_name=m --model_base_path=models/m --rest_api_port="$port"
warns 'choose another port'
ok export run --out models/m
until "$sextant" query "$url" 2>/dev/null | grep -q '"version": "2"'; do sleep 0.05; done
until "$sextant" query "$url/versions/2" --image $image >/dev/null 2>&1; do sleep 0.05; done
kill -TERM $server
code=0
wait $server || code=$?
ran='serve, SIGTERM'
[ "$code" = 0 ] || fail 'exit code'
fails 6 query "$url" --image $image
warns 'connect'

start m --model_name=m --model_base_path=models/m --max_request_memory_bytes=256K --max_connections=3
images=()
for ((i = 0; i < 120; i++)); do images+=("$image"); done
fails 1 query "$url" --image "${images[@]}"
warns 'HTTP status 413: '
warns 'memory limit of one request'
kill -TERM "$server"
wait "$server" || fail 'exit code'
