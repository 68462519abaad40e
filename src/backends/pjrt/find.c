/* The search for PJRT plugins; see sx_pjrt_find() in plugin.h. */
#include <dirent.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/pjrt/plugin.h"
#include "base/buffer.h"

/* The packages that contain a plugin, and the path of its library in site-packages. */
static const struct {
    const char *name, *package, *library;
} packages[] = {
    {"tpu", "libtpu", "libtpu/libtpu.so"},
    {"cuda", "jax-cuda13-pjrt", "jax_plugins/xla_cuda13/xla_cuda_plugin.so"},
    {"cuda", "jax-cuda12-pjrt", "jax_plugins/xla_cuda12/xla_cuda_plugin.so"},
    {"cpu", "xla-cpu-pjrt", "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so"},
};
enum { PACKAGES = sizeof(packages) / sizeof(packages[0]) };

/* The package directories of PREFIX/bin/python. */
static const char *const site_patterns[] = {
    "%s/lib/python3*/site-packages/%s",
    "%s/lib64/python3*/site-packages/%s",
    "%s/lib/python3/dist-packages/%s",
    "%s/local/lib/python3*/dist-packages/%s",
};

static bool is_named(const sx_pjrt_wish *wish, const char *name, size_t size)
{
    return wish->name == NULL ||
           (strlen(wish->name) == size && memcmp(wish->name, name, size) == 0);
}

static bool take(char buffer[SX_PJRT_PATH_BYTES], const char *path, size_t size)
{
    if (size == 0 || size >= SX_PJRT_PATH_BYTES) {
        return false;
    }
    memcpy(buffer, path, size);
    buffer[size] = '\0';
    return true;
}

bool sx_pjrt_next_entry(const char **at, sx_pjrt_entry *out)
{
    const char *text = *at != NULL ? *at : getenv("PJRT_NAMES_AND_LIBRARY_PATHS");
    while (text != NULL && *text != '\0') {
        size_t size = strcspn(text, ","), name = strcspn(text, ":,");
        const char *here = text;
        *at = text += size + (text[size] == ',');
        if (name < size) {
            *out = (sx_pjrt_entry){here, here + name + 1, name, size - name - 1};
            return true;
        }
    }
    return false;
}

static bool from_names(const sx_pjrt_wish *wish, char buffer[SX_PJRT_PATH_BYTES])
{
    const char *at = NULL;
    sx_pjrt_entry entry;
    while (sx_pjrt_next_entry(&at, &entry)) {
        if (is_named(wish, entry.name, entry.name_size) &&
            take(buffer, entry.path, entry.path_size)) {
            return true;
        }
    }
    return false;
}

static bool from_tpu_variable(const sx_pjrt_wish *wish, char buffer[SX_PJRT_PATH_BYTES])
{
    const char *path = getenv("TPU_LIBRARY_PATH");
    return path != NULL && is_named(wish, "tpu", 3) && take(buffer, path, strlen(path));
}

/* PREFIX of PREFIX/bin/python. Symbolic links are not resolved, because a virtual environment's
 * packages are beside the link. */
static bool prefix_of(const sx_pjrt_wish *wish, char prefix[SX_PJRT_PATH_BYTES])
{
    const char *venv = getenv("VIRTUAL_ENV");
    if (wish->python == NULL) {
        return venv != NULL && take(prefix, venv, strlen(venv));
    }
    if (!take(prefix, wish->python, strlen(wish->python))) {
        return false;
    }
    for (int i = 0; i < 2; i++) {
        char *slash = strrchr(prefix, '/');
        if (slash == NULL) {
            return false;
        }
        *slash = '\0';
    }
    return true;
}

static bool glob_one(const char *pattern, char buffer[SX_PJRT_PATH_BYTES])
{
    glob_t found = {0};
    bool ok = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0 &&
              take(buffer, found.gl_pathv[0], strlen(found.gl_pathv[0]));
    globfree(&found);
    return ok;
}

static bool from_packages(const sx_pjrt_wish *wish, char buffer[SX_PJRT_PATH_BYTES])
{
    char prefix[SX_PJRT_PATH_BYTES], pattern[2 * SX_PJRT_PATH_BYTES];
    if (!prefix_of(wish, prefix)) {
        return false;
    }
    for (int k = 0; k < PACKAGES; k++) {
        size_t n = sizeof(site_patterns) / sizeof(site_patterns[0]);
        for (size_t i = 0; is_named(wish, packages[k].name, strlen(packages[k].name)) && i < n;
             i++) {
            int used =
                snprintf(pattern, sizeof(pattern), site_patterns[i], prefix, packages[k].library);
            if (used < (int)sizeof(pattern) && glob_one(pattern, buffer)) {
                return true;
            }
        }
    }
    return false;
}

static void put_variable(sx_buf *text, const char *name)
{
    const char *value = getenv(name);
    if (value == NULL) {
        sx_buf_printf(text, ", %s (not set)", name);
    } else {
        sx_buf_printf(text, ", %s=%s", name, value);
    }
}

/* Appends "pip install libtpu", or without a name all packages with the device names they provide.
 */
static void put_packages(sx_buf *text, const sx_pjrt_wish *wish)
{
    int named = 0;
    for (int k = 0; k < PACKAGES; k++) {
        if (is_named(wish, packages[k].name, strlen(packages[k].name))) {
            sx_buf_printf(text, "%s%s", named++ == 0 ? "pip install " : " or ",
                          packages[k].package);
            if (wish->name == NULL) {
                sx_buf_printf(text, " (%s)", packages[k].name);
            }
        }
    }
    sx_buf_puts(
        text,
        named > 0
            ? " in the active virtual environment, or give its interpreter with --python or the "
              "library with --pjrt-plugin"
            : "only tpu, cuda and cpu are known by name; give the library with --pjrt-plugin");
}

static void put_interpreter(sx_buf *text, const sx_pjrt_wish *wish)
{
    if (wish->python == NULL) {
        put_variable(text, "VIRTUAL_ENV");
        return;
    }
    sx_buf_printf(text, ", packages of %s%s", wish->python,
                  access(wish->python, F_OK) == 0 ? "" : " (no such file)");
}

static sx_status not_found(const sx_pjrt_wish *wish)
{
    sx_buf text;
    sx_buf_init(&text, 16384);
    sx_buf_printf(&text, "no PJRT plugin%s%s: ", wish->name == NULL ? "" : " for ",
                  wish->name == NULL ? "" : wish->name);
    put_packages(&text, wish);
    sx_buf_puts(&text, "; searched: --pjrt-plugin (not given)");
    put_variable(&text, "PJRT_NAMES_AND_LIBRARY_PATHS");
    put_variable(&text, "TPU_LIBRARY_PATH");
    put_interpreter(&text, wish);
    sx_status status = sx_error(SX_UNAVAILABLE, "%s", sx_buf_text(&text));
    sx_buf_deinit(&text);
    return status;
}

/* The path from the option. A file in the working directory gets a slash, because without one
 * dlopen() would search the system's libraries. */
static bool from_option(const sx_pjrt_wish *wish, char buffer[SX_PJRT_PATH_BYTES])
{
    int size = snprintf(buffer, SX_PJRT_PATH_BYTES, "%s%s",
                        strchr(wish->path, '/') == NULL ? "./" : "", wish->path);
    return wish->path[0] != '\0' && size < SX_PJRT_PATH_BYTES;
}

sx_status sx_pjrt_find(const sx_pjrt_wish *wish, char buffer[SX_PJRT_PATH_BYTES])
{
    bool found = wish->path != NULL ? from_option(wish, buffer)
                                    : from_names(wish, buffer) || from_tpu_variable(wish, buffer) ||
                                          from_packages(wish, buffer);
    return found ? SX_OK : not_found(wish);
}
