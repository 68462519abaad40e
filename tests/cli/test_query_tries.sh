#!/usr/bin/env bash
# What query sends again and what it does not, and the tokens of a service account.
. "$SEXTANT_SRC/tests/cli/lib.sh"
openssl genrsa -out account.key 2048 2>/dev/null
openssl rsa -in account.key -pubout -out account.pub 2>/dev/null
cat >server.py <<'PY'
# Answers as the path says, and writes each request to ./log.
import base64, http.server, json, socket, subprocess, urllib.parse
tokens = 0
def unpack(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
def check(form):
    form = urllib.parse.parse_qs(form.decode())
    assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"], form
    head, claims, signature = form["assertion"][0].split(".")
    assert json.loads(unpack(head)) == {"alg": "RS256", "typ": "JWT", "kid": "k1"}
    open("signed", "w").write(head + "." + claims)
    open("signature", "wb").write(unpack(signature))
    subprocess.run(["openssl", "dgst", "-sha256", "-verify", "account.pub", "-signature", "signature", "signed"],
                   check=True, stdout=subprocess.DEVNULL)
    claims = json.loads(unpack(claims))
    assert claims["iss"] == "robot@example.org" and claims["exp"] - claims["iat"] == 3600, claims
    assert claims["scope"] == "https://www.googleapis.com/auth/cloud-platform", claims
    return claims["aud"]
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self, code, body=b"{}", **headers):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)
    def handle_any(self):
        global tokens
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with open("log", "a") as log:
            print(self.command, self.path, self.headers.get("Authorization", "-"), file=log)
        seen = sum(line.split()[1] == self.path for line in open("log"))
        if self.path == "/token":
            assert check(body).endswith("/token")
            tokens += 1
            self.answer(200, json.dumps({"access_token": f"t{tokens}", "expires_in": 3600}).encode())
        elif self.path == "/refusing":
            self.answer(400, b'{"error": "invalid_grant", "error_description": "no such account"}')
        elif self.path.startswith("/busy") and seen < 3:
            self.answer(503, b'{"error": "not ready"}')
        elif self.path.startswith("/later") and seen < 2:
            self.answer(429, Retry_After="1")
        elif self.path.startswith("/never"):
            self.answer(429, Retry_After=str(2**63 - 1))
        elif self.path.startswith("/broken"):
            self.connection.shutdown(socket.SHUT_RDWR)
        elif self.path.startswith("/revoked") and seen < 2:
            self.answer(401, b'{"error": "revoked"}')
        elif self.path.startswith("/full"):
            self.answer(503, b'{"error": "full"}')
        else:
            self.answer(200, b'{"predictions": [1]}')
    do_GET = do_POST = handle_any
    def log_message(self, *words): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
PY
python3 server.py >port 2>server.err &
server=$!
trap 'kill $server; rm -rf "$here"' EXIT
until [ -s port ]; do sleep 0.02; done
url=http://127.0.0.1:$(cat port)
echo '{"instances": [1]}' >request.json
times() { # PATH N: it was asked for so often
    [ "$(cut -d ' ' -f 2 log | grep -cxF "$1" || true)" = "$2" ] || fail "$1 not $2 times: $(cat log) $(cat server.err)"
}
ok query "$url/busy" --request request.json
times /busy:predict 3
fails 6 query "$url/full" --request request.json
warns 'HTTP status 503: full'
times /full:predict 3
fails 6 query "$url/full/not" --request request.json --retries 0
times /full/not:predict 1
before=$(date +%s%N)
ok query "$url/later" --request request.json
[ $(($(date +%s%N) - before)) -ge 1000000000 ] || fail 'it did not wait for a second'
times /later:predict 2
fails 5 query "$url/later/than" --request request.json --timeout 1
fails 5 query "$url/never" --request request.json --timeout 1
times /never:predict 1
# A request that may have run is sent once, a question again.
fails 6 query "$url/broken" --request request.json
times /broken:predict 1
fails 6 query "$url/broken"
times /broken 3
fails 6 query http://127.0.0.1:1/v1/models/m --request request.json
warns 'connect'

python3 - "$url" <<'PY'
import json, sys
account = {"type": "service_account", "client_email": "robot@example.org", "private_key_id": "k1",
           "private_key": open("account.key").read(), "token_uri": sys.argv[1] + "/token"}
json.dump(account, open("key.json", "w"))
json.dump({**account, "token_uri": sys.argv[1] + "/refusing"}, open("refused.json", "w"))
json.dump({**account, "token_uri": "http://example.org/token"}, open("plain.json", "w"))
json.dump({**account, "type": "authorized_user"}, open("user.json", "w"))
json.dump({**account, "private_key": "x"}, open("nokey.json", "w"))
json.dump({k: v for k, v in account.items() if k != "token_uri"}, open("nouri.json", "w"))
PY
ok query "$url/m" --request request.json --credentials key.json
grep -qxF 'POST /m:predict Bearer t1' log || fail "$(cat log) $(cat server.err)"
ok query "$url/revoked" --request request.json --credentials key.json
grep -qxF 'POST /revoked:predict Bearer t2' log || fail "$(cat log)"
grep -qxF 'POST /revoked:predict Bearer t3' log || fail "$(cat log)"
fails 1 query "$url/m" --request request.json --credentials refused.json
warns 'asking for a token of robot@example.org: '
warns 'HTTP status 400: invalid_grant: no such account'
fails 1 query "$url/m" --request request.json --credentials plain.json
warns 'plain.json: token_uri "http://example.org/token": expected https://'
fails 1 query "$url/m" --request request.json --credentials user.json
warns 'user.json: not the key of a service account'
fails 1 query "$url/m" --request request.json --credentials nokey.json
warns 'nokey.json: "private_key" is no RSA key in PEM'
fails 1 query "$url/m" --request request.json --credentials nouri.json
warns 'nouri.json: "token_uri" is missing'
fails 1 query "$url/m" --request request.json --credentials missing.json
fails 2 query "$url/m" --request request.json --credentials key.json --api-key x
warns 'mutually exclusive'
# Lines of a text, and lists.
printf 'one\r\ntwo "2"\nthree' >lines.txt
ok query "$url/lines" --lines lines.txt --json
