/* See sextant/function_train.h: the step of training of a function, and its variables on disk. */
#include <sextant/function_train.h>

#include <string.h>

#include "base/args.h"
#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "checkpoint/bundle.h"
#include "graph/builder.h"
#include "graph/library.h"
#include "graph/ops/common.h"
#include "io/path.h"
#include "nn/layer.h"
#include "nn/optimizer.h"

/* ---- What the model has ---- */

enum { MOST_CALLS = 64 };

/* Marks the variables that a body uses, by itself, in its regions and in what it calls. */
static sx_status find_uses(const sx_library *library, const sx_graph *body, int depth, bool *uses)
{
    if (depth == MOST_CALLS) {
        return sx_error(SX_INVALID_ARGUMENT, "calls nest deeper than %d", MOST_CALLS);
    }
    for (int i = 0; i < body->n_nodes; i++) {
        const sx_node *node = &body->nodes[i];
        if (node->op == &sx_op_variable_handle) {
            const char *name = ((const sx_variable_handle_attrs *)node->attrs)->name;
            const sx_variable_spec *v = sx_library_find_variable(library, name);
            if (v == NULL) {
                return sx_library_no_variable(library, name);
            }
            uses[v - library->variables] = true;
        }
        if (node->op == &sx_op_call) {
            const char *name = ((const sx_call_attrs *)node->attrs)->function;
            const sx_function *f = sx_library_find(library, name != NULL ? name : "");
            if (f == NULL) {
                return sx_library_no_function(library, name != NULL ? name : "");
            }
            SX_TRY(find_uses(library, f->body, depth + 1, uses));
        }
        for (int k = 0; k < node->op->n_attrs; k++) {
            if (node->op->attrs[k].kind == SX_ATTR_BODY) {
                SX_TRY(find_uses(library, sx_node_body(node, k), depth + 1, uses));
            }
        }
    }
    return SX_OK;
}

static sx_status find_function(const sx_library *library, const char *name, const sx_function **out)
{
    *out = sx_library_find(library, name);
    return *out != NULL ? SX_OK : sx_library_no_function(library, name);
}

static sx_status check_model(const sx_function *model)
{
    const sx_graph *body = model->body;
    const sx_type *loss =
        body->n_results > 0 ? sx_graph_type(body, body->results[0].value) : &(sx_type){0};
    char text[SX_TYPE_TEXT] = "missing";
    if (loss->dtype == SX_F32 && loss->rank == 0) {
        return SX_OK;
    }
    if (body->n_results > 0) {
        sx_type_format(loss, text, sizeof(text));
    }
    return sx_error(SX_INVALID_ARGUMENT,
                    "the loss, the first output of function \"%.100s\", is %s, expected a float32 "
                    "scalar",
                    model->name, text);
}

/* ---- The step ---- */

typedef struct step {
    sx_builder *b;
    const sx_library *library;
    const sx_function *model, *features; /* features may be NULL */
    const sx_optimizer *optimizer;
    sx_value *in;                     /* [model's args] */
    sx_value outputs;                 /* the first of the model's */
    const sx_variable_spec **weights; /* [n_weights] */
    int n_weights;
    sx_value *gradients; /* [n_weights] */
} step;

static sx_value add_call(sx_builder *b, const sx_call_attrs *attrs, const sx_value *in, int n_in,
                         const sx_type *types, int n_types)
{
    return sx_build_node(b, &(sx_node_spec){.op = &sx_op_call,
                                            .attrs = attrs,
                                            .inputs = in,
                                            .n_inputs = n_in,
                                            .types = types,
                                            .n_types = n_types,
                                            .device = "",
                                            .file = ""});
}

static sx_status call_function(sx_builder *b, const sx_function *f, const sx_value *in,
                               sx_value *out_first)
{
    sx_type *types = sx_arena_array(sx_builder_arena(b), f->body->n_results + 1, sx_type);
    if (types == NULL) {
        return sx_no_memory("for a training function");
    }
    for (int i = 0; i < f->body->n_results; i++) {
        types[i] = *sx_graph_type(f->body, f->body->results[i].value);
    }
    *out_first = add_call(b, &(sx_call_attrs){.function = f->name}, in, f->body->n_args, types,
                          f->body->n_results);
    return SX_OK;
}

static sx_value input_like(sx_builder *b, const sx_graph *body, int arg)
{
    return sx_input(b, body->args[arg].name, *sx_graph_type(body, body->args[arg].value));
}

/* The inputs of the model: what `features` gives, and the new function's own. */
static sx_status build_inputs(step *s)
{
    const sx_graph *body = s->model->body, *pre = s->features != NULL ? s->features->body : NULL;
    sx_value *in = sx_arena_array(sx_builder_arena(s->b), pre != NULL ? pre->n_args + 1 : 1,
                                  sx_value),
             first = SX_NO_VALUE;
    if (in == NULL) {
        return sx_no_memory("for a training function");
    }
    for (int i = 0; pre != NULL && i < pre->n_args; i++) {
        in[i] = input_like(s->b, pre, i);
    }
    if (pre != NULL) {
        SX_TRY(call_function(s->b, s->features, in, &first));
    }
    for (int i = 0; i < body->n_args; i++) {
        const char *name = body->args[i].name;
        const int given = pre != NULL ? sx_graph_find_output(pre, name) : -1;
        const int taken = pre != NULL ? sx_graph_find_arg(pre, name) : -1;
        const sx_type *wants = sx_graph_type(body, body->args[i].value);
        s->in[i] = given >= 0   ? sx_output_of(first, given)
                   : taken >= 0 ? in[taken]
                                : input_like(s->b, body, i);
        const sx_type has = sx_type_of_value(s->b, s->in[i]);
        if (!sx_builder_failed(s->b) && !sx_type_may_be(&has, wants)) {
            char a[SX_TYPE_TEXT], c[SX_TYPE_TEXT];
            return sx_error(SX_INVALID_ARGUMENT,
                            "function \"%.100s\" takes \"%.100s\" as %s, but function \"%.100s\" "
                            "gives %s",
                            s->model->name, name, sx_type_format(wants, a, sizeof(a)),
                            s->features->name, sx_type_format(&has, c, sizeof(c)));
        }
    }
    return SX_OK;
}

/* Gradients of the loss with respect to the weights: a call of the model's gradient function. */
static sx_status build_gradients(step *s)
{
    const sx_graph *body = s->model->body;
    sx_arena *arena = sx_builder_arena(s->b);
    sx_value *in = sx_arena_array(arena, body->n_args + body->n_results + 1, sx_value);
    sx_type *types = sx_arena_array(arena, body->n_args + s->n_weights + 1, sx_type);
    int n_in = 0, n_types = 0;
    sx_buf names;
    if (in == NULL || types == NULL) {
        return sx_no_memory("for a training function");
    }
    sx_buf_init(&names, 0);
    for (int i = 0; i < body->n_args; i++) {
        in[n_in++] = s->in[i];
        if (sx_dtype_is_float(sx_type_of_value(s->b, s->in[i]).dtype)) {
            types[n_types++] = sx_type_of_value(s->b, s->in[i]);
        }
    }
    for (int i = 0; i < body->n_results; i++) {
        const sx_value y = sx_output_of(s->outputs, i);
        if (i == 0) {
            in[n_in++] = sx_constant_f32(s->b, 1);
        } else if (sx_dtype_is_float(sx_type_of_value(s->b, y).dtype)) {
            in[n_in++] = sx_zeros_like(s->b, y);
        }
    }
    const int first_weight = n_types;
    for (int i = 0; i < s->n_weights; i++) {
        types[n_types++] = s->weights[i]->type;
        sx_buf_printf(&names, "%s%s", i > 0 ? "," : "", s->weights[i]->name);
    }
    sx_status status = sx_buf_status(&names);
    if (status == SX_OK) {
        const sx_value first = add_call(s->b,
                                        &(sx_call_attrs){.function = s->model->name,
                                                         .gradient = 1,
                                                         .variables = sx_buf_text(&names)},
                                        in, n_in, types, n_types);
        for (int i = 0; i < s->n_weights; i++) {
            s->gradients[i] = sx_output_of(first, first_weight + i);
        }
    }
    sx_buf_deinit(&names);
    return status;
}

static sx_status build_updates(step *s)
{
    sx_builder *b = s->b;
    const int64_t one = 1;
    sx_value *all = sx_arena_array(sx_builder_arena(b), s->n_weights + 1, sx_value);
    if (all == NULL) {
        return sx_no_memory("for a training function");
    }
    all[0] = s->outputs;
    memcpy(all + 1, s->gradients, (size_t)s->n_weights * sizeof(*all));
    const sx_value ok = sx_build(b, &sx_op_all_finite, NULL, all, s->n_weights + 1);
    const sx_value at = sx_global_step(b);
    const sx_value rate =
        sx_build_learning_rate(b, s->optimizer->learning_rate, &s->optimizer->schedule, at);
    for (int i = 0; i < s->n_weights; i++) {
        sx_build_update(b, s->optimizer, s->weights[i]->name, sx_variable(b, s->weights[i]),
                        s->gradients[i], rate, at, ok);
    }
    const sx_value next =
        sx_build_op(b, add, NULL, at,
                    sx_constant(b, (sx_tensor){sx_scalar_type(SX_I64), (void *)(uintptr_t)&one}));
    sx_assign(b, "global_step", sx_build_op(b, select, NULL, ok, next, at));
    for (int i = 0; i < s->model->body->n_results; i++) {
        sx_output(b, s->model->body->results[i].name, sx_output_of(s->outputs, i));
    }
    sx_output(b, "ok", ok);
    return SX_OK;
}

static sx_status list_weights(step *s)
{
    const sx_library *library = s->library;
    sx_arena *arena = sx_builder_arena(s->b);
    bool *uses = sx_arena_array(arena, library->n_variables + 1, bool);
    s->weights = sx_arena_array(arena, library->n_variables + 1, const sx_variable_spec *);
    s->gradients = sx_arena_array(arena, library->n_variables + 1, sx_value);
    if (uses == NULL || s->weights == NULL || s->gradients == NULL) {
        return sx_no_memory("for a training function");
    }
    SX_TRY(find_uses(library, s->model->body, 0, uses));
    for (int i = 0; i < library->n_variables; i++) {
        const sx_variable_spec *v = &library->variables[i];
        if (!uses[i] || v->role != SX_ROLE_WEIGHT || !sx_dtype_is_float(v->type.dtype)) {
            continue;
        }
        if (strchr(v->name, ',') != NULL) {
            return sx_error(SX_INVALID_ARGUMENT, "variable \"%.100s\" has a comma in its name",
                            v->name);
        }
        s->weights[s->n_weights++] = v;
    }
    return s->n_weights > 0 ? SX_OK
                            : sx_error(SX_INVALID_ARGUMENT, "function \"%.100s\" reads no weights",
                                       s->model->name);
}

static sx_status build_step(step *s)
{
    SX_TRY(list_weights(s));
    s->in = sx_arena_array(sx_builder_arena(s->b), s->model->body->n_args + 1, sx_value);
    if (s->in == NULL) {
        return sx_no_memory("for a training function");
    }
    SX_TRY(build_inputs(s));
    SX_TRY(call_function(s->b, s->model, s->in, &s->outputs));
    SX_TRY(build_gradients(s));
    return build_updates(s);
}

sx_status sx_library_add_training_at(sx_library *library, const char *name, const char *model,
                                     const sx_training_function_args *args)
{
    SX_NEED(library);
    SX_NEED(name);
    SX_NEED(model);
    SX_TAKE_ARGS(sx_training_function_args, args);
    sx_optimizer optimizer = args->optimizer;
    step s = {.library = library, .optimizer = &optimizer};
    sx_status status = SX_OK;
    SX_TRY(sx_optimizer_resolve(&optimizer));
    if (optimizer.base_batch_size > 0 ||
        (optimizer.l2 > 0 && optimizer.kind != SX_OPTIMIZER_LARS)) {
        return sx_error(SX_UNIMPLEMENTED,
                        "training function \"%.100s\": an optimizer with l2 or base_batch_size; "
                        "add the term to the loss, or give the learning rate",
                        name);
    }
    SX_TRY(sx_optimizer_settle_rate(&optimizer, 0, 0));
    SX_TRY(find_function(library, model, &s.model));
    if (args->features != NULL) {
        SX_TRY(find_function(library, args->features, &s.features));
    }
    SX_TRY(check_model(s.model));
    SX_TRY(sx_builder_create_function(&s.b));
    status = build_step(&s);
    if (status == SX_OK) {
        status = sx_library_add(library, name, s.b);
    }
    sx_builder_destroy(s.b);
    return sx_status_annotate(status, __FILE__, __LINE__, "training function \"%.100s\"", name);
}

/* ---- Variables on disk ---- */

sx_status sx_functions_save(const sx_library *library, sx_functions *functions, const char *prefix)
{
    SX_NEED(library);
    SX_NEED(functions);
    SX_NEED(prefix);
    sx_bundle_writer *w = NULL;
    char *folder = sx_strdup(prefix);
    sx_status status = folder != NULL ? SX_OK : sx_no_memory("saving variables");
    char *slash = status == SX_OK ? strrchr(folder, '/') : NULL;
    if (slash != NULL && slash > folder) {
        *slash = '\0';
        status = sx_dir_create(folder);
    }
    sx_free(folder);
    SX_TRY(status);
    SX_TRY(sx_bundle_writer_create(prefix, &w));
    for (int i = 0; i < library->n_variables && status == SX_OK; i++) {
        const sx_variable_spec *v = &library->variables[i];
        const size_t bytes = (size_t)sx_type_bytes(&v->type);
        void *data = sx_alloc(bytes + 1, 1);
        status = data == NULL ? sx_no_memory("saving variables")
                              : sx_functions_read_variable(functions, v->name, data, bytes);
        if (status == SX_OK) {
            status = sx_bundle_add(w, v->name, &(sx_tensor){v->type, data});
        }
        sx_free(data);
    }
    if (status == SX_OK) {
        status = sx_bundle_writer_finish(w);
    }
    sx_bundle_writer_destroy(w);
    return sx_status_annotate(status, __FILE__, __LINE__, "saving %s", prefix);
}

/* Reads all variables, then writes them: an error changes none. */
static sx_status restore(const sx_library *library, sx_functions *functions,
                         const sx_bundle *bundle, sx_arena *arena)
{
    void **values = sx_arena_array(arena, library->n_variables + 1, void *);
    if (values == NULL) {
        return sx_no_memory("restoring variables");
    }
    for (int i = 0; i < library->n_variables; i++) {
        const sx_variable_spec *v = &library->variables[i];
        const sx_bundle_entry *entry = sx_bundle_find(bundle, v->name);
        if (entry == NULL || !sx_type_equal(&entry->type, &v->type)) {
            char has[SX_TYPE_TEXT] = "missing", wants[SX_TYPE_TEXT];
            if (entry != NULL) {
                sx_type_format(&entry->type, has, sizeof(has));
            }
            return sx_error(SX_INVALID_ARGUMENT, "variable \"%.100s\" is %s, expected %s", v->name,
                            has, sx_type_format(&v->type, wants, sizeof(wants)));
        }
        values[i] = sx_arena_alloc(arena, (size_t)sx_type_bytes(&v->type) + 1, 1);
        if (values[i] == NULL) {
            return sx_no_memory("restoring variables");
        }
        SX_TRY(sx_bundle_read(bundle, v->name, &v->type, values[i]));
    }
    for (int i = 0; i < library->n_variables; i++) {
        const sx_variable_spec *v = &library->variables[i];
        SX_TRY(sx_functions_write_variable(functions, v->name, values[i],
                                           (size_t)sx_type_bytes(&v->type)));
    }
    return SX_OK;
}

sx_status sx_functions_restore(const sx_library *library, sx_functions *functions,
                               const char *prefix)
{
    SX_NEED(library);
    SX_NEED(functions);
    SX_NEED(prefix);
    sx_bundle *bundle = NULL;
    sx_arena arena;
    SX_TRY(sx_bundle_open(prefix, &bundle), "restoring %s", prefix);
    sx_arena_init(&arena, 0);
    sx_status status = restore(library, functions, bundle, &arena);
    sx_arena_deinit(&arena);
    sx_bundle_close(bundle);
    return sx_status_annotate(status, __FILE__, __LINE__, "restoring %s", prefix);
}
