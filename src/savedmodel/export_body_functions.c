/* What nodes call, and their regions, as functions of the graph (export_body_internal.h). */
#include <string.h>

#include "savedmodel/export_body_internal.h"
#include "savedmodel/names.h"

sx_status sx_export_find_function(const sx_tf_exporter *e, const sx_node *call,
                                  const sx_function **out)
{
    const char *name = ((const sx_call_attrs *)call->attrs)->function;
    *out = e->library != NULL && name != NULL ? sx_library_find(e->library, name) : NULL;
    return *out != NULL ? SX_OK
                        : sx_error(SX_NOT_FOUND, "there is no function \"%.100s\"",
                                   name != NULL ? name : "");
}

sx_export_function *sx_export_state(const sx_tf_exporter *e, const sx_function *function)
{
    return &e->functions[function - e->library->functions];
}

/* ---- Facts ---- */

static sx_status learn_function(sx_tf_exporter *e, const sx_function *function,
                                sx_export_facts *out);

static void count_nodes(sx_export_facts *f, int64_t more)
{
    f->nodes = SX_MIN(f->nodes + more, SX_EXPORT_MOST_IN_PLACE + 1);
}

sx_status sx_export_learn(sx_tf_exporter *e, const sx_graph *graph, sx_export_facts *out)
{
    count_nodes(out, graph->n_nodes);
    for (int i = 0; i < graph->n_nodes; i++) {
        const sx_node *node = &graph->nodes[i];
        if (node->op == &sx_op_variable_handle) {
            const sx_variable_handle_attrs *attrs = node->attrs;
            const sx_variable_spec *v =
                e->library != NULL ? sx_library_find_variable(e->library, attrs->name) : NULL;
            if (v == NULL) {
                return sx_error(SX_NOT_FOUND, "there is no variable \"%.100s\"", attrs->name);
            }
            out->uses[v - e->library->variables] = true;
        }
        if (node->op == &sx_op_vocabulary_lookup) {
            out->uses[e->n_variables + sx_export_find_vocabulary(e, node)] = true;
        }
        if (node->op == &sx_op_call) {
            const sx_function *called;
            SX_TRY(sx_export_find_function(e, node, &called));
            SX_TRY(learn_function(e, called, out));
        }
        out->reads = out->reads || node->op == &sx_op_read_variable;
        out->effects = out->effects || (node->op->flags & SX_OP_EFFECT) != 0;
        for (int k = 0; k < node->n_inputs; k++) {
            out->passes = out->passes ||
                          (node->op != &sx_op_read_variable && node->op != &sx_op_assign_variable &&
                           sx_graph_type(graph, node->inputs[k])->dtype == SX_RESOURCE);
        }
        const bool written = (node->op->flags & SX_OP_FOR_GRADIENT) == 0;
        for (int k = 0; k < node->op->n_attrs && written; k++) {
            if (node->op->attrs[k].kind == SX_ATTR_BODY) {
                SX_TRY(sx_export_learn(e, sx_node_body(node, k), out));
            }
        }
    }
    return SX_OK;
}

/* Adds the function's facts to *out. */
static sx_status learn_function(sx_tf_exporter *e, const sx_function *function,
                                sx_export_facts *out)
{
    sx_export_function *f = sx_export_state(e, function);
    if (f->visiting) {
        return sx_error(SX_INVALID_ARGUMENT, "function \"%.100s\" calls itself", function->name);
    }
    if (!f->known) {
        f->visiting = true;
        f->facts.uses = sx_arena_array(&e->arena, e->n_handles + 1, bool);
        sx_status status = f->facts.uses == NULL ? sx_export_no_memory()
                                                 : sx_export_learn(e, function->body, &f->facts);
        f->visiting = false;
        SX_TRY(status);
        f->known = true;
    }
    out->reads = out->reads || f->facts.reads;
    out->effects = out->effects || f->facts.effects;
    out->passes = out->passes || f->facts.passes;
    count_nodes(out, f->facts.nodes);
    for (int i = 0; i < e->n_handles; i++) {
        out->uses[i] = out->uses[i] || f->facts.uses[i];
    }
    return SX_OK;
}

sx_status sx_export_facts_init(sx_tf_exporter *e, sx_export_facts *out)
{
    *out = (sx_export_facts){.uses = sx_arena_array(&e->arena, e->n_handles + 1, bool)};
    return out->uses == NULL ? sx_export_no_memory() : SX_OK;
}

sx_status sx_tf_exporter_uses(sx_tf_exporter *e, const sx_function *function, const bool **out)
{
    sx_export_facts found;
    SX_TRY(sx_export_facts_init(e, &found));
    SX_TRY(learn_function(e, function, &found));
    *out = found.uses;
    return SX_OK;
}

/* ---- Functions ---- */

/* Operands, then handles: the arguments of a function, a branch or a loop. */
typedef struct args {
    int n, n_values;
    bool by_value; /* handles of variables are the values */
    int first;     /* of the operands; before them, of a loop, what counts its iterations */
    int *types;
    sx_tf_value *in;
    int *variables; /* [n - first - n_values] */
} args;

/* The caller sets the `first` that come before them. `by_value`: what is called gets the values of
 * variables, of which TensorFlow has gradients where a branch or a loop gets no handles. */
static sx_status collect_args(sx_export_body *s, const sx_value *values, int n, int first,
                              bool by_value, const sx_export_facts *f, args *out)
{
    sx_tf_exporter *e = s->e;
    const size_t most = (size_t)first + (size_t)n + (size_t)e->n_handles + 1;
    *out = (args){.n_values = n,
                  .by_value = by_value,
                  .first = first,
                  .types = sx_arena_array(&e->arena, most, int),
                  .in = sx_arena_array(&e->arena, most, sx_tf_value),
                  .variables = sx_arena_array(&e->arena, most, int)};
    if (out->types == NULL || out->in == NULL || out->variables == NULL) {
        return sx_export_no_memory();
    }
    for (int i = 0; i < n; i++) {
        out->types[first + i] = sx_export_dtype(s, values[i]);
        out->in[first + i] = sx_export_value(s, values[i]);
    }
    out->n = first + n;
    for (int i = 0; i < e->n_handles; i++) {
        if (f->uses[i]) {
            out->variables[out->n - first - n] = i;
            const bool value = by_value && i < e->n_variables;
            const int dtype = value ? (int)e->library->variables[i].type.dtype : SX_TF_RESOURCE;
            out->types[out->n] = dtype;
            out->in[out->n++] =
                value && !s->by_value
                    ? sx_tf_add(s->w, "ReadVariableOp", NULL, sx_tf_in(s->handles[i]),
                                sx_tf_attrs(sx_tf_attr_type("dtype", dtype)))
                    : s->handles[i];
        }
    }
    return SX_OK;
}

/* The shape of argument i after the loop's count, a handle or the value of a variable. */
static sx_type handle_shape(const sx_tf_exporter *e, const args *a, int i)
{
    const int k = a->variables[i - a->n_values];
    return a->by_value && k < e->n_variables ? e->library->variables[k].type
                                             : sx_scalar_type(SX_RESOURCE);
}

/* Writes a body as a function of the graph: first its arguments, then handles. `passed`: of a loop,
 * which returns its count, one more, and the bound of it before its results, and its arguments from
 * that one on after them; -1 = no loop. */
static sx_status write_function(sx_tf_exporter *e, sx_tf_writer *w, const char *name,
                                const sx_graph *graph, const args *a, bool effects, int passed,
                                const char **out_name)
{
    const int before = passed >= 0 ? a->first : 0, after = before + graph->n_results,
              n = passed >= 0 ? after + a->n - passed : after;
    sx_tf_value *values = sx_arena_array(&e->arena, graph->n_values, sx_tf_value);
    sx_tf_value *handles = sx_arena_array(&e->arena, e->n_handles + 1, sx_tf_value);
    sx_tf_value *results = sx_arena_array(&e->arena, n + 1, sx_tf_value);
    sx_tf_value *readers = sx_arena_array(&e->arena, graph->n_nodes + 1, sx_tf_value);
    int *types = sx_arena_array(&e->arena, n + 1, int);
    if (values == NULL || handles == NULL || results == NULL || types == NULL || readers == NULL) {
        return sx_export_no_memory();
    }
    sx_tf_writer *inside = sx_tf_function_begin(w, name, a->n, a->types);
    for (int i = 0; i < graph->n_args; i++) {
        values[graph->args[i].value.id] = sx_tf_arg(a->first + i);
    }
    for (int i = 0, k = a->first + a->n_values; k < a->n; i++, k++) {
        handles[a->variables[i]] = sx_tf_arg(k);
    }
    sx_export_body s = {.e = e,
                        .w = inside,
                        .graph = graph,
                        .values = values,
                        .handles = handles,
                        .by_value = a->by_value,
                        .ordered = effects,
                        .readers = readers};
    sx_status status = sx_export_nodes(&s);
    if (before > 0) {
        results[0] = sx_tf_add(inside, "AddV2", "count",
                               sx_tf_in(sx_tf_arg(0), sx_tf_const_i32(inside, "one", 1)),
                               sx_tf_attrs(sx_tf_attr_type("T", SX_I32)));
        results[1] = sx_tf_arg(1);
        types[0] = types[1] = SX_I32;
    }
    for (int i = 0; i < graph->n_results; i++) {
        results[before + i] = values[graph->results[i].value.id];
        types[before + i] = sx_export_dtype(&s, graph->results[i].value);
    }
    for (int i = after, k = passed; i < n; i++, k++) {
        results[i] = sx_tf_arg(k);
        types[i] = a->types[k];
    }
    *out_name = sx_tf_function_end(inside, (sx_tf_values){results, n}, types);
    return status;
}

/* The nodes of a body where it is called: in[args], handles[handles], out[results]. TensorFlow
 * has gradients of nodes, and of calls only in models that its own saver wrote: through those that
 * are left because there are too many nodes its tape does not go. */
static sx_status write_inline(sx_tf_exporter *e, sx_tf_writer *w, const sx_graph *graph,
                              const sx_tf_value *in, const sx_tf_value *handles, bool by_value,
                              sx_tf_value *out)
{
    sx_export_body s = {.e = e,
                        .w = w,
                        .graph = graph,
                        .values = sx_arena_array(&e->arena, graph->n_values + 1, sx_tf_value),
                        .handles = handles,
                        .by_value = by_value};
    if (s.values == NULL) {
        return sx_export_no_memory();
    }
    for (int i = 0; i < graph->n_args; i++) {
        s.values[graph->args[i].value.id] = in[i];
    }
    e->n_in_place += graph->n_nodes;
    SX_TRY(sx_export_nodes(&s));
    for (int i = 0; i < graph->n_results; i++) {
        out[i] = s.values[graph->results[i].value.id];
    }
    return SX_OK;
}

/* What the regions of a node do, and how they get variables: where nothing is assigned on the way
 * and no handle is passed on, by value. */
static sx_status region_facts(sx_export_body *s, const sx_node *node, sx_export_facts *out,
                              bool *out_by_value)
{
    SX_TRY(sx_export_facts_init(s->e, out));
    for (int k = 0; k < node->op->n_attrs; k++) {
        if (node->op->attrs[k].kind == SX_ATTR_BODY) {
            SX_TRY(sx_export_learn(s->e, sx_node_body(node, k), out));
        }
    }
    *out_by_value = !out->effects && !out->passes && !s->ordered;
    for (int i = 0; i < node->n_inputs; i++) {
        *out_by_value = *out_by_value && sx_export_dtype(s, node->inputs[i]) != SX_RESOURCE;
    }
    return SX_OK;
}

/* The outputs of a node, or of its first n. */
static void set_outputs(sx_export_body *s, const sx_node *node, sx_tf_value first)
{
    for (int i = 0; i < node->n_outputs; i++) {
        s->values[node->first_output.id + (uint32_t)i] =
            (sx_tf_value){first.node, first.output + i};
    }
}

/* A call, of a function that TensorFlow must run in order, or that has too many nodes. */
static sx_status add_call(sx_tf_exporter *e, sx_tf_writer *w, const char *name,
                          const sx_function *function, const args *a, sx_tf_value *out)
{
    sx_export_function *f = sx_export_state(e, function);
    const sx_graph *callee = function->body;
    int *types = sx_arena_array(&e->arena, callee->n_results + 1, int);
    if (types == NULL) {
        return sx_export_no_memory();
    }
    const char **written = &f->written[a->by_value];
    if (*written == NULL) {
        const char *unique = sx_arena_printf(&e->arena, "inference_%s", function->name);
        if (unique == NULL) {
            return sx_export_no_memory();
        }
        SX_TRY(write_function(e, w, unique, callee, a, f->facts.effects, -1, written));
    }
    for (int i = 0; i < callee->n_results; i++) {
        types[i] = (int)sx_graph_type(callee, callee->results[i].value)->dtype;
    }
    const bool stateful = f->facts.reads || f->facts.effects;
    *out = sx_tf_add(w, stateful ? "StatefulPartitionedCall" : "PartitionedCall", name,
                     (sx_tf_values){a->in, a->n},
                     sx_tf_attrs(sx_tf_attr_types("Tin", a->n, a->types),
                                 sx_tf_attr_types("Tout", callee->n_results, types),
                                 sx_tf_attr_func("f", *written)));
    return SX_OK;
}

sx_status sx_export_call(sx_export_body *s, const sx_node *node)
{
    const sx_function *called;
    sx_export_facts f;
    args a;
    sx_tf_value first;
    SX_TRY(sx_export_find_function(s->e, node, &called));
    SX_TRY(sx_export_facts_init(s->e, &f));
    SX_TRY(learn_function(s->e, called, &f));
    if (!f.effects && !(f.reads && s->ordered) &&
        s->e->n_in_place + f.nodes <= SX_EXPORT_MOST_IN_PLACE) {
        sx_tf_value *in = sx_arena_array(&s->e->arena, node->n_inputs + 1, sx_tf_value);
        sx_tf_value *y = sx_arena_array(&s->e->arena, node->n_outputs + 1, sx_tf_value);
        if (in == NULL || y == NULL) {
            return sx_export_no_memory();
        }
        for (int i = 0; i < node->n_inputs; i++) {
            in[i] = sx_export_value(s, node->inputs[i]);
        }
        SX_TRY(write_inline(s->e, s->w, called->body, in, s->handles, s->by_value, y));
        memcpy(&s->values[node->first_output.id], y, (size_t)node->n_outputs * sizeof(*y));
        return SX_OK;
    }
    SX_TRY(collect_args(s, node->inputs, node->n_inputs, 0, s->by_value, &f, &a));
    SX_TRY(add_call(s->e, s->w, NULL, called, &a, &first));
    if (f.reads || f.effects) {
        sx_export_order(s, first, f.effects);
    }
    set_outputs(s, node, first);
    return SX_OK;
}

sx_status sx_export_if(sx_export_body *s, const sx_node *node)
{
    const sx_if_attrs *attrs = node->attrs;
    sx_export_facts f;
    args a;
    bool by_value;
    const char *then_name, *else_name;
    SX_TRY(region_facts(s, node, &f, &by_value));
    SX_TRY(collect_args(s, node->inputs + 1, node->n_inputs - 1, 0, by_value, &f, &a));
    SX_TRY(write_function(s->e, s->w, "then", attrs->then_body, &a, f.effects, -1, &then_name));
    SX_TRY(write_function(s->e, s->w, "else", attrs->else_body, &a, f.effects, -1, &else_name));
    int *types = sx_arena_array(&s->e->arena, node->n_outputs + 1, int);
    sx_type *shapes = sx_arena_array(&s->e->arena, node->n_outputs + 1, sx_type);
    sx_tf_value *in = sx_arena_array(&s->e->arena, a.n + 1, sx_tf_value);
    if (types == NULL || in == NULL || shapes == NULL) {
        return sx_export_no_memory();
    }
    in[0] = sx_export_value(s, node->inputs[0]);
    memcpy(in + 1, a.in, (size_t)a.n * sizeof(*in));
    for (int i = 0; i < node->n_outputs; i++) {
        types[i] = sx_export_dtype(s, sx_node_output(node, i));
        shapes[i] = sx_export_any_shape(sx_graph_type(s->graph, sx_node_output(node, i)));
    }
    const bool stateful = f.effects || (f.reads && !by_value);
    const sx_tf_value first = sx_tf_add(
        s->w, stateful ? "If" : "StatelessIf", NULL, (sx_tf_values){in, a.n + 1},
        sx_tf_attrs(sx_tf_attr_type("Tcond", SX_BOOL), sx_tf_attr_types("Tin", a.n, a.types),
                    sx_tf_attr_types("Tout", node->n_outputs, types),
                    sx_tf_attr_func("then_branch", then_name),
                    sx_tf_attr_func("else_branch", else_name),
                    sx_tf_attr_shapes("output_shapes", node->n_outputs, shapes)));
    if (stateful) {
        sx_export_order(s, first, f.effects);
    }
    set_outputs(s, node, first);
    return SX_OK;
}

/* TensorFlow's gradient counts the iterations of a loop by its first input, and takes the second as
 * the bound of what they save (-1: none). The bound of its trips, if it has one, is also an
 * attribute that other runtimes ignore: TensorFlow's maximum_iterations would end the loop without
 * an error. */
sx_status sx_export_while(sx_export_body *s, const sx_node *node)
{
    enum { COUNTS = 2 };
    const sx_while_attrs *attrs = node->attrs;
    sx_export_facts f;
    args a;
    bool by_value;
    const char *condition_name, *body_name;
    SX_TRY(region_facts(s, node, &f, &by_value));
    SX_TRY(collect_args(s, node->inputs, node->n_inputs, COUNTS, by_value, &f, &a));
    a.in[0] = sx_tf_const_i32(s->w, "count", 0);
    a.in[1] = sx_tf_const_i32(s->w, "most",
                              attrs->trips > 0 ? (int32_t)SX_MIN(attrs->trips, INT32_MAX) : -1);
    a.types[0] = a.types[1] = SX_I32;
    SX_TRY(write_function(s->e, s->w, "condition", attrs->condition, &a, f.effects, -1,
                          &condition_name));
    SX_TRY(write_function(s->e, s->w, "body", attrs->body, &a, f.effects, COUNTS + node->n_outputs,
                          &body_name));
    sx_type *shapes = sx_arena_array(&s->e->arena, a.n + 1, sx_type);
    if (shapes == NULL) {
        return sx_export_no_memory();
    }
    shapes[0] = shapes[1] = sx_scalar_type(SX_I32);
    for (int i = 0; i < a.n - COUNTS; i++) {
        /* those of the first iteration need not be those of the last */
        const sx_value v = i < node->n_outputs  ? sx_node_output(node, i)
                           : i < node->n_inputs ? node->inputs[i]
                                                : SX_NO_VALUE;
        shapes[COUNTS + i] = sx_value_is(v) ? sx_export_any_shape(sx_graph_type(s->graph, v))
                                            : handle_shape(s->e, &a, i);
    }
    const bool stateful = f.effects || (f.reads && !by_value);
    sx_tf_attr_list attributes = sx_tf_attrs(
        sx_tf_attr_types("T", a.n, a.types), sx_tf_attr_func("cond", condition_name),
        sx_tf_attr_func("body", body_name), sx_tf_attr_shapes("output_shapes", a.n, shapes),
        sx_tf_attr_int(SX_TF_WHILE_TRIPS, attrs->trips));
    attributes.count -= attrs->trips == 0;
    const sx_tf_value first = sx_tf_add(s->w, stateful ? "While" : "StatelessWhile", NULL,
                                        (sx_tf_values){a.in, a.n}, attributes);
    if (stateful) {
        sx_export_order(s, first, f.effects);
    }
    set_outputs(s, node, sx_tf_output(first, COUNTS));
    return SX_OK;
}

sx_status sx_export_gradient(sx_export_body *s, const sx_node *node, const char **out_name)
{
    const sx_graph *gradient = ((const sx_custom_gradient_attrs *)node->attrs)->gradient;
    sx_export_facts f;
    args a;
    SX_TRY(sx_export_facts_init(s->e, &f)); /* it sees its operands alone */
    SX_TRY(collect_args(s, node->inputs, node->n_inputs, 0, s->by_value, &f, &a));
    return write_function(s->e, s->w, "gradient", gradient, &a, false, -1, out_name);
}

/* ---- map ---- */

/* A tensor list's element_shape: the dimensions of x without axis 0, -1 where unknown. */
static sx_tf_value element_shape(sx_tf_writer *w, const sx_type *x)
{
    if (x->rank == SX_UNKNOWN_RANK) {
        return sx_tf_const_i32(w, "element_shape", -1);
    }
    int32_t dims[SX_MAX_RANK];
    for (int d = 1; d < x->rank; d++) {
        dims[d - 1] = x->dims[d] < 0 ? -1 : (int32_t)x->dims[d];
    }
    return sx_tf_const_i32s(w, "element_shape", x->rank - 1, dims);
}

/* while i < n:  the results' lists[i] = region(the operands' lists[i], the other operands)
 *
 *   state   i, n, a list of each result, a list of each mapped operand, other operands, handles */
sx_status sx_export_map(sx_export_body *s, const sx_node *node)
{
    const sx_map_attrs *attrs = node->attrs;
    sx_tf_exporter *e = s->e;
    const int mapped = (int)attrs->mapped, n_y = node->n_outputs, first_x = 2 + n_y;
    sx_export_facts f;
    args a;
    bool by_value;
    const char *name;
    SX_TRY(region_facts(s, node, &f, &by_value));
    SX_TRY(collect_args(s, node->inputs, node->n_inputs, 0, by_value, &f, &a));
    const int n = first_x + a.n;
    int *types = sx_arena_array(&e->arena, n + 1, int);
    int *y_types = sx_arena_array(&e->arena, n_y + 1, int);
    sx_tf_value *state = sx_arena_array(&e->arena, n + 1, sx_tf_value);
    sx_tf_value *results = sx_arena_array(&e->arena, n + 1, sx_tf_value);
    sx_type *shapes = sx_arena_array(&e->arena, n + 1, sx_type);
    if (types == NULL || y_types == NULL || state == NULL || results == NULL || shapes == NULL) {
        return sx_export_no_memory();
    }
    const bool stateful = f.effects || (f.reads && !by_value);
    sx_tf_writer *w = s->w;
    const sx_tf_value shape = sx_tf_add(
        w, "Shape", NULL, sx_tf_in(a.in[0]),
        sx_tf_attrs(sx_tf_attr_type("T", a.types[0]), sx_tf_attr_type("out_type", SX_I32)));
    const sx_tf_value zero = sx_tf_const_i32(w, "zero", 0);
    state[0] = zero;
    state[1] = sx_tf_add(w, "GatherV2", "length", sx_tf_in(shape, zero, zero),
                         sx_tf_attrs(sx_tf_attr_type("Tparams", SX_I32),
                                     sx_tf_attr_type("Tindices", SX_I32),
                                     sx_tf_attr_type("Taxis", SX_I32)));
    types[0] = types[1] = SX_I32;
    shapes[0] = shapes[1] = sx_scalar_type(SX_I32);
    for (int i = 0; i < n_y; i++) {
        const sx_type *y = sx_graph_type(s->graph, sx_node_output(node, i));
        y_types[i] = (int)y->dtype;
        state[2 + i] =
            sx_tf_add(w, "TensorListReserve", NULL, sx_tf_in(element_shape(w, y), state[1]),
                      sx_tf_attrs(sx_tf_attr_type("element_dtype", y_types[i]),
                                  sx_tf_attr_type("shape_type", SX_I32)));
        types[2 + i] = SX_TF_VARIANT;
        shapes[2 + i] = sx_scalar_type(SX_I32);
    }
    for (int i = 0; i < a.n; i++) {
        const bool value = i < a.n_values;
        const sx_type x = value ? sx_export_any_shape(sx_graph_type(s->graph, node->inputs[i]))
                                : handle_shape(e, &a, i);
        types[first_x + i] = i < mapped ? SX_TF_VARIANT : a.types[i];
        shapes[first_x + i] = i < mapped ? sx_scalar_type(SX_I32) : x;
        state[first_x + i] =
            i >= mapped ? a.in[i]
                        : sx_tf_add(w, "TensorListFromTensor", NULL,
                                    sx_tf_in(a.in[i], element_shape(w, &x)),
                                    sx_tf_attrs(sx_tf_attr_type("element_dtype", a.types[i]),
                                                sx_tf_attr_type("shape_type", SX_I32)));
    }
    sx_tf_writer *condition = sx_tf_function_begin(w, "condition", n, types);
    const sx_tf_value less =
        sx_tf_add(condition, "Less", NULL, sx_tf_in(sx_tf_arg(0), sx_tf_arg(1)),
                  sx_tf_attrs(sx_tf_attr_type("T", SX_I32)));
    const int bool_type = SX_BOOL;
    const char *condition_name = sx_tf_function_end(condition, sx_tf_in(less), &bool_type);

    sx_tf_writer *loop = sx_tf_function_begin(w, "body", n, types);
    sx_tf_value *in = sx_arena_array(&e->arena, a.n + 1, sx_tf_value);
    sx_tf_value *y = sx_arena_array(&e->arena, n_y + 1, sx_tf_value);
    sx_tf_value *handles = sx_arena_array(&e->arena, e->n_handles + 1, sx_tf_value);
    if (in == NULL || y == NULL || handles == NULL) {
        return sx_export_no_memory();
    }
    for (int i = 0; i < a.n; i++) {
        in[i] =
            i >= mapped
                ? sx_tf_arg(first_x + i)
                : sx_tf_add(loop, "TensorListGetItem", NULL,
                            sx_tf_in(sx_tf_arg(first_x + i), sx_tf_arg(0),
                                     element_shape(loop, sx_graph_type(s->graph, node->inputs[i]))),
                            sx_tf_attrs(sx_tf_attr_type("element_dtype", a.types[i])));
    }
    if (f.effects) {
        SX_TRY(write_function(e, s->w, "element", attrs->body, &a, true, -1, &name));
        const sx_tf_value called = sx_tf_add(
            loop, "StatefulPartitionedCall", NULL, (sx_tf_values){in, a.n},
            sx_tf_attrs(sx_tf_attr_types("Tin", a.n, a.types),
                        sx_tf_attr_types("Tout", n_y, y_types), sx_tf_attr_func("f", name)));
        sx_tf_control(loop, called, SX_TF_NO_IN);
        for (int i = 0; i < n_y; i++) {
            y[i] = sx_tf_output(called, i);
        }
    } else {
        for (int i = a.n_values; i < a.n; i++) {
            handles[a.variables[i - a.n_values]] = in[i];
        }
        SX_TRY(write_inline(e, loop, attrs->body, in, handles, by_value, y));
    }
    results[0] =
        sx_tf_add(loop, "AddV2", NULL, sx_tf_in(sx_tf_arg(0), sx_tf_const_i32(loop, "one", 1)),
                  sx_tf_attrs(sx_tf_attr_type("T", SX_I32)));
    for (int i = 1; i < n; i++) {
        const bool set = i >= 2 && i < first_x;
        results[i] = !set
                         ? sx_tf_arg(i)
                         : sx_tf_add(loop, "TensorListSetItem", NULL,
                                     sx_tf_in(sx_tf_arg(i), sx_tf_arg(0), y[i - 2]),
                                     sx_tf_attrs(sx_tf_attr_type("element_dtype", y_types[i - 2])));
    }
    const char *body_name = sx_tf_function_end(loop, (sx_tf_values){results, n}, types);
    const sx_tf_value last = sx_tf_add(
        w, stateful ? "While" : "StatelessWhile", NULL, (sx_tf_values){state, n},
        sx_tf_attrs(sx_tf_attr_types("T", n, types), sx_tf_attr_func("cond", condition_name),
                    sx_tf_attr_func("body", body_name),
                    sx_tf_attr_shapes("output_shapes", n, shapes)));
    if (stateful) {
        sx_export_order(s, last, f.effects);
    }
    for (int i = 0; i < n_y; i++) {
        const sx_type *type = sx_graph_type(s->graph, sx_node_output(node, i));
        s->values[node->first_output.id + (uint32_t)i] = sx_tf_add(
            w, "TensorListStack", NULL, sx_tf_in(sx_tf_output(last, 2 + i), element_shape(w, type)),
            sx_tf_attrs(sx_tf_attr_type("element_dtype", y_types[i])));
    }
    return SX_OK;
}

/* ---- A call from the graph ---- */

sx_status sx_tf_exporter_call(sx_tf_exporter *e, sx_tf_writer *w, const char *name,
                              const sx_function *function, const sx_tf_value *in,
                              const sx_tf_value *handles, sx_tf_value *out)
{
    const sx_graph *callee = function->body;
    sx_value *values = sx_arena_array(&e->arena, callee->n_args + 1, sx_value);
    sx_tf_value *given = sx_arena_array(&e->arena, callee->n_values, sx_tf_value), first;
    sx_export_facts f;
    args a;
    if (values == NULL || given == NULL) {
        return sx_export_no_memory();
    }
    SX_TRY(sx_export_facts_init(e, &f));
    SX_TRY(learn_function(e, function, &f));
    if (!f.effects) {
        sx_tf_scope_push(w, name);
        sx_status status = write_inline(e, w, callee, in, handles, false, out);
        sx_tf_scope_pop(w);
        return status;
    }
    for (int i = 0; i < callee->n_args; i++) {
        values[i] = callee->args[i].value;
        given[values[i].id] = in[i];
    }
    sx_export_body s = {.e = e, .w = w, .graph = callee, .values = given, .handles = handles};
    SX_TRY(collect_args(&s, values, callee->n_args, 0, false, &f, &a));
    SX_TRY(add_call(e, w, name, function, &a, &first));
    for (int i = 0; i < callee->n_results; i++) {
        out[i] = sx_tf_output(first, i);
    }
    return SX_OK;
}
