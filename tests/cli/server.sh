# A model server; source it after lib.sh.
#
#   start NAME OPTIONS...   starts `sextant serve` on a free port, after stopping the one before, and
#                           waits until it serves NAME: its process is $server, its port $port, and
#                           $url the address as it prints it
#   stop                    stops it
server=
stop() {
    [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server"; } || true
    server=
}
trap 'stop; rm -rf "$here"' EXIT
start() {
    local name=$1
    shift
    ran="serve $*"
    stop
    rm -f serve.out
    "$sextant" serve --port=0 --rest_api_port=0 "$@" >serve.out 2>serve.err &
    server=$!
    until grep -q "^Serving $name at " serve.out 2>/dev/null; do
        kill -0 $server || { cat serve.err; fail 'the server ended'; }
        sleep 0.02
    done
    url=$(sed -n "s/^Serving $name at //p" serve.out)
    port=$(sed -n 's/^Listening on port //p' serve.out)
}
