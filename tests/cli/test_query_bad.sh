#!/usr/bin/env bash
# query with servers that do not answer in JSON, and with names that could command a terminal; show,
# run and predict with such names.
. "$SEXTANT_SRC/tests/cli/lib.sh"
cat >server.py <<'PY'
import http.server, time
escape = "\\u001b]0;title\\u0007rose"
bodies = {
    "cut": b"[1,2", "empty": b"", "slow": b"{}", "html": b"<html>\x1b[31m</html>", "nan": b'{"predictions": [NaN]}',
    "name": ('{"predictions": [{"class": "%s", "classid": 0, "probabilities": [1]}]}' % escape).encode(),
    "raw": b'{"\xc2\x9b31m": 1}\r\n',
}
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/slow":
            time.sleep(3)
        if self.path in ("/moved", "/lost"):
            self.send_response(302)
            if self.path == "/moved":
                self.send_header("LOCATION", "https://example.org/models")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        body = bodies[self.path[1:]]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
PY
python3 server.py >port &
server=$!
trap 'kill $server; rm -rf "$here"' EXIT
until [ -s port ]; do sleep 0.02; done
url=http://127.0.0.1:$(cat port)
for what in cut empty html; do
    for json in '' --json; do
        # shellcheck disable=SC2086
        fails 1 query "$url/$what" $json
        warns "$url/$what: not a JSON response"
        [ ! -s out ] || fail 'the response was printed'
    done
done
warns '<html>?[31m</html>'
ok query "$url/nan"
says_line '{"predictions": [NaN]}'
fails 1 query "$url/moved"
warns_line "sextant query: $url/moved: HTTP status 302: redirected to https://example.org/models; redirects are not followed, give the URL of the model server"
fails 1 query "$url/lost"
warns_line "sextant query: $url/lost: HTTP status 302"
fails 6 query "$url/slow" --timeout=1
warns_line "sextant query: $url/slow: no complete response within 1 s (--timeout)"
fails 5 query "$url/nan" --max_response_bytes 2
warns "the response is larger than 2 bytes; raise --max_response_bytes"
ok query "$url/nan" --max-response-bytes 1K
ok query "$url/name"
says_line '0: ?]0;title?rose 100.0 %'
ok query "$url/raw"
says '{"?31m": 1}'

# A class name with an escape sequence in a run and in its SavedModel.
class=$'photos/\e]0;title\arose'
mkdir -p "$class" photos/tulip
cp "$SEXTANT_SRC/fuzz/corpus/jpeg/rgb.jpg" "$class/1.jpg"
cp "$SEXTANT_SRC/fuzz/corpus/jpeg/rgb.jpg" photos/tulip/1.jpg
ok train mnist_cnn --data photos --model-dir run --steps 1 --batch-size 2 -- --num_classes 2
ok export run --out models
ok show run
says_line 'classes: 2: ?]0;title?rose, tulip'
ok show models
says_line 'classes: 2: ?]0;title?rose, tulip'
ok run models --image photos/tulip/1.jpg
says '?]0;title?rose'
says_not $'\e'
# predict writes the names unchanged to files, but not to terminals.
ok predict run --image photos/tulip/1.jpg
says $'\e]0;title\arose'
ran='predict on a terminal'
python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]))' "$sextant" \
    predict run --image photos/tulip/1.jpg >out 2>err </dev/null || fail 'predict failed'
says '?]0;title?rose'
says_not $'\e'

# libcurl is loaded with the first request: what makes none does without.
mkdir none
echo >none/libcurl.so.4
LD_LIBRARY_PATH=$here/none fails 1 query "$url/nan"
warns "$here/none/libcurl.so.4: "
warns 'libcurl.so.4 is part of Debian'
LD_LIBRARY_PATH=$here/none ok zoo
