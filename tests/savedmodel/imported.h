/* A signature of a model as the static graph that a device runs: imported into a library of
 * functions and specialized with the types that it declares. Inputs and outputs have the names of
 * the signature's keys. */
#ifndef SX_TESTS_SAVEDMODEL_IMPORTED_H
#define SX_TESTS_SAVEDMODEL_IMPORTED_H

#include "base/memory.h"
#include "graph/specialize_examples.h"
#include "savedmodel/import_library.h"

typedef struct imported {
    sx_library *library;
    sx_specialized *program;
    const sx_graph *graph; /* of the only device step; NULL if there are none or several */
} imported;

static inline void imported_end(imported *i)
{
    sx_specialized_destroy(i->program);
    sx_library_destroy(i->library);
}

/* The only device step of a function whose examples depend on one another. */
static inline sx_status imported_whole(imported *out, const sx_function *f)
{
    sx_tensor args[16] = {{.data = NULL}};
    const sx_graph *body = f->body;
    assert_true(body->n_args <= 16);
    for (int i = 0; i < body->n_args; i++) {
        sx_type *type = &args[i].type;
        *type = *sx_graph_type(body, body->args[i].value);
        for (int d = 0; d < type->rank; d++) { /* all inputs have the same number of rows */
            type->dims[d] = sx_dim_is_symbol(type->dims[d]) ? SX_BATCH : type->dims[d];
        }
    }
    SX_TRY(sx_specialize(out->library, body, &(sx_binding){.args = args, .n_args = body->n_args},
                         NULL, &out->program));
    const sx_specialized *s = out->program;
    if (s->n_steps != 1 || s->steps[0].kind != SX_STEP_DEVICE) {
        return SX_OK;
    }
    sx_graph *g = (sx_graph *)(uintptr_t)s->steps[0].graph;
    for (int i = 0, in = 0; i < g->n_args; i++) {
        if (g->args[i].kind == SX_ARG_INPUT) {
            g->args[i].name = body->args[s->steps[0].in[in++]].name;
        }
    }
    for (int i = 0; i < g->n_results; i++) {
        for (int k = 0; k < s->n_results; k++) {
            if (s->results[k] == s->steps[0].out[i]) {
                g->results[i].name = body->results[k].name;
            }
        }
    }
    out->graph = g;
    return SX_OK;
}

/* The error of the import or of this signature; after one, `out` is empty. */
static inline sx_status import_signature(const sx_saved_model *model, const char *key,
                                         imported *out)
{
    size_t n;
    int device = 0;
    const sx_signature *all = sx_saved_model_signatures(model, &n), *found = NULL;
    *out = (imported){.library = NULL};
    SX_TRY(sx_saved_model_find_signature(model, key, &found));
    sx_status *refused = sx_alloc(n + 1, sizeof(*refused));
    if (refused == NULL) {
        return sx_no_memory("for a test");
    }
    sx_status status = sx_import_library(model, NULL, &out->library, refused);
    for (size_t i = 0; i < n; i++) {
        if (status == SX_OK && &all[i] == found) {
            status = refused[i];
        } else {
            sx_status_free(refused[i]);
        }
    }
    sx_free(refused);
    if (status == SX_OK) {
        status = sx_specialize_examples(out->library, sx_library_find(out->library, key), NULL,
                                        &out->program, &device);
    }
    if (status == SX_OK && out->program != NULL) {
        out->graph = out->program->steps[device].graph;
    } else if (status == SX_OK) {
        status = imported_whole(out, sx_library_find(out->library, key));
    }
    if (status != SX_OK) {
        imported_end(out);
        *out = (imported){.library = NULL};
    }
    return status;
}

#endif
