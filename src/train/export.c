/* A trainer's model as a SavedModel. See trainer.h. */
#include "savedmodel/export.h"

#include <sextant/graph.h>

#include "train/state.h"

static sx_status read_variable(void *user, const char *name, const sx_type *type, void *out)
{
    sx_session *session = user;
    int i = sx_session_find_variable(session, name);
    if (i < 0 || !sx_type_equal(&sx_session_variable_at(session, i)->type, type)) {
        return sx_error(SX_INTERNAL, "the session has no variable \"%s\" of that type", name);
    }
    return sx_session_read_variable(session, i, out);
}

sx_status sx_trainer_export(sx_trainer *t, const char *base, const char *version, char **out_dir)
{
    sx_program *program;
    char *dir = NULL;
    if (!t->has_state) {
        return sx_error(SX_FAILED_PRECONDITION,
                        "the model has not been trained, and no checkpoint is loaded");
    }
    SX_TRY(sx_trainer_program(t, SX_PREDICT, &program));
    const sx_export_request request = {
        .graph = t->graphs.by_mode[SX_PREDICT],
        .read_variable = read_variable,
        .user = t->session,
        .preprocess = t->info.has_preprocess ? &t->info.preprocess : NULL,
        .class_names = t->info.class_names,
        .n_classes = t->info.class_names != NULL ? t->info.n_classes : 0,
        .base = base,
        .version = version,
    };
    SX_TRY(sx_export_saved_model(&request, &dir), "exporting");
    if (out_dir != NULL) {
        *out_dir = dir;
    } else {
        sx_text_free(dir);
    }
    return SX_OK;
}
