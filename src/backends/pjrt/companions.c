/* See companions.h. */
#include "backends/pjrt/companions.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"

static const struct companion {
    int cuda; /* the CUDA version; 0 = any */
    const char *name;
} companions[] = {
    {12, "libcudart.so.12"},   {13, "libcudart.so.13"},    {12, "libnvrtc.so.12"},
    {13, "libnvrtc.so.13"},    {12, "libnvJitLink.so.12"}, {13, "libnvJitLink.so.13"},
    {12, "libcublasLt.so.12"}, {13, "libcublasLt.so.13"},  {12, "libcublas.so.12"},
    {13, "libcublas.so.13"},   {0, "libcusparse.so.12"},   {12, "libcusolver.so.11"},
    {13, "libcusolver.so.12"}, {12, "libcufft.so.11"},     {13, "libcufft.so.12"},
    {12, "libcupti.so.12"},    {13, "libcupti.so.13"},     {0, "libnccl.so.2"},
    {0, "libcudnn.so.9"},
};

/* For SITE/jax_plugins/xla_cuda13/xla_cuda_plugin.so: 13, and the length of SITE/. Otherwise 0. */
static int cuda_of(const char *path, int *out_site)
{
    static const char folder[] = "jax_plugins/xla_cuda";
    const char *at = strstr(path, folder);
    char *end = NULL;
    long cuda = at == NULL ? 0 : strtol(at + sizeof(folder) - 1, &end, 10);
    *out_site = at == NULL ? 0 : (int)SX_MIN(at - path, PATH_MAX);
    return cuda > 0 && cuda < 100 && *end == '/' ? (int)cuda : 0;
}

static bool load_beside(const char *path, int site, const char *name)
{
    char pattern[PATH_MAX];
    glob_t found = {0};
    int used = snprintf(pattern, sizeof(pattern), "%.*snvidia/*/lib/%s", site, path, name);
    bool ok = used < (int)sizeof(pattern) && glob(pattern, 0, NULL, &found) == 0 &&
              dlopen(found.gl_pathv[0], RTLD_NOW | RTLD_LOCAL) != NULL;
    globfree(&found);
    return ok;
}

/* Loads all; appends the names of those not found to `missing` (may be NULL). */
static void load_all(const char *path, sx_buf *missing)
{
    int site, cuda = cuda_of(path, &site);
    for (size_t i = 0; cuda != 0 && i < SX_COUNT(companions); i++) {
        const struct companion *c = &companions[i];
        bool wanted = c->cuda == 0 || c->cuda == cuda;
        if (wanted && !load_beside(path, site, c->name) &&
            dlopen(c->name, RTLD_NOW | RTLD_LOCAL) == NULL && missing != NULL) {
            sx_buf_printf(missing, "%s%s", missing->size > 0 ? ", " : "", c->name);
        }
    }
}

void sx_pjrt_load_companions(const char *path)
{
    load_all(path, NULL);
}

sx_status sx_pjrt_blame_companions(const char *path, sx_status status)
{
    int site, cuda = cuda_of(path, &site);
    sx_buf missing;
    if (status == SX_OK) {
        return SX_OK;
    }
    sx_buf_init(&missing, 1 << 12);
    load_all(path, &missing);
    if (missing.size > 0) {
        status = sx_status_annotate(status, __FILE__, __LINE__,
                                    "missing in %.*snvidia/*/lib: %s (install with pip install "
                                    "\"jax-cuda%d-plugin[with-cuda]\")",
                                    site, path, sx_buf_text(&missing), cuda);
    }
    sx_buf_deinit(&missing);
    return status;
}
