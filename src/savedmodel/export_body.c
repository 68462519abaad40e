/* See export_body.h. */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/device_name.h"
#include "graph/ops/vocabulary_lookup.h"
#include "savedmodel/export_body_internal.h"
#include "savedmodel/names.h"
#include "savedmodel/tf_graph.h"

/* A node whose meaning is not its operands' alone: of a function, of variables, of an order. */
typedef struct row {
    const sx_op_def *op;
    sx_export_node_fn *write;
} row;

sx_status sx_export_no_memory(void)
{
    return sx_no_memory("exporting a model");
}

/* The number of a node's vocabulary, or n_vocabularies. */
int sx_export_find_vocabulary(const sx_tf_exporter *e, const sx_node *node)
{
    int k = 0;
    while (k < e->n_vocabularies && !sx_same_vocabulary(e->vocabularies[k]->attrs, node->attrs)) {
        k++;
    }
    return k;
}

static sx_status list_vocabularies(sx_tf_exporter *e, const sx_graph *graph)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        const sx_node *node = &graph->nodes[i];
        if (node->op == &sx_op_vocabulary_lookup &&
            sx_export_find_vocabulary(e, node) == e->n_vocabularies) {
            const sx_node **grown =
                sx_arena_array(&e->arena, e->n_vocabularies + 1, const sx_node *);
            if (grown == NULL) {
                return sx_export_no_memory();
            }
            if (e->n_vocabularies > 0) {
                memcpy(grown, e->vocabularies, (size_t)e->n_vocabularies * sizeof(*grown));
            }
            grown[e->n_vocabularies++] = node;
            e->vocabularies = grown;
        }
        for (int k = 0; k < node->op->n_attrs; k++) {
            if (node->op->attrs[k].kind == SX_ATTR_BODY) {
                SX_TRY(list_vocabularies(e, sx_node_body(node, k)));
            }
        }
    }
    return SX_OK;
}

sx_status sx_tf_exporter_create(const sx_library *library, sx_tf_exporter **out)
{
    sx_tf_exporter *e = sx_alloc(1, sizeof(*e));
    if (e == NULL) {
        return sx_export_no_memory();
    }
    *e = (sx_tf_exporter){.library = library};
    sx_arena_init(&e->arena, 0);
    sx_buf_init(&e->refused, 1 << 16);
    e->n_variables = library != NULL ? library->n_variables : 0;
    e->functions = sx_arena_array(&e->arena, library != NULL ? library->n_functions + 1 : 1,
                                  sx_export_function);
    sx_status status = e->functions == NULL ? sx_export_no_memory() : SX_OK;
    for (int i = 0; library != NULL && i < library->n_functions && status == SX_OK; i++) {
        status = list_vocabularies(e, library->functions[i].body);
    }
    if (status != SX_OK) {
        sx_tf_exporter_destroy(e);
        return status;
    }
    e->n_handles = e->n_variables + e->n_vocabularies;
    *out = e;
    return SX_OK;
}

void sx_tf_exporter_destroy(sx_tf_exporter *e)
{
    if (e != NULL) {
        sx_buf_deinit(&e->refused);
        sx_arena_deinit(&e->arena);
        sx_free(e);
    }
}

int sx_tf_exporter_handles(const sx_tf_exporter *e)
{
    return e->n_handles;
}

sx_tf_value sx_tf_exporter_table(const sx_tf_exporter *e, sx_tf_writer *w, int handle)
{
    const sx_node *node = e->vocabularies[handle - e->n_variables];
    return sx_vocabulary_table(w, node->name, node->attrs);
}

/* ---- Values ---- */

sx_type sx_export_any_shape(const sx_type *type)
{
    sx_type out = *type;
    for (int d = 0; d < out.rank; d++) {
        out.dims[d] = out.dims[d] < 0 ? SX_UNKNOWN_DIM : out.dims[d];
    }
    return out;
}

sx_tf_value sx_export_value(const sx_export_body *s, sx_value v)
{
    return s->values[v.id];
}

int sx_export_dtype(const sx_export_body *s, sx_value v)
{
    return (int)sx_graph_type(s->graph, v)->dtype;
}

/* Puts a node that reads, or that has effects, into its order. */
void sx_export_order(sx_export_body *s, sx_tf_value node, bool effects)
{
    if (!s->ordered) {
        return;
    }
    if (!effects) {
        sx_tf_control(s->w, node, (sx_tf_values){&s->last, s->has_last ? 1 : 0});
        s->readers[s->n_readers++] = node;
        return;
    }
    s->readers[s->n_readers] = s->last;
    sx_tf_control(s->w, node, (sx_tf_values){s->readers, s->n_readers + (s->has_last ? 1 : 0)});
    s->last = node;
    s->has_last = true;
    s->n_readers = 0;
}

/* ---- Variables and effects ---- */

static sx_status write_handle(sx_export_body *s, const sx_node *node)
{
    const sx_variable_handle_attrs *attrs = node->attrs;
    const sx_variable_spec *v = sx_library_find_variable(s->e->library, attrs->name);
    s->values[node->first_output.id] = s->handles[v - s->e->library->variables];
    return SX_OK;
}

static sx_status write_read(sx_export_body *s, const sx_node *node)
{
    if (s->by_value) {
        s->values[node->first_output.id] = sx_export_value(s, node->inputs[0]);
        return SX_OK;
    }
    const sx_tf_value y =
        sx_tf_add(s->w, "ReadVariableOp", NULL, sx_tf_in(sx_export_value(s, node->inputs[0])),
                  sx_tf_attrs(sx_tf_attr_type("dtype", sx_export_dtype(s, node->first_output))));
    sx_export_order(s, y, false);
    s->values[node->first_output.id] = y;
    return SX_OK;
}

static sx_status write_assign(sx_export_body *s, const sx_node *node)
{
    const sx_tf_value value = sx_export_value(s, node->inputs[1]);
    sx_export_order(
        s,
        sx_tf_add(s->w, "AssignVariableOp", NULL,
                  sx_tf_in(sx_export_value(s, node->inputs[0]), value),
                  sx_tf_attrs(sx_tf_attr_type("dtype", sx_export_dtype(s, node->inputs[1])))),
        true);
    s->values[node->first_output.id] = value;
    return SX_OK;
}

/* The inputs from `first` on, and their types. */
static sx_status collect_data(sx_export_body *s, const sx_node *node, int first,
                              const char *message, sx_tf_value *head, sx_tf_values *out,
                              int **out_types)
{
    sx_tf_value *in = sx_arena_array(&s->e->arena, node->n_inputs + 3, sx_tf_value);
    int *types = sx_arena_array(&s->e->arena, node->n_inputs + 2, int), n = 0;
    if (in == NULL || types == NULL) {
        return sx_export_no_memory();
    }
    in[0] = *head;
    if (message != NULL && message[0] != '\0') {
        const sx_bytes text = {message, strlen(message)};
        types[n++] = SX_STRING;
        in[n] = sx_tf_const(s->w, "message",
                            &(sx_tensor){sx_scalar_type(SX_STRING), (void *)(uintptr_t)&text});
    }
    for (int i = first; i < node->n_inputs; i++) {
        types[n++] = sx_export_dtype(s, node->inputs[i]);
        in[n] = sx_export_value(s, node->inputs[i]);
    }
    *out = (sx_tf_values){in, n + 1};
    *out_types = types;
    return SX_OK;
}

/* The message is the first of what an Assert shows. */
static sx_status write_assert(sx_export_body *s, const sx_node *node)
{
    const sx_assert_attrs *attrs = node->attrs;
    const int rank = sx_graph_type(s->graph, node->inputs[0])->rank;
    const sx_tf_value made = sx_export_value(s, node->inputs[0]);
    sx_tf_value condition = made;
    sx_tf_values in;
    int *types;
    if (rank != 0) { /* all of them */
        const sx_tf_value line = sx_tf_ints(s->w, "line", &(sx_ints){1, {-1}});
        condition = sx_tf_add(s->w, "Reshape", NULL, sx_tf_in(condition, line),
                              sx_tf_attrs(sx_tf_attr_type("T", SX_BOOL)));
        condition =
            sx_tf_add(s->w, "All", NULL, sx_tf_in(condition, sx_tf_const_i32(s->w, "axis", 0)),
                      SX_TF_NO_ATTRS);
    }
    SX_TRY(collect_data(s, node, 1, attrs->message != NULL ? attrs->message : "", &condition, &in,
                        &types));
    if (in.count == 1) { /* it shows something */
        const sx_bytes text = {node->name, strlen(node->name)};
        ((sx_tf_value *)(uintptr_t)in.items)[in.count++] = sx_tf_const(
            s->w, "message", &(sx_tensor){sx_scalar_type(SX_STRING), (void *)(uintptr_t)&text});
        types[0] = SX_STRING;
    }
    sx_export_order(s,
                    sx_tf_add(s->w, "Assert", NULL, in,
                              sx_tf_attrs(sx_tf_attr_types("T", in.count - 1, types))),
                    true);
    s->values[node->first_output.id] = made;
    return SX_OK;
}

static sx_status write_print(sx_export_body *s, const sx_node *node)
{
    const sx_print_attrs *attrs = node->attrs;
    sx_tf_value x = sx_export_value(s, node->inputs[0]);
    sx_tf_values in;
    int *types;
    SX_TRY(collect_data(s, node, 1, NULL, &x, &in, &types));
    sx_tf_attr list[4] = {sx_tf_attr_type("T", sx_export_dtype(s, node->inputs[0])),
                          sx_tf_attr_types("U", in.count - 1, types)};
    int n = 2;
    if (attrs->message != NULL && attrs->message[0] != '\0') {
        list[n++] = sx_tf_attr_string("message", attrs->message);
    }
    if (attrs->elements != 0 && attrs->elements != 3) {
        list[n++] = sx_tf_attr_int("summarize", attrs->elements);
    }
    const sx_tf_value y = sx_tf_add(s->w, "Print", NULL, in, (sx_tf_attr_list){list, n});
    sx_export_order(s, y, true);
    s->values[node->first_output.id] = y;
    return SX_OK;
}

static bool can_write(const sx_graph *graph, int depth);

/* custom_gradient, refuse_gradient: an IdentityN with a type of gradient that TensorFlow does not
 * know, so that it refuses one through it as it does where a model was saved without gradient
 * functions. That of a custom_gradient is written for those who read the model back (names.h). */
static sx_status write_gradient(sx_export_body *s, const sx_node *node)
{
    sx_tf_value *in = sx_arena_array(&s->e->arena, node->n_inputs + 1, sx_tf_value);
    int *types = sx_arena_array(&s->e->arena, node->n_inputs + 1, int);
    if (in == NULL || types == NULL) {
        return sx_export_no_memory();
    }
    for (int i = 0; i < node->n_inputs; i++) {
        in[i] = sx_export_value(s, node->inputs[i]);
        types[i] = sx_export_dtype(s, node->inputs[i]);
    }
    sx_tf_attr attrs[4] = {sx_tf_attr_types("T", node->n_inputs, types),
                           sx_tf_attr_string("_gradient_op_type", node->name)};
    int n = 2;
    const sx_custom_gradient_attrs *custom =
        node->op == &sx_op_custom_gradient ? node->attrs : NULL;
    if (custom != NULL && can_write(custom->gradient, 0)) {
        const char *name = NULL;
        SX_TRY(sx_export_gradient(s, node, &name));
        attrs[n++] = sx_tf_attr_func(SX_TF_GRADIENT, name);
        attrs[n++] = sx_tf_attr_int(SX_TF_GRADIENT_RESULTS, custom->results);
    }
    const sx_tf_value first = sx_tf_add(s->w, "IdentityN", NULL, (sx_tf_values){in, node->n_inputs},
                                        (sx_tf_attr_list){attrs, n});
    for (int i = 0; i < node->n_outputs; i++) {
        s->values[sx_node_output(node, i).id] = sx_tf_output(first, i);
    }
    return SX_OK;
}

/* iota of a computed shape: Range, in the axis' place, broadcast. */
static sx_status write_iota(sx_export_body *s, const sx_node *node)
{
    const sx_iota_attrs *attrs = node->attrs;
    if (node->n_attr_operands == 0) {
        return sx_export_operator(s, node);
    }
    const sx_value shape = node->attr_operands[0].value;
    const sx_type *of = sx_graph_type(s->graph, shape);
    sx_tf_writer *w = s->w;
    if (node->n_attr_operands != 1 || of->rank != 1 || of->dims[0] < 1 ||
        of->dims[0] > SX_MAX_RANK) {
        return sx_error(SX_UNIMPLEMENTED,
                        "iota \"%.100s\" of an unknown rank cannot be exported to TensorFlow",
                        node->name);
    }
    const int rank = (int)of->dims[0], axis = (int)attrs->axis;
    const sx_tf_attr_list t = sx_tf_attrs(sx_tf_attr_type("T", (int)attrs->dtype));
    const sx_tf_value dims = sx_tf_cast(w, sx_export_value(s, shape), of->dtype, SX_I32);
    const sx_tf_value limit = sx_tf_add(
        w, "GatherV2", "limit",
        sx_tf_in(dims, sx_tf_const_i32(w, "axis", axis), sx_tf_const_i32(w, "zero", 0)),
        sx_tf_attrs(sx_tf_attr_type("Tparams", SX_I32), sx_tf_attr_type("Tindices", SX_I32),
                    sx_tf_attr_type("Taxis", SX_I32)));
    const sx_tf_value range =
        sx_tf_add(w, "Range", NULL,
                  sx_tf_in(sx_tf_const_i32(w, "start", 0), limit, sx_tf_const_i32(w, "delta", 1)),
                  SX_TF_NO_ATTRS);
    sx_tf_value y = sx_tf_cast(w, range, SX_I32, attrs->dtype);
    if (rank > 1) {
        sx_ints along = {.n = rank};
        for (int i = 0; i < rank; i++) {
            along.v[i] = i == axis ? -1 : 1;
        }
        y = sx_tf_add(w, "Reshape", NULL, sx_tf_in(y, sx_tf_ints(w, "along", &along)), t);
        y = sx_tf_add(w, "BroadcastTo", NULL, sx_tf_in(y, dims), t);
    }
    s->values[node->first_output.id] = y;
    return SX_OK;
}

/* ---- A body ---- */

/* In a function the table is an argument, handed down from the graph. */
static sx_status write_lookup(sx_export_body *s, const sx_node *node)
{
    if (s->handles == NULL) {
        return sx_export_operator(s, node);
    }
    const sx_tf_value x = sx_export_value(s, node->inputs[0]);
    sx_vocabulary_find(s->w,
                       &(sx_tf_op){.attrs = node->attrs,
                                   .name = node->name,
                                   .in = &x,
                                   .out = &s->values[node->first_output.id],
                                   .n_in = 1,
                                   .n_out = 1},
                       s->handles[s->e->n_variables + sx_export_find_vocabulary(s->e, node)]);
    return SX_OK;
}

static const row rows[] = {
    {&sx_op_call, sx_export_call},
    {&sx_op_if, sx_export_if},
    {&sx_op_while, sx_export_while},
    {&sx_op_map, sx_export_map},
    {&sx_op_custom_gradient, write_gradient},
    {&sx_op_refuse_gradient, write_gradient},
    {&sx_op_variable_handle, write_handle},
    {&sx_op_read_variable, write_read},
    {&sx_op_assign_variable, write_assign},
    {&sx_op_assert, write_assert},
    {&sx_op_print, write_print},
    {&sx_op_iota, write_iota},
    {&sx_op_vocabulary_lookup, write_lookup},
};

static sx_export_node_fn *writer_of(const sx_op_def *op)
{
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        if (rows[i].op == op) {
            return rows[i].write;
        }
    }
    return op->to_tf != NULL ? sx_export_operator : NULL;
}

sx_status sx_export_nodes(sx_export_body *s)
{
    for (int i = 0; i < s->graph->n_nodes; i++) {
        const sx_node *node = &s->graph->nodes[i];
        if (node->op == &sx_op_parameter) {
            continue;
        }
        /* Without its job and task: TensorFlow loads no model that names another's. */
        sx_device_name device;
        char text[SX_DEVICE_NAME_BYTES];
        SX_TRY(sx_device_name_parse(node->device, &device));
        device.job[0] = '\0';
        device.replica = device.task = -1;
        sx_tf_scope_push(s->w, node->name);
        sx_tf_graph_set_device(s->w, sx_device_name_print(&device, text));
        sx_status status = writer_of(node->op)(s, node);
        sx_tf_graph_set_device(s->w, "");
        sx_tf_scope_pop(s->w);
        SX_TRY(status);
    }
    return SX_OK;
}

sx_status sx_tf_exporter_nodes(sx_tf_exporter *e, sx_tf_writer *w, const sx_graph *graph,
                               sx_tf_value *values)
{
    sx_export_body s = {.e = e, .w = w, .graph = graph, .values = values};
    return sx_export_nodes(&s);
}

/* ---- Before anything is written ---- */

/* Whether TensorFlow has a form of the node itself. */
static bool has_form(const sx_node *node)
{
    const bool is_gradient =
        node->op == &sx_op_call && ((const sx_call_attrs *)node->attrs)->gradient != 0;
    const bool open = writer_of(node->op) == sx_export_operator && node->n_attr_operands > 0;
    return node->op == &sx_op_parameter ||
           (writer_of(node->op) != NULL && !is_gradient && !(open && sx_export_form(node) == NULL));
}

/* Whether it has forms of all nodes of a region, none of which calls a function. */
static bool can_write(const sx_graph *graph, int depth)
{
    enum { MOST_DEPTH = 16 };
    bool can = depth < MOST_DEPTH;
    for (int i = 0; i < graph->n_nodes && can; i++) {
        const sx_node *node = &graph->nodes[i];
        can = has_form(node) && node->op != &sx_op_call;
        for (int k = 0; k < node->op->n_attrs && can; k++) {
            can = node->op->attrs[k].kind != SX_ATTR_BODY ||
                  can_write(sx_node_body(node, k), depth + 1);
        }
    }
    return can;
}

static sx_status check(sx_tf_exporter *e, const sx_graph *graph)
{
    for (int i = 0; i < graph->n_nodes; i++) {
        const sx_node *node = &graph->nodes[i];
        if (!has_form(node)) {
            const bool is_gradient =
                node->op == &sx_op_call && ((const sx_call_attrs *)node->attrs)->gradient != 0;
            const bool open =
                writer_of(node->op) == sx_export_operator && node->n_attr_operands > 0;
            sx_buf_printf(&e->refused, "%s%s \"%s\"%s", e->refused.size > 0 ? ", " : "",
                          node->op->name, node->name,
                          is_gradient ? " (a gradient)"
                          : open      ? " (with computed attributes)"
                                      : "");
        }
        const bool written = (node->op->flags & SX_OP_FOR_GRADIENT) == 0;
        for (int k = 0; k < node->op->n_attrs && written; k++) {
            if (node->op->attrs[k].kind == SX_ATTR_BODY) {
                SX_TRY(check(e, sx_node_body(node, k)));
            }
        }
        if (node->op == &sx_op_call) {
            const sx_function *called;
            SX_TRY(sx_export_find_function(e, node, &called));
            if (!sx_export_state(e, called)->checked) {
                sx_export_state(e, called)->checked = true;
                SX_TRY(check(e, called->body));
            }
        }
    }
    return SX_OK;
}

sx_status sx_tf_exporter_check(sx_tf_exporter *e, const sx_graph *const *bodies, int n)
{
    sx_export_facts f;
    SX_TRY(sx_export_facts_init(e, &f));
    for (int i = 0; i < n; i++) {
        SX_TRY(check(e, bodies[i]));
        SX_TRY(sx_export_learn(e, bodies[i], &f));
    }
    return e->refused.size == 0
               ? SX_OK
               : sx_error(SX_UNIMPLEMENTED, "operators that cannot be exported to TensorFlow: %s",
                          sx_buf_text(&e->refused));
}
