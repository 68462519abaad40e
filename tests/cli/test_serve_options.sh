#!/usr/bin/env bash
# Each option of serve reaches the server: address, name, limits, metrics' path, CORS, retries.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/server.sh"
ok train linear --data 'generated:digits?n=8' --model-dir run --steps 1
ok export run --out models/m
cat >ask.py <<'P'
"""ask.py PORT METHOD PATH [BODY_BYTES] [HEADER:VALUE]: prints the status and the headers."""
import http.client, sys
port, method, path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
body = b" " * int(sys.argv[4]) if len(sys.argv) > 4 else None
headers = dict(a.split(":", 1) for a in sys.argv[5:])
connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
connection.request(method, path, body=body, headers=headers)
answer = connection.getresponse()
text = answer.read().decode(errors="replace")
print(answer.status)
for name, value in answer.getheaders():
    print(f"{name.lower()}: {value}")
print(text)
P
ask() {
    python3 ask.py "$port" "$@" >out 2>err || fail "no answer to $*"
}
status() {
    [ "$(head -n 1 out)" = "$1" ] || fail "HTTP status, expected $1"
}
listens_on() { # an IPv4 address as /proc/net/tcp has it
    grep -qi "$1:$(printf %04x "$port") 0*:0000 0A" /proc/net/tcp /proc/net/tcp6 || fail "not on $1"
}

start default --model_base_path="$here/models/m"
case $url in */v1/models/default) ;; *) fail "the address is $url" ;; esac
listens_on 00000000
ask GET /v1/models/default
status 200
says '"AVAILABLE"'
says_not 'access-control-allow-origin'
ask GET /v1/models/m
status 404
ask GET /monitoring/prometheus/metrics
status 200
ask POST /v1/models/default:predict 67108864
status 400

mkdir tagged
cp -r models/m/1 tagged/1
python3 -c '
path = "tagged/1/saved_model.pb"
text = open(path, "rb").read()
tag = b"\x22\x05serve" # field 4 of MetaInfoDef
assert text.count(tag) == 1
open(path, "wb").write(text.replace(tag, b"\x22\x05other"))'
start default --model_base_path="$here/tagged" --saved_model_tags=other
ask GET /v1/models/default
says '"AVAILABLE"'

start m --model_name=m --model_base_path="$here/models/m" --host=127.0.0.1 --max_body_bytes=1K \
    --monitoring_path=/figures --rest_api_enable_cors_support --rest_api_num_threads=7 --threads=1
listens_on 0100007F
ask GET /v1/models/m 0 Origin:http://a.example
status 200
says 'access-control-allow-origin: '
ask GET /figures
status 200
says ':tensorflow:serving:request_count'
ask GET /monitoring/prometheus/metrics
status 404
ask POST /v1/models/m:predict 1024
status 400
ask POST /v1/models/m:predict 1025
status 413

# The time of one request: a millisecond is too short for 300 of them, the default is not.
predict_many() {
    python3 - "$port" <<'P' >out
import http.client, json, sys
row = [[[0.5]] * 28] * 28
body = json.dumps({"signature_name": "tensors", "instances": [row] * 300})
connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
connection.request("POST", "/v1/models/m:predict", body=body)
answer = connection.getresponse()
print(answer.status)
print(answer.read().decode()[:1000])
P
}
start m --model_name=m --model_base_path="$here/models/m"
predict_many
status 200
start m --model_name=m --model_base_path="$here/models/m" --rest_api_timeout_in_ms=1
predict_many
status 504
ran='serve, SIGHUP' # ends it as SIGTERM does
kill -HUP "$server"
code=0
wait "$server" || code=$?
[ "$code" = 0 ] || fail 'expected exit code 0'
grep -q 'Done unloading servable version {name: m version: 1}' serve.err || fail 'the server did not end in order'
server=

# A version that does not load is tried again as often as told, and a good one after it is served.
mkdir -p broken/1
echo nonsense >broken/1/saved_model.pb
launch --model_name=m --model_base_path="$here/broken" --max_num_load_retries=2 --load_retry_interval_seconds=0.01 \
    --file_system_poll_wait_seconds=0.01
ran='serve of a broken version'
for ((i = 0; i < 500; i++)); do
    grep -q 'tried again only if' serve.err && break
    sleep 0.02
done
sleep 0.2
cat serve.err >err
[ "$(grep -c 'cannot load version 1' err)" = 1 ] || fail 'expected the error to be logged once'
grep -q '2 retries to load a version failed with the same errors; 1 will be tried again' err ||
    fail 'expected one attempt and two more'
cp -r models/m/1 broken/new
mv broken/new broken/2
for ((i = 0; i < 500; i++)); do
    grep -q 'Successfully loaded servable version {name: m version: 2}' serve.err && break
    sleep 0.02
done
cat serve.err >err
warns 'Successfully loaded servable version {name: m version: 2}'
port=$(sed -n 's/^Listening on port //p' serve.out)
ask GET /v1/models/m/versions/2
status 200
