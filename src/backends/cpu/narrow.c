/* Stores values of bfloat16 in two bytes, and those of 8 bits in one, while no kernel reads them as
 * float32.
 *
 * widen_bf16 has turned the former into float32 values that bfloat16 can represent, and quantizers
 * make float32 values on a grid of 8 bits, so that every kernel can read them:
 *
 *     conv ──%5 [4 n]──> relu ...            ──────────────%5 [4 n]──────────────> gradient
 *
 * Such a value is kept packed instead if that is exact and it is read later:
 *
 *     conv ──%5 [4 n]──> relu ...   pack ──%5' [2 n]── ... ──> unpack ──%5" [4 n]──> gradient
 *
 * Kernels that read or write a form themselves (kernel.h: narrow_in, bytes_in) need no unpack or
 * pack. Only steps of sharded stages take part: they run one after the other, so that a step may
 * be put between two of them. */
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/planner.h"
#include "base/checked.h"
#include "graph/ops/attrs.h"
#include "graph/ops/quantize.h"
#include "graph/passes/passes.h"

enum {
    NEAR = 2,           /* readers within this many steps use the float32 value */
    LEAST_BYTES = 4096, /* smaller values are not worth a step */
    LARGEST_CONSTANT = 64 * 1024,
};

/* ---- Values that bfloat16 represents exactly ---- */

static bool constant_is_on_grid(const sx_node *n)
{
    const sx_tensor *t = &((const sx_constant_attrs *)n->attrs)->value;
    const int64_t elems = sx_type_elems(&t->type);
    bool on_grid = t->type.dtype == SX_F32 && elems <= LARGEST_CONSTANT;
    for (int64_t i = 0; on_grid && i < elems; i++) {
        on_grid = (((const uint32_t *)t->data)[i] & 0xffff) == 0;
    }
    return on_grid;
}

static void mark_bf16(const sx_graph *g, bool *on_grid)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        const sx_op_id id = (sx_op_id)n->op->id;
        bool grid = sx_op_keeps_bf16(n);
        for (int i = 0; i < n->n_inputs; i++) {
            const sx_dtype dtype = sx_graph_type(g, n->inputs[i])->dtype;
            grid = grid && (dtype != SX_F32 || on_grid[n->inputs[i].id]);
        }
        grid = id == SX_OPID_constant     ? constant_is_on_grid(n)
               : id == SX_OPID_round_bf16 ? true
               : id == SX_OPID_cast       ? sx_graph_type(g, n->inputs[0])->dtype == SX_BF16
                                          : grid;
        for (int i = 0; i < n->n_outputs; i++) {
            const sx_value v = sx_node_output(n, i);
            on_grid[v.id] = grid && sx_graph_type(g, v)->dtype == SX_F32;
        }
    }
}

/* ---- Values of 8 bits ---- */

/* A number of a constant; NULL if it is none of one float32. */
static const float *constant_number(const sx_graph *g, sx_value v)
{
    const sx_node *n = sx_graph_maker(g, v);
    const sx_tensor *t =
        n->op->id == SX_OPID_constant ? &((const sx_constant_attrs *)n->attrs)->value : NULL;
    return t != NULL && t->type.dtype == SX_F32 && t->type.rank == 0 ? t->data : NULL;
}

bool sx_cpu_byte_form(const sx_graph *g, sx_value v, sx_cpu_form *out)
{
    const sx_node *n = sx_graph_maker(g, v);
    while (n->op->id == SX_OPID_max_pool2d || (n->op->flags & SX_OP_VIEW) != 0) {
        n = sx_graph_maker(g, n->inputs[0]);
    }
    if (!sx_is_quantizer(n) || sx_graph_type(g, v)->dtype != SX_F32) {
        return false;
    }
    const float *low = constant_number(g, n->inputs[1]), *high = constant_number(g, n->inputs[2]);
    sx_quantize_steps steps;
    if (low == NULL || high == NULL || !sx_quantize_steps_of(n, *low, *high, &steps)) {
        return false;
    }
    const bool is_u8 = steps.first >= 0 && steps.last <= UINT8_MAX;
    const bool is_s8 = steps.first >= INT8_MIN && steps.last <= INT8_MAX;
    *out =
        is_u8 ? (sx_cpu_form){SX_U8, steps.step, steps.first == 0 && steps.last == UINT8_MAX}
              : (sx_cpu_form){SX_I8, steps.step, steps.first == INT8_MIN && steps.last == INT8_MAX};
    return is_u8 || is_s8;
}

static void find_forms(const sx_graph *g, const bool *bf16, sx_cpu_form *forms)
{
    for (int v = 1; v < g->n_values; v++) {
        if (!sx_cpu_byte_form(g, (sx_value){(uint32_t)v}, &forms[v])) {
            forms[v] = (sx_cpu_form){.dtype = bf16[v] ? SX_BF16 : SX_F32};
        }
    }
}

/* ---- Inserted steps ---- */

/* Lists of units by the step that they stand before or after; linked through next[]. */
typedef struct insertion {
    sx_cpu_planner *p;
    int *before, *after; /* [n_steps]: first unit + 1, 0 = none */
    int *next;           /* [units] */
    int added;
} insertion;

static sx_status add_step(insertion *in, sx_cpu_unit_kind kind, int from, int to, int *list)
{
    sx_cpu_unit *u;
    int *node = sx_arena_new(&in->p->scratch, int);
    if (node == NULL) {
        return sx_cpu_no_memory();
    }
    *node = (int)in->p->g->values[in->p->values[to].twin_of].node;
    const sx_cpu_unit proto = {
        .kind = kind, .sharded = true, .nodes = node, .n_nodes = 1, .node = *node};
    SX_TRY(sx_cpu_add_unit(in->p, &proto, 1, 1, &u));
    const int k = in->p->n_units - 1;
    u->in[0] = from;
    u->out[0] = to;
    in->p->values[to].maker = k;
    in->next[k] = *list;
    *list = k + 1;
    in->added++;
    return SX_OK;
}

static int emit(const insertion *in, int list, int *order, int at)
{
    for (int k = list; k != 0; k = in->next[k - 1]) {
        order[at++] = k - 1;
    }
    return at;
}

static sx_status renumber(const insertion *in)
{
    sx_cpu_planner *p = in->p;
    sx_cpu_plan *plan = p->plan;
    int *order = sx_arena_array(&p->scratch, plan->n_steps + in->added + 1, int);
    int at = 0;
    if (order == NULL) {
        return sx_cpu_no_memory();
    }
    for (int s = 0; s < plan->n_stages; s++) {
        sx_cpu_stage *stage = &plan->stages[s];
        const int first = at;
        for (int i = stage->first; i < stage->first + stage->count; i++) {
            at = emit(in, in->before[i], order, at);
            order[at++] = p->order[i];
            at = emit(in, in->after[i], order, at);
        }
        stage->first = first;
        stage->count = at - first;
        for (int i = first; i < at; i++) {
            p->units[order[i]].step = i;
            p->units[order[i]].stage = s;
        }
    }
    p->order = order;
    plan->n_steps = at;
    return SX_OK;
}

/* ---- Packing one value ---- */

/* An operand of a step that is the value, or a view of it. */
typedef struct reader {
    int unit, operand, step;
    bool direct; /* reads the form itself */
} reader;

static int by_step(const void *a, const void *b)
{
    const reader *x = a, *y = b;
    return x->step != y->step ? (x->step > y->step) - (x->step < y->step)
                              : (x->operand > y->operand) - (x->operand < y->operand);
}

static bool reads_narrow(const sx_cpu_unit *u, int operand, const sx_cpu_form *form)
{
    if (u->kind != SX_CPU_UNIT_KERNEL) {
        return false;
    }
    const unsigned can =
        sx_cpu_form_is_bytes(form)
            ? u->kernel->bytes_in
            : u->kernel->narrow_in | (u->kernel->narrow_in_place ? u->in_place : 0u);
    return operand < 32 && (can >> operand & 1) != 0;
}

static bool writes_narrow(const sx_cpu_unit *u, int value, const sx_cpu_form *form)
{
    return u->kind == SX_CPU_UNIT_KERNEL && u->out[0] == value &&
           (sx_cpu_form_is_bytes(form) ? u->kernel->bytes_out : u->kernel->narrow_out);
}

/* Adds another representation of the value: packed or unpacked. */
static sx_status add_twin(sx_cpu_planner *p, int value, int64_t bytes, sx_cpu_form form, int *out)
{
    const sx_cpu_pvalue *v = &p->values[value];
    return sx_cpu_add_value(p,
                            &(sx_cpu_pvalue){.bytes = bytes,
                                             .lesser = v->lesser * bytes / SX_MAX(v->bytes, 1),
                                             .own = v->own,
                                             .form = form,
                                             .twin_of = v->twin_of != 0 ? v->twin_of : value,
                                             .maker = -1},
                            out);
}

sx_status sx_cpu_read_twin(sx_cpu_planner *p, int unit, int operand, int twin)
{
    const int read = p->units[unit].in[operand];
    int view = twin;
    if (read != sx_cpu_root(p, read)) {
        SX_TRY(add_twin(p, read, p->values[twin].bytes, p->values[twin].form, &view));
        p->values[view].root = twin;
    }
    p->units[unit].in[operand] = view;
    return SX_OK;
}

static sx_status narrow_value(insertion *in, int value, const sx_cpu_form *form, reader *readers,
                              int n)
{
    sx_cpu_planner *p = in->p;
    const int maker = p->values[value].maker, made = p->units[maker].step;
    const int64_t bytes = p->values[value].bytes;
    qsort(readers, (size_t)n, sizeof(*readers), by_step);
    /* A kernel that makes bytes would make them in any case, and to unpack them is little work. */
    const bool bytes_at_once =
        sx_cpu_form_is_bytes(form) && writes_narrow(&p->units[maker], value, form);
    const int close = bytes_at_once ? made : made + NEAR;
    bool near = false, any = false; /* a float32 reader follows soon; one reads the form */
    for (int i = 0; i < n; i++) {
        near = near || (!readers[i].direct && readers[i].step <= close);
        any = any || readers[i].direct;
    }
    const bool at_once = writes_narrow(&p->units[maker], value, form) && !near;
    if (n == 0 || (!at_once && readers[n - 1].step <= made + NEAR) ||
        (sx_cpu_form_is_bytes(form) && !any)) {
        return SX_OK;
    }
    int packed, wide = -1, wide_until = -1;
    SX_TRY(add_twin(p, value, bytes * sx_cpu_form_bytes(form) / (int64_t)sizeof(float), *form,
                    &packed));
    for (int i = 0; i < n; i++) {
        const reader *r = &readers[i];
        if (r->direct) {
            SX_TRY(sx_cpu_read_twin(p, r->unit, r->operand, packed));
        } else if (r->step > close) {
            if (r->step > wide_until) {
                SX_TRY(add_twin(p, value, bytes, (sx_cpu_form){0}, &wide));
                SX_TRY(add_step(in, SX_CPU_UNIT_UNPACK, packed, wide, &in->before[r->step]));
            }
            wide_until = r->step + NEAR;
            SX_TRY(sx_cpu_read_twin(p, r->unit, r->operand, wide));
        }
    }
    if (!at_once) {
        return add_step(in, SX_CPU_UNIT_PACK, value, packed, &in->after[made]);
    }
    p->units[maker].out[0] = packed;
    p->values[packed].maker = maker;
    p->values[value].maker = -1;
    return SX_OK;
}

/* ---- Packing all values ---- */

/* What is the same in every execution is made once, for steps that prepare it in a form of their
 * own. */
static bool may_narrow(const sx_cpu_planner *p, int value, const sx_cpu_form *forms,
                       const bool *frozen)
{
    const sx_cpu_pvalue *v = &p->values[value];
    return forms[value].dtype != SX_F32 && !frozen[value] && v->root == value && !v->placed &&
           !v->constant && v->bytes >= LEAST_BYTES && (v->own || p->plan->shards == 1) &&
           v->maker >= 0 && p->units[v->maker].sharded && p->units[v->maker].step >= 0;
}

sx_status sx_cpu_narrow(sx_cpu_planner *p)
{
    const int n_values = p->g->n_values, n_units = p->n_units;
    int n_operands = 0;
    bool *bf16 = sx_arena_array(&p->scratch, n_values + 1, bool);
    sx_cpu_form *forms = sx_arena_array(&p->scratch, n_values + 1, sx_cpu_form);
    bool *frozen = sx_arena_array(&p->scratch, n_values + 1, bool);
    int *count = sx_arena_array(&p->scratch, n_values + 1, int);
    if (frozen == NULL || bf16 == NULL || forms == NULL || count == NULL) {
        return sx_cpu_no_memory();
    }
    mark_bf16(p->g, bf16);
    find_forms(p->g, bf16, forms);
    if (p->plan->frozen) {
        sx_mark_frozen(p->g, frozen);
    }
    for (int v = 1; v < n_values; v++) {
        count[v] = may_narrow(p, v, forms, frozen) ? 0 : -1;
    }
    /* Counts the readers of each value; -1 for a value with a reader outside the sharded stages, or
     * one that reads its bytes as another dtype. */
    for (int k = 0; k < n_units; k++) {
        const sx_cpu_unit *u = &p->units[k];
        for (int i = 0; i < u->n_in && u->step >= 0; i++) {
            const int root = sx_cpu_root(p, u->in[i]);
            if (root < n_values && count[root] >= 0) {
                const bool same = sx_graph_type(p->g, (sx_value){u->in[i]})->dtype == SX_F32;
                count[root] = u->sharded && same ? count[root] + 1 : -1;
            }
        }
    }
    int *first = sx_arena_array(&p->scratch, n_values + 1, int);
    for (int v = 1; v < n_values && first != NULL; v++) {
        first[v] = n_operands;
        n_operands += count[v] > 0 ? count[v] : 0;
    }
    if (n_operands == 0) {
        return SX_OK;
    }
    reader *readers = sx_arena_array(&p->scratch, n_operands, reader);
    int *filled = sx_arena_array(&p->scratch, n_values + 1, int);
    const int max_units = n_units + n_operands + n_values;
    insertion in = {.p = p,
                    .before = sx_arena_array(&p->scratch, p->plan->n_steps + 1, int),
                    .after = sx_arena_array(&p->scratch, p->plan->n_steps + 1, int),
                    .next = sx_arena_array(&p->scratch, max_units + 1, int)};
    if (first == NULL || readers == NULL || filled == NULL || in.before == NULL ||
        in.after == NULL || in.next == NULL) {
        return sx_cpu_no_memory();
    }
    for (int k = 0; k < n_units; k++) {
        const sx_cpu_unit *u = &p->units[k];
        for (int i = 0; i < u->n_in && u->step >= 0; i++) {
            const int root = sx_cpu_root(p, u->in[i]);
            if (root < n_values && count[root] > 0) {
                readers[first[root] + filled[root]++] =
                    (reader){k, i, u->step, reads_narrow(u, i, &forms[root])};
            }
        }
    }
    for (int v = 1; v < n_values; v++) {
        if (count[v] > 0) {
            SX_TRY(narrow_value(&in, v, &forms[v], readers + first[v], count[v]));
        }
    }
    return renumber(&in);
}
