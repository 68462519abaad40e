/* See load_tables.h. */
#include "savedmodel/load_tables.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/host.h"
#include "graph/ops/kept_variable.h"
#include "runtime/function_run.h"
#include "savedmodel/import_common.h"
#include "savedmodel/import_library.h"

sx_status sx_start_runner(sx_session *session, const sx_library *library, sx_budget *memory,
                          const sx_image_limits *images, const sx_tables *tables, sx_runner **out)
{
    sx_device_buffer **variables = sx_alloc((size_t)library->n_variables + 1, sizeof(*variables));
    sx_status status = variables == NULL ? sx_no_memory("for a predictor") : SX_OK;
    bool writes = false;
    for (int i = 0; i < library->n_functions; i++) {
        writes = writes || library->functions[i].writes;
    }
    for (int i = 0; i < library->n_variables && status == SX_OK; i++) {
        int index = 0;
        status = sx_session_add_variable(session, &library->variables[i], &index);
        variables[i] = status == SX_OK ? sx_session_variable_buffer(session, index) : NULL;
    }
    if (status == SX_OK) {
        status = sx_runner_create(
            &(sx_runner_options){.library = library,
                                 .platform = sx_session_device(session)->platform,
                                 .variables = variables,
                                 .frozen = sx_session_is_frozen(session) && !writes,
                                 .memory = memory,
                                 .images = images,
                                 .tables = tables},
            out);
    }
    sx_free(variables);
    return status;
}

/* The elements of a key of the checkpoint, in their carrier. */
static sx_status read_key(const sx_bundle *bundle, const char *key, sx_arena *arena,
                          sx_host_tensor *out)
{
    const sx_bundle_entry *e = bundle != NULL ? sx_bundle_find(bundle, key) : NULL;
    if (e == NULL) {
        return sx_error(SX_DATA_LOSS, "the checkpoint has no tensor \"%.200s\"", key);
    }
    if (e->type.dtype == SX_STRING) {
        sx_tensor texts;
        SX_TRY(sx_bundle_read_strings(bundle, key, arena, &texts));
        *out = (sx_host_tensor){.type = texts.type, .data = texts.data};
        return SX_OK;
    }
    const int64_t bytes = sx_type_bytes(&e->type), elems = sx_type_elems(&e->type);
    void *data = bytes < 0 ? NULL : sx_arena_alloc(arena, (size_t)bytes + 1, 1);
    *out = (sx_host_tensor){.type = e->type,
                            .data = elems < 0 ? NULL
                                              : sx_arena_alloc(arena, (size_t)elems + 1,
                                                               sx_carrier_bytes(e->type.dtype))};
    if (data == NULL || out->data == NULL) {
        return sx_budget_error(arena->budget);
    }
    SX_TRY(sx_bundle_read(bundle, key, &e->type, data));
    sx_host_load(out, data);
    return SX_OK;
}

/* The reserved keys of a dense table, whose checkpoint has all buckets: out[2], in their carrier.
 */
static sx_status read_reserved(const Tensorflow__GraphDef *graph, const Tensorflow__NodeDef *node,
                               sx_dtype dtype, sx_arena *arena, sx_host_tensor *out)
{
    for (size_t k = 0; k < 2; k++) {
        const Tensorflow__NodeDef *constant = NULL;
        sx_tf_ref ref;
        const bool parsed = k < node->n_input && sx_tf_ref_parse(node->input[k], &ref);
        for (size_t i = 0; i < graph->n_node && parsed && constant == NULL; i++) {
            const char *name = graph->node[i]->name;
            constant = strlen(name) == ref.node_bytes && memcmp(name, ref.node, ref.node_bytes) == 0
                           ? graph->node[i]
                           : NULL;
        }
        if (constant == NULL || strcmp(constant->op, "Const") != 0) {
            return sx_error(SX_UNIMPLEMENTED, "its empty and deleted keys are not constants");
        }
        sx_tensor value;
        SX_TRY(sx_import_const_value(constant, arena, &value));
        if (value.type.dtype != dtype || value.type.rank != 0) {
            return sx_error(SX_UNIMPLEMENTED, "its empty and deleted keys are not scalars");
        }
        out[k] = (sx_host_tensor){.type = value.type,
                                  .data = sx_arena_alloc(arena, 1, sx_carrier_bytes(dtype))};
        if (out[k].data == NULL) {
            return sx_budget_error(arena->budget);
        }
        sx_host_load(&out[k], value.data);
    }
    return SX_OK;
}

static bool same_key(const sx_host_tensor *keys, int64_t k, const sx_host_tensor *other)
{
    const size_t each = sx_carrier_bytes(keys->type.dtype);
    return keys->type.dtype == SX_STRING
               ? keys->s[k].size == other->s[0].size &&
                     memcmp(keys->s[k].data, other->s[0].data, other->s[0].size) == 0
               : memcmp(keys->b + (size_t)k * each, other->b, each) == 0;
}

static sx_status restore(const sx_saved_model *model, const Tensorflow__NodeDef *node,
                         const sx_saved_table *saved, sx_table *t, sx_arena *arena)
{
    const sx_table_attrs *attrs = sx_table_attrs_of(t);
    sx_host_tensor keys, values, reserved[2];
    SX_TRY(read_key(sx_saved_model_variables(model), saved->keys, arena, &keys));
    SX_TRY(read_key(sx_saved_model_variables(model), saved->values, arena, &values));
    int64_t n = sx_type_elems(&keys.type), width = 1, all = 0;
    for (int d = 0; d < attrs->shape.n; d++) {
        width *= attrs->shape.v[d]; /* sx_tables_declare() has checked it */
    }
    if (keys.type.dtype != attrs->keys || values.type.dtype != attrs->values ||
        !sx_mul_i64(n, width, &all) || sx_type_elems(&values.type) != all) {
        char k[SX_TYPE_TEXT], v[SX_TYPE_TEXT];
        return sx_error(SX_DATA_LOSS,
                        "the checkpoint has keys %s and values %s, which the graph's table, of %s "
                        "and %s, cannot have",
                        sx_type_format(&keys.type, k, sizeof(k)),
                        sx_type_format(&values.type, v, sizeof(v)), sx_dtype_name(attrs->keys),
                        sx_dtype_name(attrs->values));
    }
    const bool dense = attrs->kind == SX_TABLE_DENSE;
    if (dense) {
        SX_TRY(read_reserved(sx_saved_model_graph(model), node, attrs->keys, arena, reserved));
    }
    sx_table_clear(t);
    for (int64_t k = 0; k < n; k++) {
        if (!dense || !(same_key(&keys, k, &reserved[0]) || same_key(&keys, k, &reserved[1]))) {
            SX_TRY(sx_table_put(t, &keys, k, &values, k * width));
        }
    }
    sx_table_set_initialized(t);
    return SX_OK;
}

/* What the checkpoint has for the variable that a table keeps. */
static sx_status restore_variable(const sx_saved_model *model, const Tensorflow__NodeDef *node,
                                  sx_table *t, sx_arena *arena)
{
    sx_host_tensor value;
    if (!sx_import_variable_is_saved(model, node)) {
        return SX_OK; /* a function assigns it first */
    }
    SX_TRY(read_key(sx_saved_model_variables(model), sx_saved_model_variable_key(model, node->name),
                    arena, &value));
    return sx_kept_variable_put(t, &value, arena->budget);
}

static sx_status restore_all(const sx_saved_model *model, sx_budget *memory,
                             const sx_cancel *cancel, sx_tables *tables)
{
    const Tensorflow__GraphDef *graph = sx_saved_model_graph(model);
    sx_status status = SX_OK;
    for (size_t i = 0; i < graph->n_node && status == SX_OK; i++) {
        const Tensorflow__NodeDef *node = graph->node[i];
        const sx_saved_table *saved =
            sx_tf_is_table(node->op) ? sx_saved_model_table(model, node->name) : NULL;
        if (saved == NULL && !sx_tf_is_variable(node)) {
            continue;
        }
        SX_TRY(sx_cancel_check(cancel));
        sx_arena arena;
        sx_arena_init(&arena, 0);
        arena.budget = memory;
        const char *name = saved != NULL ? sx_tf_table_name(node, &arena)
                                         : sx_import_kept_name(model, node, &arena);
        sx_table *t = name != NULL ? sx_tables_find(tables, name) : NULL;
        status = name == NULL    ? sx_budget_error(memory)
                 : t == NULL     ? SX_OK /* no signature uses it */
                 : saved == NULL ? restore_variable(model, node, t, &arena)
                                 : restore(model, node, saved, t, &arena);
        status = sx_status_annotate(status, __FILE__, __LINE__, "%s \"%.200s\"",
                                    saved != NULL ? "table" : "variable", node->name);
        sx_arena_deinit(&arena);
    }
    return status;
}

static sx_status initialize(const sx_saved_model *model, sx_session *session, sx_budget *memory,
                            const sx_image_limits *images, const sx_cancel *cancel,
                            sx_tables *tables)
{
    sx_library *library = NULL;
    sx_runner *runner = NULL;
    SX_TRY(sx_import_initializer(model, &(sx_import_limits){.memory = memory, .cancel = cancel},
                                 &library));
    if (library == NULL) {
        return SX_OK;
    }
    sx_arena arena;
    sx_arena_init(&arena, 0);
    arena.budget = memory;
    sx_status status = sx_tables_declare(tables, library);
    status = status == SX_OK ? sx_start_runner(session, library, memory, images, tables, &runner)
                             : status;
    if (status == SX_OK) {
        status = sx_runner_run(runner, SX_INIT_SIGNATURE, NULL, 0, NULL, 0, &arena, cancel);
    }
    sx_runner_destroy(runner);
    sx_arena_deinit(&arena);
    sx_library_destroy(library);
    return sx_status_annotate(status, __FILE__, __LINE__, "initializing the model");
}

sx_status sx_load_tables(const sx_saved_model *model, const sx_library *library,
                         sx_session *session, sx_budget *memory, const sx_image_limits *images,
                         const sx_cancel *cancel, sx_tables *tables)
{
    SX_TRY(sx_tables_declare(tables, library));
    if (sx_tables_count(tables) == 0) {
        return SX_OK;
    }
    SX_TRY(restore_all(model, memory, cancel, tables));
    return initialize(model, session, memory, images, cancel, tables);
}
