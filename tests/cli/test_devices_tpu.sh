#!/usr/bin/env bash
# Finding a TPU: the printed decision, and what train does with it.
. "$SEXTANT_SRC/tests/cli/lib.sh"
unset VIRTUAL_ENV PJRT_NAMES_AND_LIBRARY_PATHS TPU_LIBRARY_PATH TPU_NAME TPU_CONFIG TF_CONFIG \
    COLAB_TPU_ADDR KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS GCE_METADATA_IP CLOUDSDK_AUTH_ACCESS_TOKEN
python3 "$SEXTANT_SRC/tests/distribute/cloud_server.py" log >port &
server=$!
trap 'kill $server; rm -rf "$here"' EXIT
while [ ! -s port ]; do sleep 0.1; done
export GCE_METADATA_HOST=127.0.0.1:$(cat port)
export CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU=http://$GCE_METADATA_HOST/
data=generated:digits?n=64

ok devices --tpu idle
says 'TPU search:'
says 'this machine                     10.0.0.7 is not one of its workers'
says_line 'chosen: idle (v3-8), from --tpu, 1 worker, first: grpc://10.9.9.9:8470'
ok devices --tpu idle --json
python3 -c 'import json; c = json.load(open("out"))["cluster"]
assert c == {"local": False, "name": "idle", "accelerator_type": "v3-8",
             "master": "grpc://10.9.9.9:8470", "workers": ["10.9.9.9:8470"]}, c' || fail 'other JSON'
fails 1 devices --tpu gone
warns 'Resource not found'
fails 2 devices --tpu a --master local
warns 'cannot be combined'

TPU_NAME=here fails 6 train mnist_cnn --data "$data" --device tpu --explain
warns 'TPU_NAME                         here'
warns 'chosen: here (v5litepod-8), from TPU_NAME, this machine'
warns 'pip install libtpu'
fails 1 train mnist_cnn --data "$data" --tpu grpc://10.0.0.2
warns "is attached to another machine, at grpc://10.0.0.2:8470"
fails 6 train mnist_cnn --data "$data" --device tpu
warns 'no TPU found (--tpu: not given'
warns 'TF_CONFIG: not set'
! grep -q ya29 err out || fail 'the token is printed'
