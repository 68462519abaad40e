#!/usr/bin/env bash
# TLS on the port of the REST API: certificates that are renewed while serving, and those of clients.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/server.sh"
ok train linear --data 'generated:digits?n=8' --model-dir run --steps 1
ok export run --out models/digits
make() { # NAME [CA]: a key, and a certificate signed by the CA, or by itself
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1.key.new" -out "$1.pem.new" \
        -subj "/CN=$1" -addext 'subjectAltName=DNS:localhost' -days 2 ${2:+-CA "$2.pem" -CAkey "$2.key"} 2>/dev/null
    mv "$1.key.new" "$1.key"
    mv "$1.pem.new" "$1.pem"
}
ask() { # EXIT_CODE curl's options...; "no": any but 0
    local expected=$1
    shift
    code=0
    ran="curl $*"
    curl -sS --max-time 20 -o out "$@" "https://localhost:$port/v1/models/digits" 2>err || code=$?
    [ "$code" = "$expected" ] || [ "$expected:$((code > 0))" = no:1 ] || fail "curl ended with $code, expected $expected"
}
make ca
make server ca
make client ca
make stranger
printf 'server_key: "server.key"\nserver_cert: "server.pem"\n' >tls.cfg
printf 'server_key: "server.key"\nserver_cert: "server.pem"\ncustom_ca: "ca.pem"\nclient_verify: true\n' >mutual.cfg

start digits --model_name=digits --model_base_path="$here/models/digits" --rest_api_ssl_config_file=tls.cfg
[ "${url#https://localhost:}" != "$url" ] || fail "the address is $url"
ask 0 --cacert ca.pem
says '"state": "AVAILABLE"'
ask 0 --cacert ca.pem --http2
ask no --cacert stranger.pem
ask no --cacert ca.pem --tls-max 1.1
code=0
curl -sS --max-time 20 -o out "http://localhost:$port/v1/models/digits" 2>err || code=$?
[ "$code" != 0 ] || fail 'a plain request was answered'

# A new certificate is used as soon as it is there; one that does not fit its key never is.
before=$(openssl x509 -in server.pem -noout -serial)
make server ca
served() { openssl s_client -connect "localhost:$port" </dev/null 2>/dev/null | openssl x509 -noout -serial; }
for ((i = 0; i < 100; i++)); do
    [ "$(served)" = "$before" ] || break
    sleep 0.1
done
[ "$(served)" = "$(openssl x509 -in server.pem -noout -serial)" ] || fail 'the new certificate is not used'
cp stranger.pem server.pem
sleep 1.5
ask 0 --cacert ca.pem
make server ca

start digits --model_name=digits --model_base_path="$here/models/digits" --rest_api_ssl_config_file=mutual.cfg
ask 0 --cacert ca.pem --cert client.pem --key client.key
ask no --cacert ca.pem
ask no --cacert ca.pem --cert stranger.pem --key stranger.key
stop

printf 'server_cert: "server.pem"\n' >bad.cfg
fails 1 serve --model_base_path="$here/models/digits" --rest_api_port=0 --port=0 --rest_api_ssl_config_file=bad.cfg
warns 'bad.cfg: server_key is missing'
