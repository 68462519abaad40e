/* See face.h. */
#include "train/face.h"

#include <string.h>

#include "base/memory.h"

static sx_status add_param(sx_params *params, const char *text)
{
    char name[256];
    const char *equals = strchr(text, '=');
    size_t length = equals != NULL ? (size_t)(equals - text) : 0;
    if (length == 0 || length >= sizeof(name)) {
        return sx_error(SX_INVALID_ARGUMENT, "parameter \"%s\": expected name=value", text);
    }
    memcpy(name, text, length);
    name[length] = '\0';
    return sx_params_set(params, name, equals + 1);
}

sx_status sx_face_params(const char *const *texts, sx_params **out_params)
{
    sx_params *params = NULL;
    SX_TRY(sx_params_create(&params));
    sx_status status = SX_OK;
    for (int i = 0; texts != NULL && texts[i] != NULL && status == SX_OK; i++) {
        status = add_param(params, texts[i]);
    }
    if (status == SX_OK) {
        status = sx_params_check_reserved(params);
    }
    if (status != SX_OK) {
        sx_params_destroy(params);
        return status;
    }
    *out_params = params;
    return SX_OK;
}

sx_status sx_face_own_names(sx_arena *arena, sx_eval_result *result)
{
    for (int k = 0; k < result->n_metrics; k++) {
        result->metrics[k].name = sx_arena_strdup(arena, result->metrics[k].name);
        if (result->metrics[k].name == NULL) {
            return sx_no_memory("for metric names");
        }
    }
    return SX_OK;
}
