#!/usr/bin/env bash
# Options of a plugin's client and of XLA; the limit of a GPU's memory, which the driver is asked for. The GPU is our own
# plugin under the name of CUDA's, and the driver four functions.
. "$SEXTANT_SRC/tests/cli/lib.sh"
unset PJRT_NAMES_AND_LIBRARY_PATHS TF_FORCE_GPU_ALLOW_GROWTH
gpu=$here/xla_cuda_plugin.so ref=$SEXTANT_TEST_BIN/libpjrt_ref.so
ln -s "$ref" "$gpu"
export SX_PJRT_REF=platform=cuda,limit=1000000000
mkdir driver none
cat >driver.c <<'C'
#include <stddef.h>
int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGetCount(int *count) { return *count = 2, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceTotalMem_v2(size_t *bytes, int device) { return *bytes = device == 0 ? 1000000000 : 2000000000, 0; }
C
${CC:-cc} -shared -fPIC -o driver/libcuda.so.1 driver.c
devices() { # of the GPU, as JSON
    ok devices --device pjrt --pjrt-plugin "$gpu" --json "$@"
    python3 -c 'import json, sys; print([(d["memory_bytes"], d["memory_in_use_bytes"]) for d in json.load(sys.stdin)["devices"]])' <out >memory
}
devices
[ "$(cat memory)" = "$(printf '[%s, %s, %s, %s]' '(1000000000, 0)'{,,,})" ] || fail "$(cat memory)"
devices --device-options visible_devices=[0],memory_fraction=0.25
[ "$(cat memory)" = '[(250000000, 0)]' ] || fail "$(cat memory)"
devices --device-options visible_devices=[1],preallocate=true
[ "$(cat memory)" = '[(1000000000, 1000000000)]' ] || fail "$(cat memory)"
TF_FORCE_GPU_ALLOW_GROWTH=false devices --device-options visible_devices=[1]
[ "$(cat memory)" = '[(1000000000, 1000000000)]' ] || fail "$(cat memory)"
TF_FORCE_GPU_ALLOW_GROWTH=true devices --device-options visible_devices=[1]
[ "$(cat memory)" = '[(1000000000, 0)]' ] || fail "$(cat memory)"
fails 2 devices --device pjrt --pjrt-plugin "$gpu" --device-options memory_fractoin=0.5
warns 'device_options: this plugin has no option memory_fractoin'
warns 'did you mean "memory_fraction"?'
fails 2 devices --device pjrt --pjrt-plugin "$gpu" --device-options preallocate=1
warns 'device_options: preallocate takes true or false'
fails 2 devices --device cpu --gpu-memory-limit 1G
warns 'are for PJRT devices (tpu, cuda, pjrt:NAME), not for cpu'
fails 2 devices --gpu-memory-limit 1G
warns 'device_options and gpu_memory_limit are of one device: name it'

# A limit is a part of the memory of the largest GPU.
export LD_LIBRARY_PATH=$here/driver
devices --gpu-memory-limit 500000000 --device-options visible_devices=[0]
[ "$(cat memory)" = '[(250000000, 0)]' ] || fail "$(cat memory)"
fails 2 devices --device pjrt --pjrt-plugin "$gpu" --gpu-memory-limit 3G
warns 'gpu_memory_limit is 3221225472 bytes, but the GPU has 2000000000'
fails 2 devices --device pjrt --pjrt-plugin "$gpu" --gpu-memory-limit 1K --device-options memory_fraction=0.5
warns 'gpu_memory_limit cannot be combined with memory_fraction'
unset LD_LIBRARY_PATH SX_PJRT_REF
fails 2 devices --device pjrt --pjrt-plugin "$ref" --gpu-memory-limit 1G
warns 'gpu_memory_limit requires a CUDA plugin, and '

# XLA's options, for every program.
train=(train linear --data 'generated:digits?n=8' --steps 1 --batch-size 8 --no-compile-cache)
ok "${train[@]}" --device pjrt --pjrt-plugin "$ref" --xla-options xla_cpu_enable_fast_math=false --model-dir one
fails 1 "${train[@]}" --device pjrt --pjrt-plugin "$ref" --xla-options no_such=1 --model-dir two
warns "No such compile option: 'no_such'"
fails 2 "${train[@]}" --device pjrt --pjrt-plugin "$ref" --xla-options xla_a=[1] --model-dir two
warns "xla_options: xla_a is a list, which XLA's options cannot be"
fails 2 "${train[@]}" --device cpu --xla-options xla_a=1 --model-dir two
warns 'xla_options "xla_a=1" is only for PJRT devices (tpu, cuda, pjrt:NAME), not for cpu'
fails 2 "${train[@]}" --device cpu --gpu-memory-limit 1G --model-dir two
warns 'gpu_memory_limit is 1073741824'
