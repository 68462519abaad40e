#include "savedmodel/versions.h"

#include <stdlib.h>
#include <string.h>

#include "io/path.h"

int64_t sx_version_number(const char *name)
{
    size_t length = strlen(name);
    if (length == 0 || length > 18 || strspn(name, "0123456789") != length) {
        return -1;
    }
    return strtoll(name, NULL, 10);
}

static int by_number(const void *a, const void *b)
{
    const sx_version *x = a, *y = b;
    return x->number != y->number ? (x->number > y->number) - (x->number < y->number)
                                  : strcmp(x->name, y->name);
}

/* The names below `base`; an empty list if it is not there. */
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

static sx_status collect(const char *base, const sx_paths *names, sx_arena *arena,
                         sx_version **out_versions, size_t *out_count)
{
    sx_version *versions = sx_arena_array(arena, names->count + 1, sx_version);
    size_t n = 0;
    for (size_t i = 0; versions != NULL && i < names->count; i++) {
        const char *name = names->items[i];
        char *model = sx_arena_printf(arena, "%s/%s/saved_model.pb", base, name);
        char *copy = sx_arena_strdup(arena, name);
        if (model == NULL || copy == NULL) {
            versions = NULL;
        } else if (sx_version_number(name) >= 0 && sx_path_exists(model)) {
            versions[n++] = (sx_version){sx_version_number(name), copy};
        }
    }
    if (versions == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "listing versions: no memory");
    }
    qsort(versions, n, sizeof(*versions), by_number);
    *out_versions = versions;
    *out_count = n;
    return SX_OK;
}

sx_status sx_versions_list(const char *base, sx_arena *arena, sx_version **out_versions,
                           size_t *out_count)
{
    sx_paths names = {0};
    SX_TRY(names_below(base, &names));
    sx_status status = collect(base, &names, arena, out_versions, out_count);
    sx_paths_deinit(&names);
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
            return sx_error(SX_ALREADY_EXISTS, "%s has version %s already", base, names->items[i]);
        }
    }
    *out_dir = wanted != NULL ? sx_arena_printf(arena, "%s/%s", base, wanted)
                              : sx_arena_printf(arena, "%s/%lld", base, (long long)highest + 1);
    return *out_dir == NULL ? sx_error(SX_RESOURCE_EXHAUSTED, "choosing a version: no memory")
                            : SX_OK;
}

sx_status sx_version_directory(const char *base, const char *wanted, sx_arena *arena,
                               const char **out_dir)
{
    if (wanted != NULL && sx_version_number(wanted) < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "version \"%s\" is not a number of at most 18 digits",
                        wanted);
    }
    sx_paths names = {0};
    SX_TRY(names_below(base, &names));
    sx_status status = choose(base, &names, wanted, arena, out_dir);
    sx_paths_deinit(&names);
    return status;
}
