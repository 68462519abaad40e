/* What KServe's protocol tells about models; see kserve_models.h. */
#include "serve/kserve_models.h"

#include "base/checked.h"
#include "base/memory.h"
#include "serve/json_scan.h"

const char *const sx_kserve_extensions[] = {"binary_tensor_data", "model_repository", NULL};

static sx_status served_versions(sx_manager *manager, const char *name, sx_arena *arena,
                                 sx_kserve_known *out)
{
    sx_version_status *rows;
    size_t count = 0;
    SX_TRY(sx_manager_status(manager, name, SX_LATEST_VERSION, arena, &rows, &count));
    out->versions = sx_arena_array(arena, count + 1, int64_t);
    if (out->versions == NULL) {
        return sx_no_memory("for %zu versions", count);
    }
    for (size_t i = 0; i < count; i++) {
        if (rows[i].state == SX_VERSION_AVAILABLE) {
            out->versions[out->version_count++] = rows[i].version;
        }
    }
    return SX_OK;
}

sx_status sx_kserve_find(sx_manager *manager, const sx_model_spec *spec, sx_arena *arena,
                         sx_kserve_known *out)
{
    size_t count = 0;
    *out = (sx_kserve_known){0};
    SX_TRY(sx_manager_acquire(manager, spec, &out->servable));
    const sx_serve_signature *signatures = sx_served_signatures(out->servable, &count);
    out->signature = sx_serve_find_signature(signatures, count, (sx_bytes){"", 0});
    sx_status status = served_versions(manager, spec->name, arena, out);
    if (status != SX_OK) {
        sx_served_release(out->servable);
    }
    return status;
}

/* Triton's words. */
static const char *state_name(sx_version_state state)
{
    return state == SX_VERSION_AVAILABLE                              ? "READY"
           : state == SX_VERSION_START || state == SX_VERSION_LOADING ? "LOADING"
           : state == SX_VERSION_UNLOADING                            ? "UNLOADING"
                                                                      : "UNAVAILABLE";
}

sx_status sx_kserve_index(sx_manager *manager, sx_arena *arena,
                          void (*row)(void *user, const sx_kserve_indexed *row), void *user)
{
    const char **names = NULL;
    size_t count = 0;
    SX_TRY(sx_manager_names(manager, arena, &names, &count));
    for (size_t i = 0; i < count; i++) {
        sx_version_status *rows = NULL;
        size_t row_count = 0;
        sx_status status =
            sx_manager_status(manager, names[i], SX_LATEST_VERSION, arena, &rows, &row_count);
        if (sx_status_code(status) != SX_NOT_FOUND) {
            SX_TRY(status);
        }
        sx_status_free(status); /* no versions yet */
        for (size_t k = 0; k < row_count; k++) {
            const sx_kserve_indexed indexed = {names[i], rows[k].version, state_name(rows[k].state),
                                               rows[k].code != SX_CODE_OK
                                                   ? sx_code_name(rows[k].code)
                                               : rows[k].state == SX_VERSION_END ? "unloaded"
                                                                                 : ""};
            row(user, &indexed);
        }
    }
    return SX_OK;
}
