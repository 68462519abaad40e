# A model server; source it after lib.sh.
#
#   launch OPTIONS...       starts `sextant serve` on a free port, after stopping the one before: its
#                           process is $server, and it writes to serve.out and serve.err
#   start WHAT OPTIONS...   starts one and waits until it prints "Serving WHAT at URL": its port is
#                           $port, and $url the address
#   stop                    stops it
server=
stop() {
    [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server"; } || true
    server=
}
trap 'stop; rm -rf "$here"' EXIT
launch() {
    ran="serve $*"
    stop
    # Whoever waits for a line must not find the last server's, which the new process has yet to truncate.
    : >serve.out
    : >serve.err
    "$sextant" serve --port=0 --rest_api_port=0 "$@" >serve.out 2>serve.err &
    server=$!
}
start() {
    local what=$1
    shift
    launch "$@"
    until grep -q "^Serving $what at " serve.out; do
        kill -0 $server || { cat serve.err; fail 'the server ended'; }
        sleep 0.02
    done
    url=$(sed -n "s/^Serving $what at //p" serve.out)
    port=$(sed -n 's/^Listening on port //p' serve.out)
}
