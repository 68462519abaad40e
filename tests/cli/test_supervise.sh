#!/usr/bin/env bash
# supervise: servers behind one socket, started by requests and stopped without; one that crashes is replaced.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
photos 1
ok train mnist_cnn --data photos --model-dir run --steps 1 --batch-size 3 -- --num_classes 3
ok export run --out models/m
supervisor=
trap '[ -z "$supervisor" ] || kill "$supervisor"; rm -rf "$here"' EXIT
launch() {
    [ -z "$supervisor" ] || { kill "$supervisor" && wait "$supervisor"; }
    ran="supervise $*"
    # Whoever waits for a line must not find the last one's, which the new process has yet to truncate.
    : >s.out
    : >s.err
    "$sextant" supervise --rest-api-port 0 --port 0 "$@" >s.out 2>s.err &
    supervisor=$!
}
start() {
    launch "$@" -- --model_name=m --model_base_path="$here/models/m"
    until grep -q '^Listening on port ' s.out; do
        kill -0 "$supervisor" || fail "$(cat s.err)"
        sleep 0.02
    done
    url=http://localhost:$(sed -n 's/^Listening on port \([0-9]*\)$/\1/p' s.out | head -n 1)/v1/models/m
}
servers() { pgrep -P "$supervisor" | wc -l; }
ask() { "$sextant" query "$url" --image photos/rose/rose-0.jpg >answer || fail "no answer; $(cat s.err)"; }
await() { # TEXT COUNT: until the log has it so often
    for _ in $(seq 600); do
        [ "$(grep -c "$1" s.err)" -lt "$2" ] || return 0
        sleep 0.05
    done
    fail "the log lacks \"$1\": $(cat s.err)"
}

# None at first; a request waits for one; without requests it ends, and the next request starts another.
start --min-servers 0 --idle-seconds 0.5
sleep 0.3
[ "$(servers)" = 0 ] || fail 'a server without a request'
ask
await 'started (a request is waiting)' 1
await 'ready after [0-9]* ms' 1
await 'stopped' 1
[ "$(servers)" = 0 ] || fail "a server after half a second without a request: $(cat s.err)"
cp answer before
ask
cmp answer before || fail 'another answer'
await 'started (a request is waiting)' 2

# One that is killed is replaced; no request is lost, as the socket stays open.
start --min-servers 1
await 'ready after' 1
kill -9 "$(pgrep -P "$supervisor")"
await 'killed by signal 9' 1
ask
await 'ready after' 2

# SIGHUP ends none; one that somebody stops is replaced without a pause; Ctrl-C reaches the supervisor only.
server=$(pgrep -P "$supervisor")
kill -HUP "$supervisor"
sleep 0.5
[ "$(pgrep -P "$supervisor")" = "$server" ] || fail "another server after SIGHUP: $(cat s.err)"
group() { cut -d ' ' -f 5 "/proc/$1/stat"; }
[ "$(group "$server")" != "$(group "$supervisor")" ] || fail 'a server is in the process group of the supervisor'
grep -q '^flags:.*2......$' "/proc/$server/fdinfo/3" || fail 'children of the server keep its sockets'
kill "$server"
await 'ready after' 3
[ "$(grep -c 'the next start is in' s.err)" = 1 ] || fail "$(cat s.err)"

# More than one while there is more to do than one should; and fewer again.
start --min-servers 1 --max-servers 2 --target-requests 1 --busy-seconds 0 --idle-seconds 2
await 'ready after' 1
"$sextant" bench serve "$url" --image photos/rose/rose-0.jpg --connections 64 --rate 20000 --warmup 0 --duration 5 >bench.out 2>&1 &
bench=$!
await 'started ([0-9]* requests at once)' 1
await 'ready after' 2
ask
wait $bench || true
await 'stopping (one fewer is enough)' 1
[ "$(grep -c 'started' s.err)" = 2 ] || fail "$(cat s.err)"

# All end with the supervisor.
before=$(pgrep -P "$supervisor")
kill "$supervisor"
wait "$supervisor" || fail "exit code $?"
supervisor=
for process in $before; do
    ! kill -0 "$process" 2>/dev/null || fail "server $process runs on"
done

launch -- --rest_api_port=8501 --model_base_path=m
await 'warning: --rest_api_port has no effect: the socket was handed over' 1
kill "$supervisor"
wait "$supervisor" || true
supervisor=
fails 1 supervise --rest-api-port 0 --port 0 -- --no-such-option
warns 'the options after -- are not serve'
# What another server would not do better: help, options that are wrong.
timeout 60 "$sextant" supervise --rest-api-port 0 --port 0 -- --help >s.out 2>s.err || fail "exit code $?: $(cat s.err)"
grep -q '^usage: sextant serve' s.out || fail "no help of serve: $(cat s.out)"
[ "$(grep -c 'started' s.err)" = 1 ] || fail "$(cat s.err)"

# One whose model never finishes loading is given up; here, the model's directory does not settle.
mkdir -p models/slow/1
launch --start-timeout 0.7 -- --model_name=m --model_base_path="$here/models/slow"
for _ in $(seq 100); do
    touch "models/slow/1/$RANDOM"
    ! grep -q 'not ready after 0.7 s (--start-timeout): killed' s.err || break
    sleep 0.05
done
await 'not ready after 0.7 s (--start-timeout): killed' 1
await 'killed by signal 9' 1
await 'started' 2
kill "$supervisor"
wait "$supervisor" || true
supervisor=
fails 2 supervise --min-servers 2 -- --model_base_path=models/m
warns '--min-servers 2 is more than --max-servers 1'
fails 2 supervise
warns 'give the options of serve after --'
# Sockets that systemd gives have these names.
activated() {
    timeout 20 bash -c "LISTEN_PID=\$\$ LISTEN_FDS=1 LISTEN_FDNAMES=$1 exec \"\$0\" serve --rest_api_port=0 --model_base_path=m" \
        "$sextant" >out 2>err 3</dev/null && fail 'it served' || true
}
activated web
warns 'LISTEN_FDNAMES: socket 1 is "web"; expected "rest" and "grpc"'
activated rest
warns 'descriptor 3 is not a listening socket'
