#include "io/sidecar.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/memory.h"
#include "io/path.h"
#include "io/user_cache.h"

static sx_status beside(const char *data_path, char **out_dir)
{
    char *dir = NULL;
    SX_TRY(sx_path_dirname(data_path, &dir));
    sx_status status = sx_path_join(dir, ".sextant", out_dir);
    sx_free(dir);
    return status;
}

/* The cache key is the data's real path, so that different names of a directory share it. */
static sx_status in_cache(const char *data_path, char **out_dir)
{
    char *dir = NULL, name[17];
    SX_TRY(sx_path_dirname(data_path, &dir));
    char *real = realpath(dir, NULL);
    const char *key = real != NULL ? real : dir;
    snprintf(name, sizeof(name), "%016" PRIx64, sx_hash64(key, strlen(key)));
    sx_status status = sx_user_cache(name, out_dir);
    free(real);
    sx_free(dir);
    return status;
}

typedef sx_status place_fn(const char *data_path, char **out_dir);
static place_fn *const places[] = {beside, in_cache};
enum { PLACES = sizeof places / sizeof places[0] };

static sx_status path_in(place_fn *place, const char *data_path, const char *suffix, char **out_dir,
                         char **out_path)
{
    char *dir = NULL;
    SX_TRY(place(data_path, &dir));
    sx_status status =
        sx_path_format(out_path, "%s/%s%s", dir, sx_path_basename(data_path), suffix);
    if (status != SX_OK) {
        sx_free(dir);
        return status;
    }
    *out_dir = dir;
    return SX_OK;
}

/* Tries the places in order until `accept` accepts one. */
static sx_status search(const char *data_path, const char *suffix,
                        bool (*accept)(const char *dir, const char *path), char **out_path)
{
    for (int i = 0; i < PLACES; i++) {
        char *dir = NULL, *path = NULL;
        sx_status status = path_in(places[i], data_path, suffix, &dir, &path);
        if (sx_status_code(status) == SX_NOT_FOUND) {
            sx_status_free(status);
            continue;
        }
        SX_TRY(status);
        bool good = accept(dir, path);
        sx_free(dir);
        if (good) {
            *out_path = path;
            return SX_OK;
        }
        sx_free(path);
    }
    return sx_error(SX_NOT_FOUND, "no directory to write to");
}

static bool exists(const char *dir, const char *path)
{
    (void)dir;
    return sx_path_exists(path);
}

static bool can_write(const char *dir, const char *path)
{
    (void)path;
    sx_status status = sx_dir_create(dir);
    bool made = status == SX_OK;
    sx_status_free(status);
    return made && access(dir, W_OK | X_OK) == 0;
}

sx_status sx_sidecar_find(const char *data_path, const char *suffix, char **out_path)
{
    sx_status status = search(data_path, suffix, exists, out_path);
    if (sx_status_code(status) == SX_NOT_FOUND) {
        sx_status_free(status);
        return sx_error(SX_NOT_FOUND, "%s has no sidecar '%s'", data_path, suffix);
    }
    return status;
}

sx_status sx_sidecar_place(const char *data_path, const char *suffix, char **out_path)
{
    sx_status status = search(data_path, suffix, can_write, out_path);
    if (sx_status_code(status) == SX_NOT_FOUND) {
        sx_status_free(status);
        return sx_error(SX_PERMISSION_DENIED,
                        "cannot write beside %s or in the user cache (set XDG_CACHE_HOME)",
                        data_path);
    }
    return status;
}
