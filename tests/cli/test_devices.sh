#!/usr/bin/env bash
. "$SEXTANT_SRC/tests/cli/lib.sh"
unset VIRTUAL_ENV PJRT_NAMES_AND_LIBRARY_PATHS TPU_LIBRARY_PATH TPU_NAME TPU_CONFIG TF_CONFIG \
    COLAB_TPU_ADDR KUBE_GOOGLE_CLOUD_TPU_ENDPOINTS GCE_METADATA_IP
export GCE_METADATA_HOST=127.0.0.1:1

ok devices
grep -qE '^cpu +/device:CPU:0 .*/job:localhost/replica:0/task:0/device:CPU:0 ' out || fail 'no cpu'
grep -qE '^host +/device:CPU:0 .* host kernels$' out || fail 'no host'
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

ok devices --device cpu --type TPU
says_line 'no device of type TPU'
# libtpu is not asked where there is no chip: it would ask the cloud for minutes
mkdir -p venv/lib/python3.11/site-packages/libtpu
echo 'no library' >venv/lib/python3.11/site-packages/libtpu/libtpu.so
grep -qsx 0x1ae0 /sys/bus/pci/devices/*/vendor ||
    { VIRTUAL_ENV=$PWD/venv ok devices --type TPU; says 'no TPU chip among'; }

fails 2 devices --device tpuu
warns 'did you mean "tpu"?'
fails 2 devices --type NPU
fails 6 devices --device tpu
warns 'no PJRT plugin for tpu: pip install libtpu in the active virtual environment'
fails 6 devices --device pjrt:cpu --python gone/bin/python
warns 'packages of gone/bin/python (no such file)'
fails 6 devices --device pjrt:mine
warns 'only tpu, cuda and cpu are known by name'
echo 'no library' >here.so
fails 1 devices --pjrt-plugin here.so
warns './here.so: file too short'
TF_CONFIG='{"clust' ok devices --explain
warns 'no TPU: TF_CONFIG: invalid JSON'
TPU_NAME=mine ok devices --explain
warns 'no TPU: cannot find the project of TPU "mine" (set --project)'
