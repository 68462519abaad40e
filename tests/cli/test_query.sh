#!/usr/bin/env bash
# query over REST and gRPC: the same answers, whatever is sent and however the model is named; TLS; API keys.
. "$SEXTANT_SRC/tests/cli/lib.sh"
. "$SEXTANT_SRC/tests/cli/photos.sh"
. "$SEXTANT_SRC/tests/cli/server.sh"
photos 3
ok train mnist_cnn --data photos --model-dir run --steps 2 -- --num_classes 3
ok export run --out models/m
image=photos/rose/rose-0.jpg
same() { # WORDS...: both protocols print the same
    ok query "$url" "$@"
    mv out rest
    ok query "$url" --protocol grpc "$@"
    diff rest out >diff || fail "$(cat diff)"
}
start m --model_name=m --model_base_path=models/m --grpc_socket_path="$here/socket"
at=localhost:$port
same --image $image photos/daisy/daisy-0.jpg
grep -qE "^$image: (daisy|rose|tulip) [0-9.]+ %$" out || fail 'answer'
same --image $image --json
says '"probabilities"'
ok data take photos --size 28 --channels 1 --count 2 --out x.npy
same --signature tensors --input x.npy --json
same --signature tensors --input image=x.npy --json
python3 - <<'PY'
import json, re, struct
data = open("x.npy", "rb").read()
start = 10 + struct.unpack("<H", data[8:10])[0]
header = data[10:start].decode()
n, *rest = (int(d) for d in re.search(r"\((.*?)\)", header).group(1).split(",") if d.strip())
values = struct.unpack(f"<{len(data[start:]) // 4}f", data[start:])
open("x64.npy", "wb").write(data[:10] + header.replace("<f4", "<f8").encode() + struct.pack(f"<{len(values)}d", *values))
def nest(values, dims):
    size = len(values) // dims[0]
    return list(values) if len(dims) == 1 else [nest(values[i * size:][:size], dims[1:]) for i in range(dims[0])]
x = nest(values, [n, *rest])
json.dump({"signature_name": "tensors", "inputs": x}, open("columns.json", "w"))
json.dump(x, open("list.json", "w"))
PY
same --signature tensors --input x64.npy --json
same --request columns.json --json
says '"outputs"'
same --signature tensors --request list.json --json
says '"predictions"'
ran='query --request -'
for protocol in rest grpc; do
    "$sextant" query "$url" --protocol $protocol --signature tensors --request - --json <list.json >$protocol.json || fail 'of standard input'
    diff $protocol.json out >diff || fail "$(cat diff)"
done
same --method metadata
says '"signature_def"'
same
says '"state": "AVAILABLE"'

# The model by options, in every form of an address.
for address in "$at" "http://$at" "http://$at/"; do
    for which in '' '--version 1'; do
        for protocol in rest grpc; do
            # shellcheck disable=SC2086
            ok query "$address" --model m $which --protocol $protocol --image $image
        done
    done
done
ok query "unix:$here/socket" --model m --image $image
ok query "unix:$here/socket" --model m --protocol grpc --image $image
ok query "$url/versions/1" --protocol grpc --image $image
fails 1 query "$at" --model m --version 7 --image $image
warns "http://$at/v1/models/m/versions/7:predict: HTTP status 404: Servable not found for request: Specific(m, 7)"
fails 1 query "$at" --model m --version 7 --image $image --protocol grpc
warns 'NOT_FOUND: Servable not found for request: Specific(m, 7)'
fails 1 query "$at" --model m --label no --image $image --protocol grpc
warns 'Unrecognized servable version label: no'
fails 1 query "$at" --model m --version x --image $image --protocol grpc
warns 'version "x": expected a number'
fails 1 query "$at" --image $image --protocol grpc
warns 'gRPC has no URL of a model: give its name'
fails 1 query "$url" --model n --image $image
fails 1 query "$url" --image $image --protocol grpc --signature no
warns 'Serving signature name: "no" not found'
fails 1 query "$url" --protocol grpc --signature tensors --request columns.json
fails 2 query "$url" --version 1 --label a
warns 'mutually exclusive'
fails 2 query "$url" --method classify
warns '--method classify needs --request or another input'
fails 2 query "$url" --method status --image $image
warns '--method status sends nothing'
fails 5 query "$url" --protocol grpc --max-response-bytes 20 --image $image
warns 'the response is larger than 20 bytes; raise --max-response-bytes'

# The example in C asks the same.
client=$(dirname "$SEXTANT_BIN")/examples/client
if [ -x "$client" ]; then
    ran="$client"
    for protocol in rest grpc; do
        "$client" "$at" m $protocol $image photos/daisy/daisy-0.jpg >$protocol.txt 2>err || fail 'of the example'
    done
    diff rest.txt grpc.txt >diff || fail "$(cat diff)"
    grep -qE "^$image: class [0-2], probability 0\.[0-9]+$" rest.txt || fail "$(cat rest.txt)"
fi

# TLS with certificates on both sides, and keys.
make() { # NAME [CA]
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$1.key" -out "$1.pem" \
        -subj "/CN=$1" -addext 'subjectAltName=DNS:localhost' -days 2 ${2:+-CA "$2.pem" -CAkey "$2.key"} 2>/dev/null
}
make ca
make server ca
make client ca
printf 'server_key: "server.key"\nserver_cert: "server.pem"\ncustom_ca: "ca.pem"\nclient_verify: true\n' >tls.cfg
printf 'me sesame-sesame-sesame-sesame\n' >keys
start m --model_name=m --model_base_path=models/m --rest_api_ssl_config_file=tls.cfg --api_keys_file=keys
printf 'sesame-sesame-sesame-sesame\n' >key
tls=(--cacert ca.pem --cert client.pem --key client.key)
for protocol in rest grpc; do
    ok query "$url" --protocol $protocol "${tls[@]}" --image $image
    ok query "$url" --protocol $protocol "${tls[@]}" --api-key @key --image $image
    fails 1 query "$url" --protocol $protocol --cert client.pem --key client.key --image $image
    fails 6 query "$url" --protocol $protocol --cacert ca.pem --image $image --retries 0
    fails 1 query "$url" --protocol $protocol --cacert missing.pem --image $image
done
start m --model_name=m --model_base_path=models/m --api_keys_file=keys
for protocol in rest grpc; do
    ok query "$url" --protocol $protocol --api-key sesame-sesame-sesame-sesame --image $image
    ok query "$url" --protocol $protocol --api-key @key
    fails 1 query "$url" --protocol $protocol --api-key wrong --image $image
    warns 'unknown API key'
    warns_not wrong
done
fails 1 query "$url" --api-key 'two words' --image $image
warns 'the API key has spaces'
