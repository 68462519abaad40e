#!/usr/bin/env bash
# Shares of requests between versions, models loaded at their first request, the page for people.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/server.sh"
ok train linear --data 'generated:digits?n=8' --model-dir run --steps 1
for i in 1 2 3; do ok export run --out models/digits; done
cp -r models/digits models/other
cat >models.config <<C
model_config_list {
  config { name: 'digits' base_path: '$here/models/digits' model_version_policy { all {} } }
  config { name: 'other' base_path: '$here/models/other' }
}
C
echo 'model { name: "digits" canary { percent: 25 sticky_header: "x-user" } shadow { version: 1 } }' >traffic.config
python3 -c 'print("{\"signature_name\": \"tensors\", \"instances\":", [[[[0.0]] * 28] * 28], "}")' >zeros.json
ask() { # PATH, and more of curl's arguments
    local path=$1
    shift
    curl -sS -o out -w '%{http_code}' "$@" "http://127.0.0.1:$port$path" >status 2>err || fail "GET $path"
}
wait_metric() {
    for ((i = 0; i < 500; i++)); do
        ask /monitoring/prometheus/metrics
        ! grep -qF -- "$1" out || return 0
        sleep 0.02
    done
    fail "the metrics never had: $1"
}
start 'the models of models.config' --model_config_file=models.config --model_traffic_file=traffic.config \
    --max_loaded_memory_bytes=1G
ask /v1/models/digits/metadata
[ "$(cat status)" = 503 ] || fail 'expected 503: it is not loaded'
for ((i = 0; i < 500; i++)); do
    ask /v1/models/digits
    [ "$(grep -c '"state": "AVAILABLE"' out)" != 3 ] || break
    sleep 0.02
done
for i in 1 2 3 4 5 6 7 8; do
    ask /v1/models/digits:predict -d @zeros.json
    [ "$(cat status)" = 200 ] || fail 'predict'
done
wait_metric 'sextant_canary_requests_total{model_name="digits",to="canary"} 2'
wait_metric 'sextant_canary_requests_total{model_name="digits",to="stable"} 6'
wait_metric 'sextant_shadow_requests_total{model_name="digits",result="equal"} 8'
ask /
grep -q '<td>digits</td><td class="n">3</td><td></td><td class="AVAILABLE">' out || fail 'no row of version 3'
grep -q '<td>other</td><td class="n">3</td><td></td><td class="START">' out || fail 'other is loaded'
wait_metric 'sextant_loaded_models 1'
cp serve.err err
warns_not error

# A mistake in the file refuses to start.
echo 'model { name: "digits" canary { percent: 125 } }' >traffic.config
fails 1 serve --port=0 --rest_api_port=0 --model_config_file=models.config --model_traffic_file=traffic.config
warns 'traffic.config:1: model[0]: canary.percent: 125, expected 0 to 100'
