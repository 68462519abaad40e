/* See specialize.h and specialize_trace.h: the walk over a function. */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/attr_rows.h"
#include "graph/batch_fit.h"
#include "graph/builder.h"
#include "graph/host.h"
#include "graph/node_label.h"
#include "graph/ops/attrs.h"
#include "graph/specialize_trace.h"

enum {
    MAX_NODES = 1 << 18,
    MAX_CALLS = 64,
};

sx_status sx_specialize_no_memory(void)
{
    return sx_no_memory("specializing a function");
}

/* ---- Types ---- */

bool sx_is_device_type(const sx_type *t)
{
    return sx_dtype_bytes(t->dtype) > 0 && sx_is_shape_known(t);
}

sx_status sx_contradicts(const char *what, int i, const sx_type *got, const sx_type *declared)
{
    char a[SX_TYPE_TEXT], b[SX_TYPE_TEXT];
    return sx_error(SX_INVALID_ARGUMENT, "%s %d is %s, but is declared as %s", what, i,
                    sx_type_format(got, a, sizeof(a)), sx_type_format(declared, b, sizeof(b)));
}

/* ---- Vals and rows ---- */

static sx_status grow(sx_specializer *s, void **array, int *capacity, int count, size_t elem_bytes)
{
    if (count < *capacity) {
        return SX_OK;
    }
    return sx_budget_grow(s->limits.memory, array, capacity, SX_MAX(64, 2 * *capacity), elem_bytes)
               ? SX_OK
               : sx_specialize_no_memory();
}

void sx_free_trace(sx_specializer *s)
{
    sx_budget_release(s->limits.memory, (size_t)s->val_capacity * sizeof(*s->vals) +
                                            (size_t)s->row_capacity * sizeof(*s->rows));
    sx_free(s->vals);
    sx_free(s->rows);
}

sx_status sx_new_val(sx_specializer *s, const sx_trace_val *v, int *out)
{
    SX_TRY(grow(s, (void **)&s->vals, &s->val_capacity, s->n_vals, sizeof(*s->vals)));
    *out = s->n_vals;
    s->vals[s->n_vals++] = *v;
    return SX_OK;
}

sx_status sx_known_val(sx_specializer *s, sx_type type, const void *data, int *out)
{
    sx_tensor *t = sx_arena_new(s->arena, sx_tensor);
    if (t == NULL) {
        return sx_specialize_no_memory();
    }
    *t = (sx_tensor){type, (void *)data};
    return sx_new_val(s, &(sx_trace_val){.type = type, .known = t, .row = SX_NO_ROW, .output = -1},
                      out);
}

static sx_status add_row(sx_specializer *s, const sx_trace_row *r, const sx_type *types, int n_out,
                         int *out_vals)
{
    SX_TRY(grow(s, (void **)&s->rows, &s->row_capacity, s->n_rows, sizeof(*s->rows)));
    const int at = s->n_rows;
    s->rows[at] = *r;
    s->rows[at].n_out = n_out;
    s->rows[at].first = s->n_vals;
    s->n_rows++;
    for (int i = 0; i < n_out; i++) {
        SX_TRY(
            sx_new_val(s, &(sx_trace_val){.type = types[i], .row = at, .output = i}, &out_vals[i]));
    }
    return SX_OK;
}

/* ---- Walking ---- */

sx_status sx_name_node(const sx_node *n, sx_status status)
{
    if (status == SX_OK) {
        return SX_OK;
    }
    char text[SX_NODE_LABEL];
    const char *slash = strrchr(n->file, '/'), *name = sx_node_label(n->name, text);
    return n->file[0] == '\0'
               ? sx_status_annotate(status, __FILE__, __LINE__, "%s \"%s\"", n->op->name, name)
               : sx_status_annotate(status, __FILE__, __LINE__, "%s:%d: %s \"%s\"",
                                    slash != NULL ? slash + 1 : n->file, n->line, n->op->name,
                                    name);
}

sx_status sx_check_depth(const sx_specializer *s)
{
    const int64_t most = s->limits.calls > 0 ? s->limits.calls : MAX_CALLS;
    return s->depth < most
               ? SX_OK
               : sx_error(SX_RESOURCE_EXHAUSTED,
                          "calls nest deeper than %lld, the limit; a function may call itself "
                          "without end",
                          (long long)most);
}

sx_status sx_inline_body(sx_specializer *s, const sx_graph *body, const int *args, int n_args,
                         const char *prefix, int *results)
{
    SX_TRY(sx_check_depth(s));
    for (int i = 0; i < n_args; i++) {
        const sx_type *declared = sx_graph_type(body, body->args[i].value);
        if (!sx_type_may_be(&s->vals[args[i]].type, declared)) {
            return sx_contradicts("argument", i, &s->vals[args[i]].type, declared);
        }
    }
    s->depth++;
    sx_status status = sx_walk_graph(s, body, args, prefix, results);
    s->depth--;
    return status;
}

/* Infers types; if that fails for the batch, looks for a size that fits, to find out whether the
 * node is invalid or only needs to know the batch. */
static sx_status infer(const sx_specializer *s, const sx_op_def *op, const void *attrs,
                       const int *in, int n_in, sx_type out[SX_MAX_OUTPUTS], int *out_n,
                       bool *out_waits)
{
    sx_type *types = sx_alloc((size_t)n_in + 1, sizeof(*types));
    if (types == NULL) {
        return sx_specialize_no_memory();
    }
    for (int i = 0; i < n_in; i++) {
        types[i] = s->vals[in[i]].type;
    }
    sx_status status = sx_infer_types(op, attrs, types, n_in, out, out_n);
    *out_waits = status != SX_OK && sx_batch_that_fits(op, attrs, types, n_in) > 0;
    if (*out_waits) {
        sx_status_free(status);
        status = SX_OK;
    }
    sx_free(types);
    return status;
}

/* read_variable, assign_variable */
static sx_status walk_variable(sx_specializer *s, const sx_node *n, const int *in, const char *name,
                               int *out_vals)
{
    const char *variable = s->vals[in[0]].variable;
    const sx_variable_spec *v =
        variable != NULL ? sx_library_find_variable(s->out->library, variable) : NULL;
    if (v == NULL) {
        return variable == NULL
                   ? sx_error(SX_INVALID_ARGUMENT,
                              "its handle is chosen at run time; only a handle that is known "
                              "beforehand can be used")
                   : sx_error(SX_NOT_FOUND, "the library has no variable \"%.100s\"", variable);
    }
    const bool assigns = n->op == &sx_op_assign_variable;
    const sx_type *got = assigns ? &s->vals[in[1]].type : &v->type;
    if (!sx_type_may_be(got, &v->type)) {
        char a[SX_TYPE_TEXT], b[SX_TYPE_TEXT];
        return sx_error(SX_INVALID_ARGUMENT, "variable \"%.100s\" is %s, but the value is %s",
                        variable, sx_type_format(&v->type, a, sizeof(a)),
                        sx_type_format(got, b, sizeof(b)));
    }
    if (s->reads != NULL && !assigns) { /* in a gradient, an argument */
        sx_trace_read **at = s->reads;
        while (*at != NULL && strcmp((*at)->variable, variable) != 0) {
            at = &(*at)->next;
        }
        if (*at == NULL) {
            *at = sx_arena_new(s->arena, sx_trace_read);
            if (*at == NULL) {
                return sx_specialize_no_memory();
            }
            **at = (sx_trace_read){.node = n, .variable = variable};
            SX_TRY(sx_new_val(s, &(sx_trace_val){.type = v->type, .row = SX_NO_ROW, .output = -1},
                              &(*at)->val));
        }
        out_vals[0] = (*at)->val;
        return SX_OK;
    }
    int *kept = sx_arena_memdup(s->arena, in, (size_t)n->n_inputs * sizeof(*in));
    if (kept == NULL) {
        return sx_specialize_no_memory();
    }
    return add_row(s,
                   &(sx_trace_row){.node = n,
                                   .attrs = n->attrs,
                                   .in = kept,
                                   .n_in = n->n_inputs,
                                   .name = name,
                                   .variable = variable,
                                   .resolved = sx_is_device_type(got) && !sx_type_has_batch(got)},
                   assigns && sx_is_shape_known(got) ? got : &v->type, 1, out_vals);
}

sx_status sx_read_variable(sx_specializer *s, const sx_trace_read *read, const char *name,
                           int *out_val)
{
    int handle = 0;
    SX_TRY(sx_new_val(s,
                      &(sx_trace_val){.type = sx_scalar_type(SX_RESOURCE),
                                      .variable = read->variable,
                                      .row = SX_NO_ROW,
                                      .output = -1},
                      &handle));
    return walk_variable(s, read->node, &handle, name, out_val);
}

static sx_status walk_plain(sx_specializer *s, const sx_graph *g, const sx_node *n, const int *in,
                            const char *name, int *out_vals);

/* Of a node whose region of gradients has no static form: that is an error only where a gradient is
 * asked for. */
static sx_status refuse_gradient(sx_specializer *s, const sx_graph *g, const sx_node *n,
                                 const int *in, const char *name, int *out_vals)
{
    const sx_refuse_gradient_attrs attrs = {
        .results = n->n_outputs,
        .why = sx_arena_printf(s->arena,
                               "the gradient of %s \"%s\" has sizes that depend on data, assigns a "
                               "variable or needs the host; apply sx_stop_gradient() to its result "
                               "to train without it",
                               n->op->name, name)};
    sx_node other = *n;
    other.op = &sx_op_refuse_gradient;
    other.attrs = sx_arena_memdup(s->arena, &attrs, sizeof(attrs));
    sx_node *kept = sx_arena_memdup(s->arena, &other, sizeof(other));
    return attrs.why == NULL || other.attrs == NULL || kept == NULL
               ? sx_specialize_no_memory()
               : walk_plain(s, g, kept, in, name, out_vals);
}

/* Any other node: `in` are its inputs' vals, then its attribute operands'. */
static sx_status walk_plain(sx_specializer *s, const sx_graph *g, const sx_node *n, const int *in,
                            const char *name, int *out_vals)
{
    const sx_op_def *op = n->op;
    const bool regions = sx_op_has_regions(op);
    void *attrs = sx_arena_memdup(s->arena, n->attrs, op->attrs_bytes);
    int *kept =
        sx_arena_memdup(s->arena, in, (size_t)(n->n_inputs + n->n_attr_operands) * sizeof(*in));
    sx_type *in_types = sx_arena_array(s->arena, n->n_inputs + 1, sx_type);
    sx_type types[SX_MAX_OUTPUTS];
    bool resolved = true, shapes = true, all_known = true, waits = false, is_static = true;
    sx_status unfit = SX_OK; /* why the regions' node has no static form */
    if (attrs == NULL || kept == NULL || in_types == NULL) {
        return sx_specialize_no_memory();
    }
    if (s->binding.knows_batch) {
        sx_attrs_put_batch(op, attrs, s->binding.batch);
    }
    for (int i = 0; i < n->n_inputs; i++) {
        in_types[i] = s->vals[in[i]].type;
        shapes = shapes && sx_is_shape_known(&in_types[i]);
        all_known = all_known && s->vals[in[i]].known != NULL;
        if (in_types[i].dtype == SX_RESOURCE && !regions) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "input %d is a variable's handle, which %s cannot use", i, op->name);
        }
    }
    for (int i = 0; i < n->n_attr_operands; i++) {
        const sx_trace_val *v = &s->vals[in[n->n_inputs + i]];
        bool done = false;
        /* one may depend on those before it: slice's size on its begin */
        if (resolved && (v->known != NULL || v->counts != NULL)) {
            SX_TRY(sx_attr_from_operand(
                op, n->attr_operands[i].row, attrs, in_types, n->n_inputs,
                &(sx_known_operand){.value = v->known, .counts = v->counts, .type = &v->type},
                &done));
        }
        resolved = resolved && done;
    }
    for (int i = 0; i < n->n_outputs; i++) {
        types[i] = *sx_graph_type(g, sx_node_output(n, i));
    }
    /* A loop whose state changes its shape has no static form, nor has a region that is wrong for
     * these shapes: it runs on the host, and a region that never runs is no error. */
    if (regions) {
        unfit = sx_make_regions_static(s, n, attrs, in, &is_static);
        if (unfit != SX_OK && sx_status_code(unfit) != SX_INVALID_ARGUMENT) {
            return unfit;
        }
        is_static = is_static && unfit == SX_OK;
    }
    if ((op->flags & SX_OP_FOR_GRADIENT) != 0 && resolved && shapes && !is_static &&
        unfit == SX_OK) {
        return refuse_gradient(s, g, n, in, name, out_vals);
    }
    if (resolved && shapes && is_static) {
        sx_type inferred[SX_MAX_OUTPUTS];
        int count = 0;
        sx_status status = infer(s, op, attrs, in, n->n_inputs, inferred, &count, &waits);
        if (status != SX_OK && regions && sx_status_code(status) != SX_RESOURCE_EXHAUSTED) {
            unfit = status;
            is_static = false;
        } else if (status != SX_OK) {
            return status;
        }
        if (is_static && !waits && count != n->n_outputs) {
            return sx_error(SX_INVALID_ARGUMENT, "%d outputs are declared, expected %d",
                            n->n_outputs, count);
        }
        for (int i = 0; i < n->n_outputs && is_static && !waits; i++) {
            if (!sx_type_may_be(&inferred[i], &types[i])) {
                return sx_contradicts("output", i, &inferred[i], &types[i]);
            }
            /* what data decide may be known from elsewhere: a gradient's shape is its value's */
            const bool declared = op->host_types != NULL && sx_is_shape_known(&types[i]);
            types[i] = declared ? types[i] : inferred[i];
        }
    }
    /* A map whose shapes are not known yet waits for them: a device may be able to run it then. */
    const bool later = op == &sx_op_map && !(resolved && shapes);
    const bool control = regions && !is_static && !later;
    bool strings = false; /* no device has them */
    for (int i = 0; i < n->n_inputs; i++) {
        strings = strings || in_types[i].dtype == SX_STRING;
    }
    for (int i = 0; i < n->n_outputs; i++) {
        strings = strings || types[i].dtype == SX_STRING;
    }
    if (unfit != SX_OK && (op == &sx_op_map || (op->flags & SX_OP_FOR_GRADIENT) != 0)) {
        return unfit;
    }
    sx_status_free(unfit);
    /* What has an effect, or reads what another may change, runs each time; an assert that holds
     * has none. */
    const bool effect = (op->flags & (SX_OP_EFFECT | SX_OP_STATE)) != 0 &&
                        !(op == &sx_op_assert && all_known && resolved &&
                          *(const uint8_t *)s->vals[in[0]].known->data != 0);
    if (all_known && resolved && !regions && op->host != NULL && !effect) {
        bool folded = false;
        SX_TRY(sx_fold_node(s, op, attrs, in, n->n_inputs, types, n->n_outputs, out_vals, &folded));
        if (folded) {
            return SX_OK;
        }
    }
    if (shapes && !waits) {
        bool folded = false;
        SX_TRY(sx_fold_comparison(s, op, in, &types[0], &out_vals[0], &folded));
        if (folded) {
            return SX_OK;
        }
    }
    SX_TRY(add_row(s,
                   &(sx_trace_row){.node = n,
                                   .attrs = attrs,
                                   .in = kept,
                                   .n_in = n->n_inputs,
                                   .n_operands = n->n_attr_operands,
                                   .name = name,
                                   .resolved = resolved && shapes && !waits,
                                   .on_host = (op->flags & SX_OP_HOST) != 0 || control ||
                                              (strings && resolved && shapes && !waits),
                                   .control = control},
                   types, n->n_outputs, out_vals));
    if (n->n_outputs == 1 && resolved && shapes && !waits && !regions) {
        SX_TRY(sx_follow_counts(s, op, attrs, in, n->n_inputs, &types[0],
                                &s->vals[out_vals[0]].counts));
    }
    return SX_OK;
}

/* A node whose inputs' shapes are not known: part of the late call. */
static sx_status walk_late(sx_specializer *s, const sx_graph *g, const sx_node *n, const int *in,
                           const char *name, int *out_vals)
{
    sx_type types[SX_MAX_OUTPUTS];
    int *kept = sx_arena_memdup(s->arena, in, (size_t)n->n_inputs * sizeof(*in));
    if (kept == NULL) {
        return sx_specialize_no_memory();
    }
    for (int i = 0; i < n->n_outputs; i++) {
        types[i] = *sx_graph_type(g, sx_node_output(n, i));
    }
    return add_row(s,
                   &(sx_trace_row){
                       .node = n, .attrs = n->attrs, .in = kept, .n_in = n->n_inputs, .name = name},
                   types, n->n_outputs, out_vals);
}

/* Of a node of SX_OP_FOR_GRADIENT: its outputs are its first operands. */
static sx_status check_first(const sx_specializer *s, const sx_graph *g, const sx_node *n,
                             const int *in)
{
    if (n->n_outputs > n->n_inputs) {
        return sx_error(SX_INVALID_ARGUMENT, "%d outputs are declared for %d operands",
                        n->n_outputs, n->n_inputs);
    }
    for (int i = 0; i < n->n_outputs; i++) {
        const sx_type *got = &s->vals[in[i]].type,
                      *declared = sx_graph_type(g, sx_node_output(n, i));
        if (!sx_type_may_be(got, declared)) {
            return sx_contradicts("output", i, got, declared);
        }
    }
    return SX_OK;
}

static sx_status walk_node(sx_specializer *s, const sx_graph *g, const sx_node *n, const int *in,
                           const char *name, int *out_vals)
{
    SX_TRY(sx_check_regions(n));
    if (n->op == &sx_op_constant) {
        const sx_constant_attrs *a = n->attrs;
        SX_TRY(sx_known_val(s, a->value.type, a->value.data, &out_vals[0]));
        s->vals[out_vals[0]].lent = s->of_library;
        return SX_OK;
    }
    if (n->op == &sx_op_variable_handle) {
        const sx_variable_handle_attrs *a = n->attrs;
        return sx_new_val(s,
                          &(sx_trace_val){.type = sx_scalar_type(SX_RESOURCE),
                                          .variable = a->name != NULL ? a->name : "",
                                          .row = SX_NO_ROW,
                                          .output = -1},
                          &out_vals[0]);
    }
    if (n->op == &sx_op_call) {
        const sx_call_attrs *a = n->attrs;
        const char *called = a->function != NULL ? a->function : "";
        const sx_function *f = sx_library_find(s->out->library, called);
        if (f == NULL) {
            return sx_error(SX_NOT_FOUND, "the library has no function \"%.100s\"", called);
        }
        if (a->gradient == 0 &&
            (f->body->n_args != n->n_inputs || f->body->n_results != n->n_outputs)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "function \"%.100s\" has %d inputs and %d outputs, but the call has "
                            "%d and %d",
                            called, f->body->n_args, f->body->n_results, n->n_inputs, n->n_outputs);
        }
        if (a->gradient == 0) {
            return sx_inline_body(s, f->body, in, n->n_inputs, name, out_vals);
        }
        bool waits = false;
        for (int i = 0; i < n->n_inputs; i++) {
            waits = waits || !sx_is_shape_known(&s->vals[in[i]].type);
        }
        if (!waits) {
            SX_TRY(sx_walk_gradient(s, n, f, in, name, out_vals, &waits));
        }
        return waits ? walk_late(s, g, n, in, name, out_vals) : SX_OK;
    }
    if (n->op == &sx_op_pull_back) {
        bool waits = false;
        bool *shaping = sx_arena_array(s->arena, n->n_inputs + 1, bool);
        const sx_graph *body = ((const sx_pull_back_attrs *)n->attrs)->body;
        if (shaping == NULL || body->n_args > n->n_inputs) {
            return shaping == NULL ? sx_specialize_no_memory()
                                   : sx_error(SX_INVALID_ARGUMENT,
                                              "its region takes %d values, but it has %d operands",
                                              body->n_args, n->n_inputs);
        }
        SX_TRY(sx_shaping_args(s->out->library, body, shaping));
        for (int i = 0; i < n->n_inputs; i++) {
            /* a number that is computed here, and decides a shape there */
            const sx_trace_val *v = &s->vals[in[i]];
            waits = waits || !sx_is_shape_known(&v->type) ||
                    (shaping[i] && v->known == NULL && v->counts == NULL && v->row != SX_NO_ROW);
        }
        if (!waits) {
            SX_TRY(sx_walk_pull_back(s, n, in, name, out_vals, &waits));
        }
        return waits ? walk_late(s, g, n, in, name, out_vals) : SX_OK;
    }
    if ((n->op->flags & SX_OP_FOR_GRADIENT) != 0) {
        SX_TRY(check_first(s, g, n, in));
        if (!s->pure && !s->binding.differentiated) {
            memcpy(out_vals, in, (size_t)n->n_outputs * sizeof(*in));
            return SX_OK;
        }
    }
    if (s->pure && (n->op == &sx_op_assert || n->op == &sx_op_print)) {
        out_vals[0] = in[0];
        return SX_OK;
    }
    if (n->op == &sx_op_if && s->vals[in[0]].known != NULL &&
        s->vals[in[0]].type.dtype == SX_BOOL && sx_type_elems(&s->vals[in[0]].type) == 1) {
        const sx_if_attrs *a = n->attrs;
        const sx_graph *taken =
            *(const uint8_t *)s->vals[in[0]].known->data != 0 ? a->then_body : a->else_body;
        return sx_inline_body(s, taken, in + 1, n->n_inputs - 1, name, out_vals);
    }
    if (n->op == &sx_op_read_variable || n->op == &sx_op_assign_variable) {
        return walk_variable(s, n, in, name, out_vals);
    }
    if (n->op == &sx_op_identity && n->n_inputs == 1) {
        out_vals[0] = in[0]; /* including handles */
        return SX_OK;
    }
    return walk_plain(s, g, n, in, name, out_vals);
}

/* Nodes of a trial that nothing reads are left out. */
static bool is_needed(const sx_node *n, const bool *reads)
{
    bool needed = !n->trial;
    for (int i = 0; i < n->n_outputs && !needed; i++) {
        needed = reads[sx_node_output(n, i).id];
    }
    return needed;
}

/* Marks in reads[g->n_values] what results and needed nodes read. */
static void find_read(const sx_graph *g, bool *reads)
{
    for (int i = 0; i < g->n_results; i++) {
        reads[g->results[i].value.id] = true;
    }
    for (int k = g->n_nodes; k-- > 0;) {
        const sx_node *n = &g->nodes[k];
        const bool needed = is_needed(n, reads);
        for (int i = 0; i < n->n_inputs && needed; i++) {
            reads[n->inputs[i].id] = true;
        }
        for (int i = 0; i < n->n_attr_operands && needed; i++) {
            reads[n->attr_operands[i].value.id] = true;
        }
    }
}

sx_status sx_walk_graph(sx_specializer *s, const sx_graph *g, const int *args, const char *prefix,
                        int *results)
{
    const int64_t most = s->limits.nodes > 0 ? s->limits.nodes : MAX_NODES;
    int *env = sx_alloc((size_t)g->n_values + SX_NODE_MAX_INPUTS + SX_MAX_RANK * 4, sizeof(*env));
    bool *reads = sx_alloc((size_t)g->n_values + 1, sizeof(*reads));
    sx_status status = env == NULL || reads == NULL ? sx_specialize_no_memory() : SX_OK;
    int *in = env != NULL ? env + g->n_values : NULL;
    if (status == SX_OK) {
        find_read(g, reads);
    }
    for (int i = 0; i < g->n_args && status == SX_OK; i++) {
        env[g->args[i].value.id] = args[i];
    }
    for (int k = 0; k < g->n_nodes && status == SX_OK; k++) {
        const sx_node *n = &g->nodes[k];
        int out_vals[SX_MAX_OUTPUTS];
        if (n->op == &sx_op_parameter || !is_needed(n, reads)) {
            continue;
        }
        if (++*s->nodes > most) {
            status = sx_error(SX_RESOURCE_EXHAUSTED, "more than %lld nodes after inlining",
                              (long long)most);
            break;
        }
        enum { NODES_BETWEEN_CHECKS = 64 };
        if (*s->nodes % NODES_BETWEEN_CHECKS == 0) {
            status = sx_cancel_check(s->limits.cancel);
            if (status != SX_OK) {
                break;
            }
        }
        for (int i = 0; i < n->n_inputs; i++) {
            in[i] = env[n->inputs[i].id];
        }
        for (int i = 0; i < n->n_attr_operands; i++) {
            in[n->n_inputs + i] = env[n->attr_operands[i].value.id];
        }
        const char *name =
            prefix[0] == '\0' ? n->name : sx_arena_printf(s->arena, "%s/%s", prefix, n->name);
        status = name == NULL ? sx_specialize_no_memory() : walk_node(s, g, n, in, name, out_vals);
        /* of a chain of calls without end, the first are named */
        enum { NAMED_CALLS = 4 };
        if (n->op != &sx_op_call || s->depth < NAMED_CALLS ||
            sx_status_code(status) != SX_RESOURCE_EXHAUSTED) {
            status = sx_name_node(n, status);
        }
        for (int i = 0; i < n->n_outputs && status == SX_OK; i++) {
            env[sx_node_output(n, i).id] = out_vals[i];
        }
    }
    for (int i = 0; i < g->n_results && status == SX_OK; i++) {
        results[i] = env[g->results[i].value.id];
    }
    sx_free(env);
    sx_free(reads);
    return status;
}

/* ---- The function ---- */

static sx_status bind_args(sx_specializer *s, const sx_graph *body, int *args)
{
    if (s->binding.n_args != body->n_args) {
        return sx_error(SX_INVALID_ARGUMENT, "got %d arguments, the function expects %d",
                        s->binding.n_args, body->n_args);
    }
    for (int i = 0; i < body->n_args; i++) {
        const sx_tensor *a = &s->binding.args[i];
        const sx_type *declared = sx_graph_type(body, body->args[i].value);
        sx_trace_val v = {.type = a->type, .row = SX_NO_ROW, .output = i};
        if (!sx_is_shape_known(&a->type) || !sx_type_may_be(&a->type, declared)) {
            return sx_status_annotate(sx_contradicts("argument", i, &a->type, declared), __FILE__,
                                      __LINE__, "\"%s\"", body->args[i].name);
        }
        if (a->type.dtype == SX_RESOURCE) {
            v.variable = a->data;
        } else if (a->data != NULL && a->type.dtype != SX_STRING) {
            sx_tensor *known = sx_arena_new(s->arena, sx_tensor);
            void *data =
                sx_arena_memdup(s->arena, a->data, (size_t)SX_MAX(sx_host_bytes(&a->type), 0));
            if (known == NULL || data == NULL) {
                return sx_specialize_no_memory();
            }
            *known = (sx_tensor){a->type, data};
            v.known = known;
        }
        if (v.variable != NULL) {
            v.variable = sx_arena_strdup(s->arena, v.variable);
        }
        SX_TRY(sx_new_val(s, &v, &args[i]));
    }
    return SX_OK;
}

sx_status sx_specialize(const sx_library *library, const sx_graph *body, const sx_binding *binding,
                        const sx_specialize_limits *limits, sx_specialized **out)
{
    sx_specialized *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return sx_specialize_no_memory();
    }
    sx_arena_init(&p->arena, 0);
    p->arena.budget = limits != NULL ? limits->memory : NULL;
    p->library = library;
    struct sx_made_gradient *gradients = NULL;
    p->n_args = binding->n_args;
    sx_specializer s = {.out = p,
                        .arena = &p->arena,
                        .binding = *binding,
                        .limits = limits != NULL ? *limits : (sx_specialize_limits){0},
                        .nodes = &p->nodes,
                        .gradients = &gradients};
    int *args = sx_arena_array(&p->arena, body->n_args + 1, int);
    int *results = sx_arena_array(&p->arena, body->n_results + 1, int);
    for (int i = 0; i < library->n_functions && !s.of_library; i++) {
        s.of_library = library->functions[i].body == body;
    }
    sx_status status = args == NULL || results == NULL ? sx_specialize_no_memory() : SX_OK;
    if (status == SX_OK) {
        status = bind_args(&s, body, args);
    }
    if (status == SX_OK) {
        status = sx_walk_graph(&s, body, args, "", results);
    }
    if (status == SX_OK) {
        status = sx_emit_steps(&s, results, body->n_results);
    }
    status = sx_budget_explain(s.limits.memory, "specializing a function", status);
    sx_free_trace(&s);
    if (status != SX_OK) {
        sx_specialized_destroy(p);
        return status;
    }
    *out = p;
    return SX_OK;
}

void sx_specialized_destroy(sx_specialized *p)
{
    if (p == NULL) {
        return;
    }
    for (int i = 0; i < p->n_graphs; i++) {
        sx_graph_destroy(p->graphs[i]);
    }
    sx_free(p->graphs);
    sx_arena_deinit(&p->arena);
    sx_free(p);
}
