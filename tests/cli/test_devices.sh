#!/usr/bin/env bash
. "$SEXTANT_SRC/tests/cli/lib.sh"
unset VIRTUAL_ENV PJRT_NAMES_AND_LIBRARY_PATHS TPU_LIBRARY_PATH TPU_NAME TPU_CONFIG TF_CONFIG \
    COLAB_TPU_ADDR KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS GCE_METADATA_IP
export GCE_METADATA_HOST=127.0.0.1:1

ok devices
grep -qE '^cpu +/device:CPU:0 .*/job:localhost/replica:0/task:0/device:CPU:0 ' out || fail 'no cpu'
grep -qE '^ref +/device:CPU:0 .* reference$' out || fail 'no ref'
grep -qE '^tpu +none .*pip install libtpu' out || fail 'no word of what is missing'
quiet
says_not 'Num TPU Cores'

ok devices --type TPU
says_not '/device:'
ok devices --type TPU --json
python3 -c 'import json; d = json.load(open("out")); assert d["devices"] == [] and d["tpu_cores"] == 0
assert d["missing"][0]["device"] == "tpu", d' || fail 'the JSON is another'
ok devices --virtual-devices 2 --device cpu --json
python3 -c 'import json; d = json.load(open("out"))["devices"]
assert [x["name"] for x in d] == ["/device:CPU:0", "/device:CPU:1"], d
assert d[0]["full_name"] == "/job:localhost/replica:0/task:0/device:CPU:0" and d[0]["type"] == "CPU"
assert d[0]["memory_bytes"] > 2**20' || fail 'the JSON is another'

fails 2 devices --device tpuu
warns 'did you mean "tpu"?'
fails 2 devices --type NPU
fails 1 devices --device tpu
warns 'pip install libtpu'
