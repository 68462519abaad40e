#!/usr/bin/env bash
# Three servers behind HAProxy, as examples/deploy/haproxy.cfg has them: one is killed under load, and comes
# back. No request fails but those that the killed one was answering, and a retry saves these.
. "$SEXTANT_SRC/tests/cli/lib.sh"
PATH=$PATH:/usr/sbin
command -v haproxy >/dev/null || { echo 'SKIP: haproxy is not installed (tools/deps --serving-peers)'; exit 77; }
ok train linear --data 'generated:digits?n=8' --model-dir run --steps 1
ok export run --out models/digits
declare -a servers ports
haproxy=
trap 'for p in "${servers[@]}" $haproxy; do kill -9 $p 2>/dev/null || true; done; rm -rf "$here"' EXIT
serve() { # INDEX PORT, or 0
    rm -f serve.$1
    "$sextant" serve --port=0 --rest_api_port=$2 --model_name=digits --model_base_path="$here/models/digits" \
        >serve.$1 2>serve.err.$1 &
    servers[$1]=$!
    until grep -q '^Serving' serve.$1 2>/dev/null; do
        kill -0 ${servers[$1]} || { cat serve.err.$1; fail 'a server ended'; }
        sleep 0.02
    done
    ports[$1]=$(sed -n 's/^Listening on port //p' serve.$1)
}
for i in 0 1 2; do serve $i 0; done
front=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
# REST alone, on free ports of this machine.
sed -e '/^frontend grpc/,$d' -e 's/maxconn 10000/maxconn 1000/' -e "s/bind :8501/bind 127.0.0.1:$front/" -e 's/ port 8501$//' \
    -e "s/10.0.0.1:8501/127.0.0.1:${ports[0]}/; s/10.0.0.2:8501/127.0.0.1:${ports[1]}/" \
    -e "s/10.0.0.3:8501/127.0.0.1:${ports[2]}/" "$SEXTANT_SRC/examples/deploy/haproxy.cfg" >haproxy.cfg
haproxy -q -db -f haproxy.cfg 2>haproxy.err &
haproxy=$!
python3 - "$front" <<'P' >load.out &
import http.client, json, sys, threading, time

body = json.dumps({"signature_name": "tensors", "instances": [[[[0.0]] * 28] * 28]})
end, lock = time.monotonic() + 8, threading.Lock()
count = {"good": 0, "failed": 0, "lost": 0}


def once(connection):
    connection.request("POST", "/v1/models/digits:predict", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    answer.read()
    return answer.status


def client():
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=10)
    while time.monotonic() < end:
        for attempt in range(2):
            try:
                status = once(connection)
            except (OSError, http.client.HTTPException):
                connection.close()
                status = 0
            if status == 200:
                break
            with lock:
                count["failed"] += 1
        with lock:
            count["good" if status == 200 else "lost"] += 1


deadline = time.monotonic() + 10
while True:
    try:
        if once(http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))) == 200:
            break
    except OSError:
        pass
    assert time.monotonic() < deadline
    time.sleep(0.1)
print("begun", flush=True)
threads = [threading.Thread(target=client) for _ in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("%(good)d good, %(failed)d failed at first, %(lost)d lost" % count)
P
load=$!
until grep -q begun load.out; do
    kill -0 $haproxy || { cat haproxy.err; fail 'haproxy ended'; }
    sleep 0.05
done
sleep 2
kill -9 ${servers[1]}
wait ${servers[1]} 2>/dev/null || true
sleep 1.5
serve 1 ${ports[1]}
sleep 1.5
kill -TERM ${servers[2]} # and one that is told to stop loses nothing
wait ${servers[2]} || fail 'exit code of SIGTERM'
wait $load || fail 'the load'
tail -1 load.out
read -r good _ failed _ _ _ lost _ <<<"$(tail -1 load.out | tr -d ,)"
[ "$good" -gt 500 ] || fail "only $good requests"
[ "$lost" = 0 ] || fail "$lost requests were lost"
[ "$failed" -le 8 ] || fail "$failed requests failed: more than the killed server was answering"
