/* From a trace to steps: which rows are live, when each runs, and the rows of one time and kind as
 * a step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/builder.h"
#include "graph/ops/attrs.h"
#include "graph/specialize_trace.h"
#include "graph/text.h"

enum {
    LARGE_CONSTANT = 1 << 20, /* bytes */
    MAX_JOINS = 4,            /* rounds of looking for static rows that a late call may have */
};

/* A row's kind is its time modulo N_KINDS. */
enum { HOST, DEVICE, LATE, N_KINDS };

/* The first time of a kind that is not before `time`. */
static int from_time(int time, int kind)
{
    return time + (kind + N_KINDS - time % N_KINDS) % N_KINDS;
}

static bool is_late(const sx_trace_row *r)
{
    return r->time % N_KINDS == LATE;
}

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

void sx_mark_live(sx_specializer *s, const int *results, int n, bool timed)
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
            if (i < r->n_in || !timed || r->on_host || is_late(r)) {
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

bool sx_row_is_static(const sx_specializer *s, const sx_trace_row *r)
{
    return r->variable == NULL && (may_run_on_device(s, r) || is_static_on_host(s, r));
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

/* Whether the row may read and assign any variable: regions that the host runs, regions and
 * gradients in a late call. */
static bool is_opaque(const sx_trace_row *r, bool late)
{
    const sx_op_def *op = r->node->op;
    return r->control || (late && (op == &sx_op_call || sx_op_has_regions(op)));
}

/* Of operand i: the row that makes it; NULL: none, or the row runs without it. */
static sx_trace_row *read_row(const sx_specializer *s, const sx_trace_row *r, int i, bool late)
{
    const sx_trace_val *v = &s->vals[r->in[i]];
    return v->row == SX_NO_ROW || v->known != NULL ||
                   (i >= r->n_in && !late && may_run_on_device(s, r))
               ? NULL
               : &s->rows[v->row];
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
        const bool of_types = r->node->op->batch_rule == SX_RULE_TYPES;
        bool reads_late = false, reads_open = false; /* a late row's value; one of open shape */
        r->folds = of_types || r->n_in > 0;
        r->behind = false;
        for (int i = 0; i < r->n_in; i++) {
            const sx_trace_val *v = &s->vals[r->in[i]];
            const sx_trace_row *from = read_row(s, r, i, false);
            const bool is_of_late = from != NULL && is_late(from);
            r->folds = r->folds && (of_types || (from != NULL ? from->folds : v->known != NULL));
            r->behind = r->behind || is_of_late || (from != NULL && from->behind);
            reads_late = reads_late || is_of_late;
            reads_open = reads_open || (is_of_late && !sx_is_shape_known(&v->type));
        }
        /* A late call has what it knows once it has types, and the loops and branches that may be
         * static then. */
        const bool late = r->joins || (!r->on_host && !may_run_on_device(s, r)) ||
                          (r->folds && reads_late) || (r->control && reads_open);
        const int kind = late ? LATE : r->on_host ? HOST : DEVICE;
        int time = kind;
        for (int i = 0; i < r->n_in + r->n_operands; i++) {
            const sx_trace_row *from = read_row(s, r, i, late);
            time = SX_MAX(time, from == NULL ? 0 : from_time(from->time, kind));
        }
        order *o = r->variable != NULL ? order_of(orders, &n_orders, r->variable) : NULL;
        if (o != NULL) {
            const bool assigns = r->node->op == &sx_op_assign_variable;
            int after = SX_MAX(assigns ? o->last : o->assigned, assigns ? asserted : 0);
            after = SX_MAX(after, controlled); /* regions may assign any variable */
            time = SX_MAX(time, from_time(after, kind));
        }
        /* Regions may read and assign, too: they come after all previous rows of variables, and
         * before all later ones. */
        const bool opaque = is_opaque(r, late);
        for (int i = 0; i < n_orders && opaque; i++) {
            time = SX_MAX(time, from_time(orders[i].last, kind));
        }
        time = opaque ? SX_MAX(time, from_time(controlled, kind)) : time;
        const bool ordered = kind != DEVICE && acts(r->node, in_order);
        time = ordered ? SX_MAX(time, from_time(acted, kind)) : time;
        r->time = time;
        acted = ordered ? time : acted;
        if (o != NULL) {
            o->last = SX_MAX(o->last, time);
            o->assigned =
                r->node->op == &sx_op_assign_variable ? SX_MAX(o->assigned, time) : o->assigned;
        }
        asserted = r->node->op == &sx_op_assert || opaque ? SX_MAX(asserted, time) : asserted;
        controlled = opaque ? SX_MAX(controlled, time) : controlled;
    }
    sx_free(orders);
    return SX_OK;
}

/* A static row that reads a late call's result, and that a late row reads which would be ready
 * without it, joins that late call: leaving it would cut the call in two. True if any did. */
static bool join_late_calls(sx_specializer *s)
{
    bool any = false;
    for (int k = 0; k < s->n_rows; k++) {
        s->rows[k].ready = 0;
    }
    for (int k = s->n_rows - 1; k >= 0; k--) {
        sx_trace_row *r = &s->rows[k];
        if (!r->live || !(is_late(r) || r->joins)) {
            continue;
        }
        for (int i = 0; i < r->n_in + r->n_operands && !r->joins; i++) {
            const sx_trace_row *from = read_row(s, r, i, true);
            const bool decides = i >= r->n_in || !sx_is_shape_known(&s->vals[r->in[i]].type);
            r->ready = SX_MAX(r->ready, from != NULL && decides ? from->time : 0);
        }
        for (int i = 0; i < r->n_in; i++) {
            sx_trace_row *from = read_row(s, r, i, true);
            if (from == NULL || !from->behind || from->on_host || from->variable != NULL ||
                (is_late(from) && !from->joins) || from->time <= r->ready) {
                continue;
            }
            any = any || !from->joins;
            from->joins = true;
            from->ready = SX_MAX(from->ready, r->ready);
        }
    }
    return any;
}

static int first_of(sx_specializer *s, int k)
{
    while (s->rows[k].step != k) {
        k = s->rows[k].step = s->rows[s->rows[k].step].step;
    }
    return k;
}

static void unite(sx_specializer *s, int a, int b)
{
    a = first_of(s, a), b = first_of(s, b);
    s->rows[SX_MAX(a, b)].step = SX_MIN(a, b);
}

/* Late rows of one time are one call if one reads the other, if they read the same value that
 * decides a shape, or if both act; else each call is specialized for its own shapes alone. */
static sx_status part_late_calls(sx_specializer *s)
{
    enum { NONE = -1 };
    int *readers = sx_alloc((size_t)s->n_vals + 1, sizeof(int)); /* late, the latest */
    int acting = NONE;
    if (readers == NULL) {
        return sx_specialize_no_memory();
    }
    for (int v = 0; v < s->n_vals; v++) {
        readers[v] = NONE;
    }
    for (int k = 0; k < s->n_rows; k++) {
        sx_trace_row *r = &s->rows[k];
        r->step = k;
        if (!r->live || !is_late(r)) {
            continue;
        }
        for (int i = 0; i < r->n_in + r->n_operands; i++) {
            const int v = r->in[i];
            const sx_trace_row *from = read_row(s, r, i, true);
            if (from != NULL && from->time == r->time) {
                unite(s, k, s->vals[v].row);
            }
            if (from == NULL || (i < r->n_in && sx_is_shape_known(&s->vals[v].type))) {
                continue;
            }
            if (readers[v] != NONE && s->rows[readers[v]].time == r->time) {
                unite(s, k, readers[v]);
            }
            readers[v] = k;
        }
        if (r->variable != NULL || is_opaque(r, true) ||
            acts(r->node, SX_OP_EFFECT | SX_OP_STATE)) {
            if (acting != NONE && s->rows[acting].time == r->time) {
                unite(s, k, acting);
            }
            acting = k;
        }
    }
    for (int k = 0; k < s->n_rows; k++) {
        s->rows[k].step = first_of(s, k);
    }
    sx_free(readers);
    return SX_OK;
}

static bool is_of_step(const sx_trace_row *a, const sx_trace_row *b)
{
    return a->time == b->time && (a->step == b->step || a->time % N_KINDS == DEVICE);
}

/* By step, each in program order. */
static int compare_rows(const void *a, const void *b)
{
    const sx_trace_row *x = *(const sx_trace_row *const *)a, *y = *(const sx_trace_row *const *)b;
    return x->time != y->time  ? (x->time > y->time) - (x->time < y->time)
           : !is_of_step(x, y) ? (x->step > y->step) - (x->step < y->step)
                               : (x > y) - (x < y);
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

sx_type sx_type_without_batch(sx_type t)
{
    for (int i = 0; i < t.rank; i++) {
        t.dims[i] = t.dims[i] < 0 ? SX_UNKNOWN_DIM : t.dims[i];
    }
    return t;
}

static sx_value build_row(const sx_emitter *e, const sx_trace_row *r, const sx_node_spec *spec_)
{
    sx_node_spec spec = *spec_;
    spec.name = sx_map_has(&e->b->node_names, r->name) ? NULL : r->name;
    spec.device = r->node->device;
    spec.file = r->node->file;
    spec.line = r->node->line;
    return sx_build_node(e->b, &spec);
}

sx_value sx_emitted_value(sx_emitter *e, int v)
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
        e->here[v] = sx_input(e->b, name, e->late ? sx_type_without_batch(x->type) : x->type);
        e->in[e->n_in++] = v;
    }
    return e->here[v];
}

sx_status sx_emit_row(sx_emitter *e, const sx_trace_row *r)
{
    sx_specializer *s = e->s;
    const sx_node *n = r->node;
    const bool late = e->late;
    if (!late && r->variable != NULL) {
        const sx_variable_spec *v = sx_library_find_variable(s->out->library, r->variable);
        sx_value current = sx_variable(e->b, v);
        s->out->reads = true;
        if (n->op == &sx_op_assign_variable) {
            current = sx_emitted_value(e, r->in[1]);
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
        inputs[i] = sx_emitted_value(e, r->in[i]);
    }
    for (int i = 0; i < r->n_operands && late; i++) {
        operands[i] =
            (sx_attr_operand){n->attr_operands[i].row, sx_emitted_value(e, r->in[r->n_in + i])};
    }
    for (int i = 0; i < r->n_out; i++) {
        types[i] = sx_type_without_batch(s->vals[r->first + i].type);
    }
    /* what data decide may be known from elsewhere (narrow_types in builder.c) */
    const bool declared = late || n->op->host_types != NULL;
    sx_value first = build_row(e, r,
                               &(sx_node_spec){.op = n->op,
                                               .attrs = late ? n->attrs : r->attrs,
                                               .inputs = inputs,
                                               .n_inputs = r->n_in,
                                               .attr_operands = operands,
                                               .n_attr_operands = late ? r->n_operands : 0,
                                               .types = declared ? types : NULL,
                                               .n_types = r->n_out});
    for (int i = 0; i < r->n_out; i++) {
        e->here[r->first + i] = sx_output_of(first, i);
    }
    return SX_OK;
}

sx_status sx_emitter_init(sx_emitter *e, sx_specializer *s)
{
    *e = (sx_emitter){.s = s,
                      .here = sx_alloc((size_t)s->n_vals + 1, sizeof(sx_value)),
                      .in = sx_alloc((size_t)s->n_vals + 1, sizeof(int)),
                      .out = sx_alloc((size_t)s->n_vals + 1, sizeof(int)),
                      .read = sx_alloc((size_t)s->n_vals + 1, sizeof(bool))};
    return e->here == NULL || e->in == NULL || e->out == NULL || e->read == NULL
               ? sx_specialize_no_memory()
               : SX_OK;
}

sx_status sx_emitter_begin(sx_emitter *e, bool late)
{
    sx_builder_destroy(e->b);
    e->b = NULL;
    e->late = late;
    e->n_in = e->n_out = 0;
    SX_TRY(late ? sx_builder_create_function(&e->b) : sx_builder_create(&e->b));
    sx_builder_arena(e->b)->budget = e->s->limits.memory;
    return SX_OK;
}

void sx_emitter_deinit(sx_emitter *e)
{
    sx_builder_destroy(e->b);
    sx_free(e->here);
    sx_free(e->in);
    sx_free(e->out);
    sx_free(e->read);
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

/* Large constants of the library are kept once: the graph refers to the library's. */
static void share_constants(const sx_emitter *e, const sx_trace_row *r, sx_graph *g)
{
    const sx_specializer *s = e->s;
    for (int i = 0; i < r->n_in + r->n_operands; i++) {
        const sx_trace_val *x = &s->vals[r->in[i]];
        const sx_value here = e->here[r->in[i]];
        const int64_t bytes = x->lent && sx_value_is(here) ? sx_type_bytes(&x->type) : 0;
        const sx_node *n = bytes >= LARGE_CONSTANT ? sx_graph_maker(g, here) : NULL;
        sx_constant_attrs *attrs =
            n != NULL && n->op == &sx_op_constant ? (sx_constant_attrs *)(uintptr_t)n->attrs : NULL;
        if (attrs != NULL && attrs->value.data != x->known->data) {
            sx_arena_discard(&g->arena, attrs->value.data, (size_t)bytes);
            attrs->value.data = x->known->data;
        }
    }
}

/* A step of a device, or a late call, as one graph. */
static sx_status emit_graph(sx_emitter *e, sx_trace_row *const *rows, int n_rows)
{
    sx_specializer *s = e->s;
    sx_graph *g = NULL;
    SX_TRY(sx_emitter_begin(e, is_late(rows[0])));
    for (int k = 0; k < n_rows; k++) {
        const sx_trace_row *r = rows[k];
        SX_TRY(sx_name_node(r->node, sx_emit_row(e, r)));
        for (int i = 0; i < r->n_out; i++) {
            if (e->read[r->first + i] && s->vals[r->first + i].known == NULL) {
                char name[32];
                snprintf(name, sizeof(name), "v%d", r->first + i);
                sx_output(e->b, name, e->here[r->first + i]);
                e->out[e->n_out++] = r->first + i;
            }
        }
    }
    SX_TRY(sx_builder_finish(e->b, &g));
    sx_step step = {.kind = e->late ? SX_STEP_LATE : SX_STEP_DEVICE,
                    .n_in = e->n_in,
                    .n_out = e->n_out,
                    .graph = g};
    for (int k = 0; k < n_rows; k++) {
        share_constants(e, rows[k], g);
    }
    for (int k = 0; k < n_rows; k++) {
        const sx_trace_row *r = rows[k];
        for (int i = 0; i < r->n_in + r->n_operands; i++) {
            e->here[r->in[i]] = SX_NO_VALUE;
        }
        for (int i = 0; i < r->n_out; i++) {
            e->here[r->first + i] = SX_NO_VALUE;
        }
    }
    SX_TRY(keep_graph(s, g));
    SX_TRY(sx_graph_digest(g, e->late, &step.digests[0]));
    return add_step(s, &step, e->in, e->out);
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

/* The steps of rows[n_rows], those that are live, which it sorts. */
static sx_status emit_rows(sx_emitter *e, sx_trace_row **rows, int n_rows)
{
    sx_specializer *s = e->s;
    int n_steps = 0;
    qsort(rows, (size_t)n_rows, sizeof(*rows), compare_rows);
    for (int k = 0; k < n_rows; k++) {
        const sx_trace_row *r = rows[k];
        n_steps += k == 0 || !is_of_step(rows[k - 1], r);
        for (int i = 0; i < r->n_in + r->n_operands; i++) {
            const int by = s->vals[r->in[i]].row;
            e->read[r->in[i]] |= by != SX_NO_ROW && !is_of_step(&s->rows[by], r);
        }
    }
    s->out->steps = sx_arena_array(s->arena, n_steps + 1, sx_step);
    if (s->out->steps == NULL) {
        return sx_specialize_no_memory();
    }
    for (int k = 0, n = 0; k < n_rows; k += n) {
        for (n = 1; k + n < n_rows && is_of_step(rows[k], rows[k + n]); n++) {
        }
        SX_TRY(rows[k]->time % N_KINDS == HOST ? sx_name_node(rows[k]->node, emit_host(s, rows[k]))
                                               : emit_graph(e, rows + k, n));
    }
    return SX_OK;
}

sx_status sx_emit_steps(sx_specializer *s, const int *results, int n_results)
{
    sx_mark_live(s, results, n_results, false);
    SX_TRY(set_times(s));
    for (int round = 0; round < MAX_JOINS && join_late_calls(s); round++) {
        SX_TRY(set_times(s));
    }
    sx_mark_live(s, results, n_results, true);
    SX_TRY(part_late_calls(s));
    s->out->slots = sx_arena_array(s->arena, s->n_vals + 1, sx_step_slot);
    if (s->out->slots == NULL) {
        return sx_specialize_no_memory();
    }
    int slot;
    for (int i = 0; i < s->binding.n_args; i++) { /* the first vals: slots 0 .. n_args-1 */
        SX_TRY(slot_of(s, i, &slot));
    }
    sx_emitter e;
    int n_rows = 0;
    sx_trace_row **rows = sx_alloc((size_t)s->n_rows + 1, sizeof(*rows));
    sx_status status = sx_emitter_init(&e, s);
    status = status == SX_OK && rows == NULL ? sx_specialize_no_memory() : status;
    for (int i = 0; i < n_results && status == SX_OK; i++) {
        e.read[results[i]] = true;
    }
    for (int k = 0; k < s->n_rows && status == SX_OK; k++) {
        if (s->rows[k].live) {
            rows[n_rows++] = &s->rows[k];
        }
    }
    status = status != SX_OK ? status : emit_rows(&e, rows, n_rows);
    sx_emitter_deinit(&e);
    sx_free(rows);
    SX_TRY(status);
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

sx_status sx_emit_graph(sx_specializer *s, bool late, const bool *chosen, const int *args,
                        int n_args, const int *results, int n_results, sx_graph **out)
{
    sx_emitter e;
    sx_graph *made = NULL;
    char name[32];
    sx_status status = sx_emitter_init(&e, s);
    status = status != SX_OK ? status : sx_emitter_begin(&e, late);
    for (int i = 0; i < n_args && status == SX_OK; i++) {
        const sx_type *type = &s->vals[args[i]].type;
        snprintf(name, sizeof(name), "x%d", i);
        e.here[args[i]] = sx_input(e.b, name, late ? sx_type_without_batch(*type) : *type);
    }
    for (int k = 0; k < s->n_rows && status == SX_OK; k++) {
        if (chosen != NULL ? chosen[k] : s->rows[k].live) {
            status = sx_name_node(s->rows[k].node, sx_emit_row(&e, &s->rows[k]));
        }
    }
    for (int i = 0; i < n_results && status == SX_OK; i++) {
        snprintf(name, sizeof(name), "y%d", i);
        sx_output(e.b, name, sx_emitted_value(&e, results[i]));
    }
    status = status != SX_OK ? status : sx_builder_finish(e.b, &made);
    if (status == SX_OK) {
        *out = sx_graph_copy(s->arena, made);
        status = *out == NULL ? sx_specialize_no_memory() : SX_OK;
    }
    sx_graph_destroy(made);
    sx_emitter_deinit(&e);
    return status;
}

sx_status sx_emit_region(sx_specializer *s, const int *args, int n_args, const int *results,
                         int n_results, bool host, sx_graph **out)
{
    bool fits = true;
    *out = NULL;
    sx_mark_live(s, results, n_results, true);
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
    return fits ? sx_emit_graph(s, false, NULL, args, n_args, results, n_results, out) : SX_OK;
}
