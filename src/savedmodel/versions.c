#include "savedmodel/versions.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "io/file.h"
#include "io/path.h"
#include "savedmodel/names.h"

int64_t sx_version_number(const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || length >= SX_VERSION_NAME || strspn(name, "0123456789") != length) {
        return -1;
    }
    errno = 0;
    int64_t number = strtoll(name, NULL, 10);
    return errno == 0 ? number : -1;
}

static int highest_first(const void *a, const void *b)
{
    const sx_version *x = a, *y = b;
    return x->number != y->number ? (x->number < y->number) - (x->number > y->number)
                                  : strcmp(x->name, y->name);
}

/* Keeps the first of equal numbers in sorted `versions`. */
static size_t drop_equal(sx_version *versions, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || versions[kept - 1].number != versions[i].number) {
            versions[kept++] = versions[i];
        }
    }
    return kept;
}

/* Whether an entry of `base` is a version. Without `holding`, only its directory entry is used, so
 * that an entry that hangs (a network mount) does not hang the listing. */
static sx_status is_version(const char *base, const struct dirent *entry, const char *holding,
                            bool *out_is)
{
    char *path = NULL;
    *out_is = entry->d_type == DT_DIR || entry->d_type == DT_LNK;
    if (holding == NULL && entry->d_type != DT_UNKNOWN) {
        return SX_OK;
    }
    SX_TRY(sx_path_format(&path, "%s/%s%s%s", base, entry->d_name, holding != NULL ? "/" : "",
                          holding != NULL ? holding : ""));
    *out_is = holding != NULL ? sx_path_exists(path) : sx_path_is_dir(path);
    sx_free(path);
    return SX_OK;
}

sx_status sx_versions_list(const char *base, const char *holding, sx_arena *arena,
                           sx_version **out_versions, size_t *out_count)
{
    sx_status status = SX_OK;
    sx_version *versions = NULL; /* doubles at powers of two */
    size_t n = 0;
    DIR *dir = opendir(base);
    if (dir == NULL) {
        return sx_errno_status(errno, "list", base);
    }
    for (;;) {
        bool is = false;
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (entry == NULL && errno != 0) {
            SX_TRY_GOTO(status, sx_errno_status(errno, "list", base), done);
        }
        if (entry == NULL) {
            break;
        }
        const int64_t number = sx_version_number(entry->d_name);
        if (number < 0) {
            continue;
        }
        SX_TRY_GOTO(status, is_version(base, entry, holding, &is), done);
        if (!is) {
            continue;
        }
        if ((n & (n - 1)) == 0) {
            void *grown = sx_realloc(versions, n == 0 ? 1 : 2 * n, sizeof(*versions));
            if (grown == NULL) {
                SX_TRY_GOTO(status, sx_no_memory("for %zu versions", n), done);
            }
            versions = grown;
        }
        versions[n].number = number;
        snprintf(versions[n++].name, SX_VERSION_NAME, "%.*s", SX_VERSION_NAME - 1, entry->d_name);
    }
    if (n > 0) {
        qsort(versions, n, sizeof(*versions), highest_first);
    }
    n = drop_equal(versions, n);
    *out_versions = sx_arena_memdup(arena, versions, n * sizeof(*versions));
    *out_count = n;
    if (*out_versions == NULL) {
        status = sx_no_memory("for %zu versions", n);
    }
done:
    sx_free(versions);
    closedir(dir);
    return status;
}

bool sx_versions_contain(const sx_version *versions, size_t count, int64_t version)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (versions[middle].number > version) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && versions[low].number == version;
}

/* Says why the model's file, which is in its directory, cannot be found. */
static sx_status check_link(const char *file)
{
    struct stat info;
    if (lstat(file, &info) != 0 || stat(file, &info) == 0) {
        return SX_OK;
    }
    return errno == ENOENT ? sx_error(SX_FAILED_PRECONDITION,
                                      "%s is a symbolic link to a file that does not exist", file)
                           : sx_errno_status(errno, "open", file);
}

sx_status sx_version_find(const char *path, sx_arena *arena, const char **out_dir)
{
    const char *file = sx_arena_printf(arena, "%s/" SX_SAVED_MODEL_FILE, path);
    sx_version *versions = NULL;
    size_t n = 0;
    const char *dir = file;
    if (file != NULL && sx_path_exists(file)) {
        dir = sx_arena_strdup(arena, path);
    } else if (file != NULL) {
        SX_TRY(check_link(file));
        SX_TRY(sx_versions_list(path, SX_SAVED_MODEL_FILE, arena, &versions, &n));
        if (n == 0) {
            return sx_error(SX_NOT_FOUND,
                            "%s has no " SX_SAVED_MODEL_FILE
                            ", and no numbered version directory with one",
                            path);
        }
        dir = sx_arena_printf(arena, "%s/%s", path, versions[0].name);
    }
    if (dir == NULL) {
        return sx_no_memory("for a path");
    }
    *out_dir = dir;
    return SX_OK;
}

/* ---- Exporting ---- */

/* The names below `base`; an empty list if it does not exist. */
static sx_status names_below(const char *base, sx_paths *out)
{
    sx_status status = sx_dir_list(base, out);
    if (sx_status_code(status) == SX_NOT_FOUND) {
        sx_status_free(status);
        *out = (sx_paths){0};
        return SX_OK;
    }
    return status;
}

static sx_status choose(const char *base, const sx_paths *names, const char *wanted,
                        sx_arena *arena, const char **out_dir)
{
    int64_t highest = 0, asked = wanted == NULL ? -1 : sx_version_number(wanted);
    for (size_t i = 0; i < names->count; i++) {
        int64_t number = sx_version_number(names->items[i]);
        highest = number > highest ? number : highest;
        if (asked >= 0 && number == asked) {
            return sx_error(SX_ALREADY_EXISTS, "%s already has version %s", base, names->items[i]);
        }
    }
    if (wanted == NULL && highest == INT64_MAX) {
        return sx_error(SX_OUT_OF_RANGE, "%s already has the highest possible version; choose one",
                        base);
    }
    *out_dir = wanted != NULL ? sx_arena_printf(arena, "%s/%s", base, wanted)
                              : sx_arena_printf(arena, "%s/%lld", base, (long long)highest + 1);
    return *out_dir == NULL ? sx_no_memory("choosing a version") : SX_OK;
}

sx_status sx_version_directory(const char *base, const char *wanted, sx_arena *arena,
                               const char **out_dir)
{
    if (wanted != NULL && sx_version_number(wanted) < 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "version \"%s\" is not a number of digits only, below 2^63", wanted);
    }
    sx_paths names = {0};
    SX_TRY(names_below(base, &names));
    sx_status status = choose(base, &names, wanted, arena, out_dir);
    sx_paths_deinit(&names);
    return status;
}
