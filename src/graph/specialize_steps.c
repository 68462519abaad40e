/* From a trace to steps: which rows are live, when each runs, and the rows of one time and kind as
 * a step. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/builder.h"
#include "graph/ops/attrs.h"
#include "graph/specialize_trace.h"
#include "graph/text.h"

enum {
    LATE = INT32_MAX,
    LARGE_CONSTANT = 1 << 20, /* bytes */
};

/* ---- What is live, and when it runs ---- */

static bool has_effect(const sx_trace_row *r)
{
    return (r->node->op->flags & SX_OP_EFFECT) != 0 || r->control;
}

static void mark_val(sx_specializer *s, int v)
{
    if (s->vals[v].row != SX_NO_ROW && s->vals[v].known == NULL) {
        s->rows[s->vals[v].row].live = true;
    }
}

/* Marks what results and effects need. Before times are known, all attribute operands count as
 * read; afterwards (`timed`), only those that remain operands. */
static void mark_live(sx_specializer *s, const int *results, int n, bool timed)
{
    for (int k = 0; k < s->n_rows; k++) {
        s->rows[k].live = false;
    }
    for (int i = 0; i < n; i++) {
        mark_val(s, results[i]);
    }
    for (int k = s->n_rows - 1; k >= 0; k--) {
        sx_trace_row *r = &s->rows[k];
        r->live = r->live || has_effect(r);
        for (int i = 0; i < r->n_in + r->n_operands && r->live; i++) {
            if (i < r->n_in || !timed || r->on_host || r->time == LATE) {
                mark_val(s, r->in[i]);
            }
        }
    }
}

/* A variable's rows so far. */
typedef struct order {
    const char *variable;
    int last; /* the latest time of a read or an assignment */
    int assigned;
} order;

static order *order_of(order *orders, int *n, const char *variable)
{
    for (int i = 0; i < *n; i++) {
        if (strcmp(orders[i].variable, variable) == 0) {
            return &orders[i];
        }
    }
    orders[*n] = (order){.variable = variable};
    return &orders[(*n)++];
}

/* Whether what the node reads, but for handles of variables, and what it gives are such types. */
static bool types_are(const sx_specializer *s, const sx_trace_row *r, bool (*are)(const sx_type *))
{
    for (int i = 0; i < r->n_in; i++) {
        const sx_trace_val *v = &s->vals[r->in[i]];
        if (!are(&v->type) && v->variable == NULL) {
            return false;
        }
    }
    for (int i = 0; i < r->n_out; i++) {
        if (!are(&s->vals[r->first + i].type)) {
            return false;
        }
    }
    return true;
}

static bool may_run_on_device(const sx_specializer *s, const sx_trace_row *r)
{
    return r->resolved && !r->on_host && types_are(s, r, sx_is_device_type);
}

/* Of a node that the host runs: whether it only computes, and its types are static. */
static bool is_static_on_host(const sx_specializer *s, const sx_trace_row *r)
{
    return r->resolved && r->on_host && !r->control &&
           (r->node->op->flags & (SX_OP_EFFECT | SX_OP_BY_REPLICA)) == 0 &&
           types_are(s, r, sx_is_shape_known);
}

/* Whether a node, or one of its regions, has one of the flags; a function that is called there may.
 */
static bool acts(const sx_node *n, unsigned flags)
{
    bool any = (n->op->flags & flags) != 0 || n->op == &sx_op_call;
    for (int row = 0; row < n->op->n_attrs && !any; row++) {
        const sx_graph *body = n->op->attrs[row].kind == SX_ATTR_BODY ? sx_node_body(n, row) : NULL;
        for (int k = 0; body != NULL && k < body->n_nodes && !any; k++) {
            any = acts(&body->nodes[k], flags);
        }
    }
    return any;
}

static sx_status set_times(sx_specializer *s)
{
    order *orders = sx_alloc((size_t)s->n_rows + 1, sizeof(*orders));
    int n_orders = 0, asserted = 0, controlled = 0, acted = 0; /* the latest so far */
    if (orders == NULL) {
        return sx_specialize_no_memory();
    }
    /* Where tables are written, reads of them keep their order, too. */
    const unsigned writes = SX_OP_STATE | SX_OP_EFFECT;
    unsigned in_order = SX_OP_EFFECT;
    for (int k = 0; k < s->n_rows; k++) {
        const sx_trace_row *r = &s->rows[k];
        in_order |= r->live && (r->control || (r->node->op->flags & writes) == writes) ? writes : 0;
    }
    for (int k = 0; k < s->n_rows; k++) {
        sx_trace_row *r = &s->rows[k];
        if (!r->live) {
            continue;
        }
        const bool device = may_run_on_device(s, r);
        bool late = !device && !r->on_host;
        int time = r->on_host ? 0 : 1;
        for (int i = 0; i < r->n_in + r->n_operands; i++) {
            const sx_trace_val *v = &s->vals[r->in[i]];
            if (v->row == SX_NO_ROW || v->known != NULL ||
                (i >= r->n_in && r->resolved && device)) {
                continue;
            }
            const int t = s->rows[v->row].time;
            late = late || t == LATE;
            if (t == LATE) {
                continue;
            }
            /* after another kind: the next time; after its own kind: the same */
            time = SX_MAX(time, r->on_host ? t + (t & 1) : t + 1 - (t & 1));
        }
        order *o = r->variable != NULL ? order_of(orders, &n_orders, r->variable) : NULL;
        if (o != NULL) {
            const bool assigns = r->node->op == &sx_op_assign_variable;
            int after = SX_MAX(assigns ? o->last : o->assigned, assigns ? asserted : 0);
            after = SX_MAX(after, controlled); /* regions may assign any variable */
            late = late || after == LATE;
            time = late ? time : SX_MAX(time, after + 1 - (after & 1));
        }
        /* Regions may read and assign, too: they come after all previous rows of variables, and
         * before all later ones. */
        for (int i = 0; i < n_orders && r->control; i++) {
            late = late || orders[i].last == LATE;
            time = late ? time : SX_MAX(time, orders[i].last + (orders[i].last & 1));
        }
        const bool ordered = r->on_host && acts(r->node, in_order);
        if (ordered) {
            late = late || acted == LATE;
            time = SX_MAX(time, late ? 0 : acted);
        }
        r->time = late ? LATE : time;
        acted = ordered ? r->time : acted;
        if (o != NULL) {
            o->last = SX_MAX(o->last, r->time);
            o->assigned =
                r->node->op == &sx_op_assign_variable ? SX_MAX(o->assigned, r->time) : o->assigned;
        }
        if (r->node->op == &sx_op_assert || r->control) {
            asserted = SX_MAX(asserted, r->time);
            controlled = r->control ? SX_MAX(controlled, r->time) : controlled;
        }
    }
    sx_free(orders);
    return SX_OK;
}

/* ---- Emitting ---- */

static sx_status slot_of(sx_specializer *s, int v, int *out)
{
    sx_specialized *p = s->out;
    sx_trace_val *x = &s->vals[v];
    if (x->slot == 0) {
        /* there are at most as many slots as vals, so the array is allocated once */
        sx_step_slot *slot = &p->slots[p->n_slots];
        *slot = (sx_step_slot){.type = x->type, .constant = x->known};
        if (x->variable != NULL) {
            sx_tensor *handle = sx_arena_new(s->arena, sx_tensor);
            if (handle == NULL) {
                return sx_specialize_no_memory();
            }
            *handle = (sx_tensor){x->type, (void *)x->variable};
            slot->constant = handle;
        }
        x->slot = ++p->n_slots;
    }
    *out = x->slot - 1;
    return SX_OK;
}

/* The type as a late call's function declares it: c·N and symbols here are unknown there. */
static sx_type without_batch(sx_type t)
{
    for (int i = 0; i < t.rank; i++) {
        t.dims[i] = t.dims[i] < 0 ? SX_UNKNOWN_DIM : t.dims[i];
    }
    return t;
}

/* A graph under construction from rows: a device's, a region's, a late call's. */
typedef struct emitter {
    sx_specializer *s;
    sx_builder *b;
    sx_value *here; /* [n_vals] */
    int time;
    int *in, *out; /* vals */
    int n_in, n_out;
} emitter;

static sx_value build_row(const emitter *e, const sx_trace_row *r, const sx_node_spec *spec_)
{
    sx_node_spec spec = *spec_;
    spec.name = sx_map_has(&e->b->node_names, r->name) ? NULL : r->name;
    spec.device = r->node->device;
    spec.file = r->node->file;
    spec.line = r->node->line;
    return sx_build_node(e->b, &spec);
}

/* The val in the graph: computed there, a constant of it, or a new input. */
static sx_value value_of(emitter *e, int v)
{
    sx_specializer *s = e->s;
    const sx_trace_val *x = &s->vals[v];
    if (sx_value_is(e->here[v])) {
        return e->here[v];
    }
    if (x->variable != NULL) {
        e->here[v] = sx_build(e->b, &sx_op_variable_handle,
                              &(sx_variable_handle_attrs){.name = x->variable}, NULL, 0);
    } else if (x->known != NULL) {
        e->here[v] = sx_constant(e->b, *x->known);
    } else {
        char name[32];
        snprintf(name, sizeof(name), "v%d", v);
        e->here[v] = sx_input(e->b, name, e->time == LATE ? without_batch(x->type) : x->type);
        e->in[e->n_in++] = v;
    }
    return e->here[v];
}

static sx_status emit_row(emitter *e, const sx_trace_row *r)
{
    sx_specializer *s = e->s;
    const sx_node *n = r->node;
    const bool late = e->time == LATE;
    if (!late && r->variable != NULL) {
        const sx_variable_spec *v = sx_library_find_variable(s->out->library, r->variable);
        sx_value current = sx_variable(e->b, v);
        s->out->reads = true;
        if (n->op == &sx_op_assign_variable) {
            current = value_of(e, r->in[1]);
            sx_assign(e->b, r->variable, current);
            s->out->writes = true;
        }
        e->here[r->first] = current;
        return SX_OK;
    }
    sx_value *inputs = sx_arena_array(s->arena, r->n_in + 1, sx_value);
    sx_attr_operand *operands = sx_arena_array(s->arena, r->n_operands + 1, sx_attr_operand);
    sx_type *types = sx_arena_array(s->arena, r->n_out + 1, sx_type);
    if (inputs == NULL || operands == NULL || types == NULL) {
        return sx_specialize_no_memory();
    }
    for (int i = 0; i < r->n_in; i++) {
        inputs[i] = value_of(e, r->in[i]);
    }
    for (int i = 0; i < r->n_operands && late; i++) {
        operands[i] = (sx_attr_operand){n->attr_operands[i].row, value_of(e, r->in[r->n_in + i])};
    }
    for (int i = 0; i < r->n_out; i++) {
        types[i] = without_batch(s->vals[r->first + i].type);
    }
    sx_value first = build_row(e, r,
                               &(sx_node_spec){.op = n->op,
                                               .attrs = late ? n->attrs : r->attrs,
                                               .inputs = inputs,
                                               .n_inputs = r->n_in,
                                               .attr_operands = operands,
                                               .n_attr_operands = late ? r->n_operands : 0,
                                               .types = late ? types : NULL,
                                               .n_types = r->n_out});
    for (int i = 0; i < r->n_out; i++) {
        e->here[r->first + i] = sx_output_of(first, i);
    }
    return SX_OK;
}

static sx_status emitter_begin(sx_specializer *s, int time, emitter *e)
{
    *e = (emitter){.s = s,
                   .time = time,
                   .here = sx_alloc((size_t)s->n_vals + 1, sizeof(sx_value)),
                   .in = sx_alloc((size_t)s->n_vals + 1, sizeof(int)),
                   .out = sx_alloc((size_t)s->n_vals + 1, sizeof(int))};
    SX_TRY(time == LATE ? sx_builder_create_function(&e->b) : sx_builder_create(&e->b));
    sx_builder_arena(e->b)->budget = s->limits.memory;
    return e->here == NULL || e->in == NULL || e->out == NULL ? sx_specialize_no_memory() : SX_OK;
}

static void emitter_end(emitter *e)
{
    sx_builder_destroy(e->b);
    sx_free(e->here);
    sx_free(e->in);
    sx_free(e->out);
}

static sx_status keep_graph(sx_specializer *s, sx_graph *g)
{
    sx_specialized *p = s->out;
    sx_graph **grown = sx_realloc(p->graphs, (size_t)p->n_graphs + 1, sizeof(*grown));
    if (grown == NULL) {
        sx_graph_destroy(g);
        return sx_specialize_no_memory();
    }
    p->graphs = grown;
    p->graphs[p->n_graphs++] = g;
    return SX_OK;
}

static sx_status add_step(sx_specializer *s, const sx_step *step, const int *in, const int *out)
{
    sx_specialized *p = s->out;
    int *slots = sx_arena_array(s->arena, step->n_in + step->n_out + 1, int);
    if (slots == NULL) {
        return sx_specialize_no_memory();
    }
    for (int i = 0; i < step->n_in; i++) {
        SX_TRY(slot_of(s, in[i], &slots[i]));
    }
    for (int i = 0; i < step->n_out; i++) {
        SX_TRY(slot_of(s, out[i], &slots[step->n_in + i]));
    }
    p->steps[p->n_steps] = *step;
    p->steps[p->n_steps].in = slots;
    p->steps[p->n_steps].out = slots + step->n_in;
    p->n_steps++;
    return SX_OK;
}

/* Marks the vals of this time that the results or rows of other times read. */
static void mark_read(const sx_specializer *s, int time, const int *results, int n_results,
                      bool *read)
{
    for (int i = 0; i < n_results; i++) {
        read[results[i]] = true;
    }
    for (int k = 0; k < s->n_rows; k++) {
        const sx_trace_row *r = &s->rows[k];
        for (int i = 0; r->live && r->time != time && i < r->n_in + r->n_operands; i++) {
            read[r->in[i]] = true;
        }
    }
}

/* Large constants of the library are kept once: the graph refers to the library's. */
static void share_constants(const emitter *e, sx_graph *g)
{
    const sx_specializer *s = e->s;
    for (int i = 0; i < s->n_vals; i++) {
        const sx_trace_val *x = &s->vals[i];
        const int64_t bytes = x->lent && sx_value_is(e->here[i]) ? sx_type_bytes(&x->type) : 0;
        const sx_node *n = bytes >= LARGE_CONSTANT ? sx_graph_maker(g, e->here[i]) : NULL;
        if (n != NULL && n->op == &sx_op_constant) {
            sx_constant_attrs *attrs = (sx_constant_attrs *)(uintptr_t)n->attrs;
            sx_arena_discard(&g->arena, attrs->value.data, (size_t)bytes);
            attrs->value.data = x->known->data;
        }
    }
}

/* All rows of an odd time, or of LATE, as one graph and step. */
static sx_status emit_graph(sx_specializer *s, int time, const int *results, int n_results)
{
    emitter e;
    sx_graph *g = NULL;
    bool *read = sx_alloc((size_t)s->n_vals + 1, sizeof(bool));
    sx_status status = emitter_begin(s, time, &e);
    status = status == SX_OK && read == NULL ? sx_specialize_no_memory() : status;
    if (status == SX_OK) {
        mark_read(s, time, results, n_results, read);
    }
    for (int k = 0; k < s->n_rows && status == SX_OK; k++) {
        const sx_trace_row *r = &s->rows[k];
        if (!r->live || r->time != time) {
            continue;
        }
        status = sx_name_node(r->node, emit_row(&e, r));
        for (int i = 0; i < r->n_out && status == SX_OK; i++) {
            if (read[r->first + i] && s->vals[r->first + i].known == NULL) {
                char name[32];
                snprintf(name, sizeof(name), "v%d", r->first + i);
                sx_output(e.b, name, e.here[r->first + i]);
                e.out[e.n_out++] = r->first + i;
            }
        }
    }
    if (status == SX_OK) {
        status = sx_builder_finish(e.b, &g);
    }
    if (status == SX_OK) {
        sx_step step = {.kind = time == LATE ? SX_STEP_LATE : SX_STEP_DEVICE,
                        .n_in = e.n_in,
                        .n_out = e.n_out,
                        .graph = g};
        share_constants(&e, g);
        status = keep_graph(s, g);
        status = status != SX_OK ? status : sx_graph_digest(g, time == LATE, &step.digests[0]);
        status = status != SX_OK ? status : add_step(s, &step, e.in, e.out);
    }
    emitter_end(&e);
    sx_free(read);
    return status;
}

static sx_status emit_host(sx_specializer *s, const sx_trace_row *r)
{
    sx_node *n = sx_arena_memdup(s->arena, r->node, sizeof(*n));
    int out[SX_MAX_OUTPUTS];
    sx_step step = {.kind = SX_STEP_HOST, .n_in = r->n_in + r->n_operands, .n_out = r->n_out};
    if (n == NULL) {
        return sx_specialize_no_memory();
    }
    n->name = r->name;
    n->attrs = r->control ? r->node->attrs : r->attrs;
    step.node = n;
    for (int i = 0; i < r->n_out; i++) {
        out[i] = r->first + i;
    }
    if (r->control) {
        const bool is_map = n->op == &sx_op_map;
        step.kind = is_map ? SX_STEP_MAP : n->op == &sx_op_if ? SX_STEP_IF : SX_STEP_WHILE;
        for (int i = 0; i < (is_map ? 1 : 2); i++) {
            SX_TRY(sx_graph_digest(sx_node_body(n, i), true, &step.digests[i]));
        }
    }
    return add_step(s, &step, r->in, out);
}

sx_status sx_emit_steps(sx_specializer *s, const int *results, int n_results)
{
    mark_live(s, results, n_results, false);
    SX_TRY(set_times(s));
    mark_live(s, results, n_results, true);
    int last = 0, n_host = 0;
    bool late = false;
    for (int k = 0; k < s->n_rows; k++) {
        const sx_trace_row *r = &s->rows[k];
        late = late || (r->live && r->time == LATE);
        last = r->live && r->time != LATE ? SX_MAX(last, r->time) : last;
        n_host += r->live && r->on_host;
    }
    s->out->slots = sx_arena_array(s->arena, s->n_vals + 1, sx_step_slot);
    s->out->steps = sx_arena_array(s->arena, n_host + last + 2, sx_step);
    if (s->out->slots == NULL || s->out->steps == NULL) {
        return sx_specialize_no_memory();
    }
    int slot;
    for (int i = 0; i < s->binding.n_args; i++) { /* the first vals: slots 0 .. n_args-1 */
        SX_TRY(slot_of(s, i, &slot));
    }
    for (int time = 0; time <= last; time++) {
        bool device = false;
        for (int k = 0; k < s->n_rows; k++) {
            const sx_trace_row *r = &s->rows[k];
            if (r->live && r->time == time && r->on_host) {
                SX_TRY(sx_name_node(r->node, emit_host(s, r)));
            }
            device = device || (r->live && r->time == time && !r->on_host);
        }
        if (device) {
            SX_TRY(emit_graph(s, time, results, n_results));
        }
    }
    if (late) {
        SX_TRY(emit_graph(s, LATE, results, n_results));
    }
    int *slots = sx_arena_array(s->arena, n_results + 1, int);
    if (slots == NULL) {
        return sx_specialize_no_memory();
    }
    for (int i = 0; i < n_results; i++) {
        SX_TRY(slot_of(s, results[i], &slots[i]));
    }
    s->out->results = slots;
    s->out->n_results = n_results;
    return SX_OK;
}

sx_status sx_emit_region(sx_specializer *s, const int *args, int n_args, const int *results,
                         int n_results, bool host, sx_graph **out)
{
    bool fits = true;
    *out = NULL;
    mark_live(s, results, n_results, true);
    for (int k = 0; k < s->n_rows && fits; k++) {
        const sx_trace_row *r = &s->rows[k];
        fits = !r->live || (r->variable == NULL &&
                            (may_run_on_device(s, r) || (host && is_static_on_host(s, r))));
        s->refused = fits ? NULL : r->node;
    }
    for (int i = 0; i < n_results && fits; i++) {
        const sx_type *type = &s->vals[results[i]].type;
        fits = sx_is_device_type(type) || (host && sx_is_shape_known(type));
    }
    if (!fits) {
        return SX_OK;
    }
    emitter e;
    sx_graph *made = NULL;
    sx_status status = emitter_begin(s, 1, &e);
    for (int i = 0; i < n_args && status == SX_OK; i++) {
        char name[32];
        snprintf(name, sizeof(name), "x%d", i);
        e.here[args[i]] = sx_input(e.b, name, s->vals[args[i]].type);
    }
    for (int k = 0; k < s->n_rows && status == SX_OK; k++) {
        if (s->rows[k].live) {
            status = sx_name_node(s->rows[k].node, emit_row(&e, &s->rows[k]));
        }
    }
    for (int i = 0; i < n_results && status == SX_OK; i++) {
        char name[32];
        snprintf(name, sizeof(name), "y%d", i);
        sx_output(e.b, name, value_of(&e, results[i]));
    }
    status = status != SX_OK ? status : sx_builder_finish(e.b, &made);
    if (status == SX_OK) {
        *out = sx_graph_copy(s->arena, made);
        status = *out == NULL ? sx_specialize_no_memory() : SX_OK;
    }
    sx_graph_destroy(made);
    emitter_end(&e);
    return status;
}
