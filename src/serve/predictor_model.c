/* See predictor_model.h. */
#include "serve/predictor_model.h"

#include "base/memory.h"

typedef struct model {
    sx_predictor *predictor;
    sx_arena arena;
    const sx_signature *signatures; /* [count], owned by the predictor */
    sx_serve_signature *described;  /* [count], the same for the server */
    size_t count;
} model;

static void unload(void *loaded)
{
    model *m = loaded;
    sx_predictor_unload(m->predictor);
    sx_arena_deinit(&m->arena);
    sx_free(m);
}

static sx_serve_tensor *describe_tensors(model *m, const sx_signature_tensor *from, size_t n)
{
    sx_serve_tensor *tensors = sx_arena_array(&m->arena, n + 1, sx_serve_tensor);
    for (size_t i = 0; tensors != NULL && i < n; i++) {
        tensors[i] =
            (sx_serve_tensor){from[i].key, from[i].tensor, from[i].type, from[i].unknown_rank};
    }
    return tensors;
}

static sx_status describe(model *m)
{
    m->signatures = sx_saved_model_signatures(sx_predictor_model(m->predictor), &m->count);
    m->described = sx_arena_array(&m->arena, m->count + 1, sx_serve_signature);
    if (m->described == NULL) {
        return sx_no_memory("for a model");
    }
    for (size_t i = 0; i < m->count; i++) {
        const sx_signature *from = &m->signatures[i];
        m->described[i] = (sx_serve_signature){
            .name = from->key,
            .method = from->method,
            .input_count = from->n_inputs,
            .output_count = from->n_outputs,
            .inputs = describe_tensors(m, from->inputs, from->n_inputs),
            .outputs = describe_tensors(m, from->outputs, from->n_outputs),
            .may_take_long = sx_predictor_may_take_long(m->predictor, from),
        };
        m->described[i].batch_sizes =
            sx_predictor_batch_sizes(m->predictor, from, &m->described[i].batch_size_count);
        m->described[i].one_by_itself = sx_predictor_runs_one_by_itself(m->predictor, from);
        if (m->described[i].inputs == NULL || m->described[i].outputs == NULL) {
            return sx_no_memory("for a model");
        }
    }
    return SX_OK;
}

static sx_status load(void *user, const char *version_dir, const sx_cancel *cancel,
                      void **out_model)
{
    sx_predictor_options options = {0};
    model *m = sx_alloc(1, sizeof(*m));
    if (m == NULL) {
        return sx_no_memory("for a model");
    }
    sx_arena_init(&m->arena, 0);
    if (user != NULL) {
        options = *(const sx_predictor_options *)user;
    }
    options.cancel = cancel;
    sx_status status = sx_predictor_load(version_dir, &options, &m->predictor);
    if (status == SX_OK) {
        status = describe(m);
    }
    if (status != SX_OK) {
        unload(m);
        return status;
    }
    *out_model = m;
    return SX_OK;
}

static const sx_serve_signature *signatures(void *loaded, size_t *out_count)
{
    const model *m = loaded;
    *out_count = m->count;
    return m->described;
}

static sx_status run(void *loaded, const sx_serve_signature *signature, const sx_tensor *inputs,
                     const sx_cancel *cancel, sx_arena *arena, sx_tensor *outputs)
{
    model *m = loaded;
    return sx_predictor_run(m->predictor, &m->signatures[signature - m->described], inputs, cancel,
                            arena, outputs);
}

static bool is_wide(void *loaded, const sx_serve_signature *signature, int64_t rows)
{
    const model *m = loaded;
    return sx_predictor_is_wide(m->predictor, &m->signatures[signature - m->described], rows);
}

static size_t memory_bytes(void *loaded)
{
    const model *m = loaded;
    return sx_predictor_memory_used(m->predictor);
}

const sx_serve_model_ops sx_predictor_model_ops = {
    .load = load,
    .signatures = signatures,
    .run = run,
    .unload = unload,
    .is_wide = is_wide,
    .memory_bytes = memory_bytes,
};
