#!/usr/bin/env bash
# The request log: what is logged over each protocol, replayed, compared, made warm-up records of; the access log.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
. "$SEXTANT_SRC/tests/cli/server.sh"
photos 3
ok train mnist_cnn --data photos --model-dir run --steps 2 -- --num_classes 3
ok export run --out models/m
image=photos/rose/rose-0.jpg
ok data take photos --size 28 --channels 1 --count 3 --out x.npy
start m --model_name=m --model_base_path=models/m --request_log=logs/r --access-log=access.log
at=localhost:$port
for protocol in rest grpc; do
    ok query "$url" --protocol $protocol --image $image
    ok query "$url" --protocol $protocol --signature tensors --input x.npy
done
fails 1 query "$url" --signature no --image $image
code=0
curl -sS -H 'traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' "http://$at/v1/models/m" >out 2>err
curl -sS -H 'traceparent: 00-00000000000000000000000000000000-b7ad6b7169203331-01' "http://$at/v1/models/m?key=hidden" >out 2>err
for malformed in zz-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 \
    00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-zz \
    01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01x; do
    curl -sS -H "traceparent: $malformed" "http://$at/v1/models/m/metadata" >out 2>err
done
curl -sS "http://$at/monitoring/prometheus/metrics" >out 2>err
says ':tensorflow:serving:request_log_count{model_name="m",status_code="OK"} 4'
stop
[ "$(ls logs)" = "$(ls logs | grep -E '^r-m-[0-9]{8}T[0-9]{6}Z-000001\.tfrecord$')" ] || fail "$(ls logs)"
python3 - <<'PY' || fail "$(cat access.log)"
import json
lines = [json.loads(line) for line in open("access.log")]
predicted = [l for l in lines if l["path"] in ("/v1/models/m:predict", "/tensorflow.serving.PredictionService/Predict")]
assert [l["status"] for l in predicted] == [200, 200, 200, 200, 400], predicted
assert all(l["model"] == "m" and l["version"] == 1 for l in predicted), predicted
assert [l.get("grpc_status") for l in predicted] == [None, None, 0, 0, None], predicted
assert all(l["duration_us"] > 0 and l["remote"].startswith("127.0.0.1:") for l in predicted), predicted
assert all(len(l["trace_id"]) == 32 and len(l["span_id"]) == 16 for l in lines)
assert len({l["span_id"] for l in lines}) == len(lines)
traced = [l for l in lines if l["path"] == "/v1/models/m" and l["method"] == "GET"]
assert traced[-2]["trace_id"] == "0af7651916cd43dd8448eb211c80319c" and traced[-2]["parent_id"] == "b7ad6b7169203331"
assert "parent_id" not in traced[-1] and traced[-1]["trace_id"] != "0" * 32
assert not any("parent_id" in l for l in lines if l["path"].endswith("/metadata"))
assert "hidden" not in open("access.log").read()
PY
# Standard output may be a socket, as the journal's is.
python3 - "$sextant" <<'PY' || fail 'of a socket'
import json, re, socket, subprocess, sys, urllib.request
ours, theirs = socket.socketpair()
ours.settimeout(60)
server = subprocess.Popen([sys.argv[1], "serve", "--model_name=m", "--model_base_path=models/m", "--port=0",
                           "--rest_api_port=0", "--access_log=-"], stdout=theirs, stderr=subprocess.DEVNULL)
theirs.close()
said = ""
def until(pattern):
    global said
    while not (found := re.search(pattern, said, re.M)):
        part = ours.recv(65536).decode()
        assert part, said
        said += part
    return found
url = until(r"^Serving m at (\S+)$")[1]
urllib.request.urlopen(url).read()
assert json.loads(until(r"^{.*}$")[0])["status"] == 200
server.terminate()
assert server.wait() == 0
PY

# The same answers from the same model; others from another one; none of a model that is not there.
start m --model_name=m --model_base_path=models/m
ok replay 'logs/r-m-*' --url "localhost:$port"
says '4 requests in '
says ': 4 answered as in the log, 0 differ, 0 failed'
ok replay 'logs/r-m-*' --url "localhost:$port" --connections 3 --rate 100 --count 3 --json
says '{"requests": 3, "same": 3, "differ": 0, "failed": 0, '
ok replay 'logs/r-m-*' --url "localhost:$port" --version 1 --model m
fails 1 replay 'logs/r-m-*' --url "localhost:$port" --version 9
says ': 0 answered as in the log, 0 differ, 4 failed'
warns 'Servable not found for request: Specific(m, 9)'
ok train mnist_cnn --data photos --model-dir run --steps 6 -- --num_classes 3
ok export run --out models/m
until "$sextant" query "$url/versions/2" --image $image >/dev/null 2>&1; do sleep 0.05; done
fails 1 replay 'logs/r-m-*' --url "localhost:$port"
says ' 4 differ, 0 failed'
warns 'record 0: output "'
head -c 100 "$(ls logs/r-m-*)" >cut
fails 3 replay cut --url "localhost:$port"

# One request of each signature and shape warms the next version up.
ok replay 'logs/r-m-*' --warmup-dir models/m/2
says 'models/m/2/assets.extra/tf_serving_warmup_requests: 2 warm-up records'
start m --model_name=m --model_base_path=models/m
grep -qF 'Number of warmup records read: 2' serve.err || fail "$(cat serve.err)"
fails 1 replay 'logs/r-m-*' --warmup-dir models/m
warns 'models/m: not a version of a model'
fails 2 replay 'logs/r-m-*'
warns 'expected either --url or --warmup-dir'
fails 1 replay 'none-*' --url "localhost:$port"

# By the configuration of models, with a rate, and changed by a reload.
mkdir two
cat >models.config <<'CFG'
model_config_list {
  config { name: "a" base_path: "MODELS" logging_config {
    log_collector_config { filename_prefix: "LOGS/a" } sampling_config { sampling_rate: 0.5 } } }
  config { name: "b" base_path: "MODELS" logging_config { sampling_config { sampling_rate: 0 } } }
  config { name: "c" base_path: "MODELS" }
}
CFG
sed -i "s|MODELS|$here/models/m|; s|LOGS|$here/two|" models.config
start 'the models of models.config' --model_config_file=models.config --request_log="$here/two/all" --request_log_max_file_bytes=2000
for ((i = 0; i < 40; i++)); do
    for model in a b c; do
        ok query "localhost:$port" --model $model --image $image
    done
done
curl -sS "http://localhost:$port/monitoring/prometheus/metrics" >out 2>err
says ':tensorflow:serving:request_log_count{model_name="c",status_code="OK"} 40'
says_not 'request_log_count{model_name="b"'
logged=$(sed -n 's/.*request_log_count{model_name="a",status_code="OK"} //p' out)
[ "$logged" -ge 8 ] && [ "$logged" -le 32 ] || fail "$logged of 40"
stop
[ "$(ls two/all-c-* | wc -l)" -gt 3 ] || fail "$(ls two)"
! ls two | grep -q -- '-b-' || fail "$(ls two)"
for file in two/a-*; do
    [ -s "$file" ] || fail "$file is empty"
done
sed 's/0.5/1.5/' models.config >bad.config
fails 1 serve --port=0 --rest_api_port=0 --model_config_file=bad.config
warns 'sampling_rate is 1.5, expected 0 to 1'
sed "s|$here/two|/proc/none|" models.config >bad.config
fails 1 serve --port=0 --rest_api_port=0 --model_config_file=bad.config
warns '/proc/none'
fails 1 serve --model_base_path=models/m --port=0 --rest_api_port=0 --access_log=/proc/none/x
warns '/proc/none'
