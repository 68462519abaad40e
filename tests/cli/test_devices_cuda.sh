#!/usr/bin/env bash
# CUDA's libraries are found in the packages beside the GPU plugin's; those that are missing are named.
# The plugin is our own behind a library that needs one of them to load, and looks for another by name.
. "$SEXTANT_SRC/tests/cli/lib.sh"
unset PJRT_NAMES_AND_LIBRARY_PATHS LD_LIBRARY_PATH
site=$here/site
cuda=$site/nvidia/cuda_runtime/lib nccl=$site/nvidia/nccl/lib plugin=$site/jax_plugins/xla_cuda12/xla_cuda_plugin.so
mkdir -p "$cuda" "$nccl" "$(dirname "$plugin")"
echo 'int version(void) { return 12; }' >cudart.c
echo 'int ranks;' >nccl.c
cat >plugin.c <<'C'
#include <dlfcn.h>
#include <stdlib.h>
int version(void);
void *GetPjrtApi(void)
{
    void *library = dlopen(getenv("PJRT_REF"), RTLD_NOW | RTLD_LOCAL), *symbol;
    void *(*get)(void);
    *(void **)&get = symbol = library == NULL ? NULL : dlsym(library, "GetPjrtApi");
    int found = version() == 12 && dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD) != NULL;
    return found && symbol != NULL ? get() : NULL;
}
C
build() { ${CC:-cc} -shared -fPIC "$@"; }
build -Wl,-soname,libcudart.so.12 -o "$cuda/libcudart.so.12" cudart.c
build -Wl,-soname,libnccl.so.2 -o "$nccl/libnccl.so.2" nccl.c
build -o "$plugin" plugin.c "$cuda/libcudart.so.12" -ldl
export PJRT_REF=$SEXTANT_TEST_BIN/libpjrt_ref.so

# Loaded: what then fails is our plugin, which does not know the option that GPU plugins are given.
run devices --device pjrt --pjrt-plugin "$plugin"
[ "$code" != 0 ] || fail 'our own plugin knows no preallocate'
warns 'unknown client option preallocate'

rm "$cuda/libcudart.so.12"
if ! PATH=$PATH:/sbin:/usr/sbin ldconfig -p | grep -qF libcudart.so.12; then
    run devices --device pjrt --pjrt-plugin "$plugin"
    [ "$code" != 0 ] || fail 'it loads without the library that it needs'
    warns "missing in $site/nvidia/*/lib: libcudart.so.12, "
    warns '(install with pip install "jax-cuda12-plugin[with-cuda]")'
    warns 'loading the PJRT plugin'
fi
