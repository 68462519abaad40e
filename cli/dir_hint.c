#include "dir_hint.h"

#include "io/path.h"
#include "other_model.h"
#include "savedmodel/versions.h"

typedef enum kind { NONE, SAVED_MODEL, VERSIONS, RUN } kind;

static const struct {
    const char *what, *use;
    sx_dir_wanted as;
} kinds[] = {
    [SAVED_MODEL] = {"a SavedModel", "run", SX_WANTED_SAVED_MODEL},
    [VERSIONS] = {"a directory of SavedModel versions", "run", SX_WANTED_SAVED_MODEL},
    [RUN] = {"a run", "evaluate, predict or export", SX_WANTED_RUN},
};

static bool has(sx_arena *arena, const char *dir, const char *name)
{
    const char *path = sx_arena_printf(arena, "%s/%s", dir, name);
    return path != NULL && sx_path_exists(path);
}

static kind kind_of(sx_arena *arena, const char *dir)
{
    sx_version *versions = NULL;
    size_t count = 0;
    if (has(arena, dir, "sextant.json")) {
        return RUN;
    }
    if (has(arena, dir, "saved_model.pb")) {
        return SAVED_MODEL;
    }
    sx_status_free(sx_versions_list(dir, "saved_model.pb", arena, &versions, &count));
    return count > 0 ? VERSIONS : NONE;
}

sx_status sx_dir_explain(sx_status status, sx_arena *arena, const char *dir, sx_dir_wanted wanted)
{
    kind found = kind_of(arena, dir);
    const char *other = found == NONE ? sx_other_model(arena, dir) : NULL;
    if (other != NULL) {
        sx_status_free(status);
        return sx_error(SX_INVALID_ARGUMENT, "%s %s", dir, other);
    }
    const char *inside = NULL;
    sx_paths names = {0};
    if (found == NONE) {
        sx_status_free(sx_dir_list(dir, &names)); /* what cannot be read suggests nothing */
    }
    for (size_t i = 0; i < names.count && inside == NULL; i++) {
        const char *path = sx_arena_printf(arena, "%s/%s", dir, names.items[i]);
        found = path != NULL ? kind_of(arena, path) : NONE;
        if (wanted != SX_WANTED_ANY && kinds[found].as != wanted) {
            found = NONE;
        }
        inside = found != NONE ? path : NULL;
    }
    sx_paths_deinit(&names);
    const bool right = inside == NULL && (wanted == SX_WANTED_ANY || kinds[found].as == wanted);
    if (found == NONE || right) { /* the right directory: something else is wrong */
        return status;
    }
    sx_status longer =
        inside == NULL ? sx_error(sx_status_code(status), "%s; it is %s: use sextant %s",
                                  sx_status_message(status), kinds[found].what, kinds[found].use)
                       : sx_error(sx_status_code(status), "%s; did you mean %s, which is %s?",
                                  sx_status_message(status), inside, kinds[found].what);
    sx_status_free(status);
    return longer;
}

sx_status sx_dir_find_saved_model(sx_arena *arena, const char *path, const char **out_dir)
{
    sx_status status = sx_version_find(path, arena, out_dir);
    return status == SX_OK ? SX_OK : sx_dir_explain(status, arena, path, SX_WANTED_SAVED_MODEL);
}
