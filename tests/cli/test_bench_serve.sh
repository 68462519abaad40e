#!/usr/bin/env bash
# bench serve: rates, errors, the picture; a server that stalls is charged for what it kept waiting.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/server.sh"
ok train linear --data 'generated:digits?n=8' --model-dir run --steps 1
ok export run --out models/digits
start digits --model_name=digits --model_base_path="$here/models/digits"
ok query "$url" --method metadata
python3 - <<'PY'
import json
signature = json.load(open("out"))["metadata"]["signature_def"]["signature_def"]["tensors"]
(name, info), = signature["inputs"].items()
value = 0.5
for d in reversed([int(d["size"]) for d in info["tensor_shape"]["dim"]][1:]):
    value = [value] * d
json.dump([value], open("request.json", "w"))
PY
for protocol in rest grpc; do
    for arrivals in poisson constant; do
        ok bench serve "$url" --protocol $protocol --signature tensors --request request.json --rate 50 --arrivals $arrivals --duration 2 \
            --warmup 0.2 --json --svg $protocol.svg
        python3 - $arrivals <<'PY' || fail "$(cat out)"
import json, sys
r = json.load(open("out"))
assert 100 - 45 < r["requests"] < 100 + 45 and r["answered"] == r["good"] == r["requests"], r
assert sys.argv[1] == "poisson" or abs(r["requests"] - 100) <= 2, r
assert 0 < r["p50_us"] <= r["p90_us"] <= r["p99_us"] <= r["max_us"] and r["errors"] == {}, r
PY
        grep -q '<svg' $protocol.svg && grep -q '99 %: ' $protocol.svg || fail "$(head -c 300 $protocol.svg)"
    done
done
ok bench serve "$url" --signature tensors --request request.json --rate 20 --duration 1 --warmup 0
says ' requests in 1.0 s: '
grep -qE '^ +99 % +[0-9.]+ (us|ms|s)  ▇' out || fail 'no latencies'
fails 2 bench serve "$url"
warns 'expected something to send'
fails 6 bench serve http://127.0.0.1:1/v1/models/m --signature tensors --request request.json --duration 0.2 --warmup 0
warns 'no request was answered'
fails 6 bench serve "${url}x" --signature tensors --request request.json --duration 0.2 --warmup 0
warns 'HTTP status 404'

# One connection, and a server that answers after 100 ms: requests that are due meanwhile wait, and it counts.
cat >slow.py <<'PY'
import http.server, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(0.1)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
    def log_message(self, *words): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
PY
stop
python3 slow.py >slow_port &
server=$!
until [ -s slow_port ]; do sleep 0.02; done
ok bench serve "http://127.0.0.1:$(cat slow_port)/v1/models/m" --signature tensors --request request.json --rate 20 --arrivals constant \
    --duration 1 --warmup 0 --connections 1 --json
python3 - <<'PY' || fail "$(cat out)"
import json
r = json.load(open("out"))
# The 20th was due at 0.95 s and was answered after 2 s: half of them waited longer than half a second.
assert r["requests"] == 20 and r["late"] >= 15, r
assert r["p50_us"] > 400e3 and r["max_us"] > 900e3, r
# Answers come until 2 s, so there are 10 of them a second.
assert r["goodput"] < 11, r
PY

# Answers later than the deadline count as errors, and those that were not begun in time.
fails 6 bench serve "http://127.0.0.1:$(cat slow_port)/v1/models/m" --signature tensors --request request.json --rate 20 \
    --arrivals constant --duration 1 --warmup 0 --connections 1 --deadline-ms 50 --json
python3 - <<'PY' || fail "$(cat out)"
import json
r = json.load(open("out"))
assert r["requests"] == 20 and r["answered"] == r["good"] == 0 and r["errors"] == {"DEADLINE_EXCEEDED": 20}, r
PY

# A signal ends it early, with what was measured until then.
"$sextant" bench serve "http://127.0.0.1:$(cat slow_port)/v1/models/m" --signature tensors --request request.json --rate 20 \
    --arrivals constant --duration 60 --warmup 0 --json >out 2>err &
bench=$!
sleep 1
kill -INT $bench
wait $bench || fail "exit code $?"
python3 - <<'PY' || fail "$(cat out)"
import json
r = json.load(open("out"))
assert 2 <= r["requests"] == r["answered"] <= 100 and r["seconds"] < 6 and 10 < r["rate"] < 30, r
PY

# What was due before the signal, and not sent, is counted.
"$sextant" bench serve "http://127.0.0.1:$(cat slow_port)/v1/models/m" --signature tensors --request request.json --rate 100 \
    --arrivals constant --duration 60 --warmup 0 --connections 1 --json >out 2>err &
bench=$!
sleep 1
kill -INT $bench
wait $bench || fail "exit code $?"
python3 - <<'PY' || fail "$(cat out)"
import json
r = json.load(open("out"))
assert abs(r["requests"] - 100 * r["seconds"]) <= 2 and r["requests"] == r["answered"] + r["errors"]["CANCELLED"], r
PY

# UNIX sockets.
start digits --model_name=digits --model_base_path="$here/models/digits" --grpc_socket_path="$here/socket"
ok bench serve "unix:$here/socket" --protocol grpc --model digits --signature tensors --request request.json --rate 50 \
    --arrivals constant --duration 1 --warmup 0 --connections 2 --json
all_answered() {
    python3 - <<'PY' || fail "$(cat out)"
import json
r = json.load(open("out"))
assert r["requests"] == r["answered"] == 50 and r["errors"] == {}, r
PY
}
all_answered

# TLS, where both sides have certificates.
make() { # NAME [CA]: a key, and a certificate signed by the CA, or by itself
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1.key" -out "$1.pem" \
        -subj "/CN=$1" -addext 'subjectAltName=DNS:localhost' -days 2 ${2:+-CA "$2.pem" -CAkey "$2.key"} 2>/dev/null
}
make ca
make server ca
make client ca
cat client.pem client.key >both.pem
printf 'server_key: "server.key"\nserver_cert: "server.pem"\ncustom_ca: "ca.pem"\nclient_verify: true\n' >mutual.cfg
start digits --model_name=digits --model_base_path="$here/models/digits" --rest_api_ssl_config_file=mutual.cfg
for protocol in rest grpc; do
    load=(bench serve "$url" --protocol $protocol --signature tensors --request request.json --rate 50 --arrivals constant
        --duration 1 --warmup 0 --connections 2 --json --cacert ca.pem)
    ok "${load[@]}" --cert client.pem --key client.key
    all_answered
    ok "${load[@]}" --cert both.pem
    all_answered
    run "${load[@]}"
    [ "$code" != 0 ] || fail 'a client without a certificate was answered'
done
