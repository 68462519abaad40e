/* Emulates bfloat16 in float32, for devices whose kernels only compute float32.
 *
 *   %3 = cast(%1) bfloat16          %3 = round_bf16(%1)
 *   %4 = conv2d(%2, %3) bfloat16    %4 = conv2d(%2, %3)      float32, accumulated as before
 *   %5 = bias_add(%4, …) bfloat16   %5 = bias_add(%4, …)     %4 not rounded: read only here
 *   %6 = relu(%5) bfloat16          %6 = round_bf16(relu(%5))
 *
 * Apart from the omitted roundings, every value is the same number as in the bfloat16 graph, and
 * kernels fuse as they do in float32. */
#include "base/half.h"
#include "base/memory.h"
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

typedef struct widening {
    bool rounds;
    sx_value *wide; /* [n_values]: the new value, float32 where the old one is bfloat16 */
    bool *on_grid;  /* [n_values]: a bfloat16 value that needs no (further) rounding */
    int *uses;      /* [n_values] */
    bool *fused;    /* [n_values]: its only reader is an elementwise node with a bfloat16 result */
    bool *result;   /* [n_values] */
} widening;

bool sx_op_keeps_bf16(const sx_node *n)
{
    return (n->op->flags & SX_OP_EXACT) != 0 &&
           (n->op->exact_if == NULL || n->op->exact_if(n->attrs));
}

static bool is_bf16(const sx_graph *g, sx_value v)
{
    return sx_graph_type(g, v)->dtype == SX_BF16;
}

/* ---- Uses of values ---- */

static void mark_readers(const sx_graph *g, widening *w)
{
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        bool elementwise = (n->op->flags & SX_OP_ELEMENTWISE) != 0 && n->n_outputs == 1 &&
                           is_bf16(g, n->first_output);
        for (int i = 0; i < n->n_inputs; i++) {
            int v = (int)n->inputs[i].id;
            w->fused[v] = elementwise && w->uses[v] == 0;
            w->uses[v]++;
        }
    }
    for (int i = 0; i < g->n_results; i++) {
        w->result[g->results[i].value.id] = true;
    }
}

/* ---- Nodes ---- */

/* The widened value of an input; an argument of bfloat16 is cast where it is first read. */
static sx_value wide_input(sx_rewrite *rw, sx_value v)
{
    widening *w = rw->user;
    if (!sx_value_is(w->wide[v.id])) {
        w->wide[v.id] = rw->map[v.id]; /* an argument */
        w->on_grid[v.id] = true;
        if (is_bf16(rw->from, v)) {
            w->wide[v.id] =
                sx_rewrite_beside(rw, sx_graph_maker(rw->from, v), &sx_op_cast,
                                  &(sx_cast_attrs){.dtype = SX_F32}, &rw->map[v.id], 1, ".wide0");
        }
    }
    return w->wide[v.id];
}

/* A constant of bfloat16 in float32. */
static void *wide_constant(sx_rewrite *rw, const sx_constant_attrs *attrs)
{
    sx_arena *arena = sx_builder_arena(rw->to);
    sx_constant_attrs *copy = sx_arena_new(arena, sx_constant_attrs);
    int64_t n = sx_type_elems(&attrs->value.type);
    float *data = sx_arena_array(arena, n + 1, float);
    if (copy == NULL || data == NULL) {
        return NULL;
    }
    for (int64_t i = 0; i < n; i++) {
        data[i] = sx_bf16_to_f32(((const uint16_t *)attrs->value.data)[i]);
    }
    copy->value = (sx_tensor){attrs->value.type, data};
    copy->value.type.dtype = SX_F32;
    return copy;
}

/* The attributes with bfloat16 replaced by float32; the node's own if there is none. */
static const void *wide_attrs(sx_rewrite *rw, const sx_node *n)
{
    if (n->op->id == SX_OPID_constant && is_bf16(rw->from, n->first_output)) {
        return wide_constant(rw, n->attrs);
    }
    for (int i = 0; i < n->op->n_attrs; i++) {
        const sx_attr_def *def = &n->op->attrs[i];
        const sx_dtype *dtype = (const void *)((const char *)n->attrs + def->offset);
        if (def->kind == SX_ATTR_DTYPE && *dtype == SX_BF16) {
            char *copy = sx_arena_memdup(sx_builder_arena(rw->to), n->attrs, n->op->attrs_bytes);
            if (copy != NULL) {
                *(sx_dtype *)(void *)(copy + def->offset) = SX_F32;
            }
            return copy;
        }
    }
    return n->attrs;
}

/* Marks a node with the dtype of its operands, where it has an attribute for it. */
static const void *marked_attrs(sx_rewrite *rw, const sx_node *n, const void *attrs)
{
    const widening *w = rw->user;
    const sx_attr_def *mark = n->op->bf16_operands;
    bool narrow = w->rounds && mark != NULL && is_bf16(rw->from, n->inputs[0]) &&
                  w->on_grid[n->inputs[0].id] && w->on_grid[n->inputs[1].id];
    char *copy =
        narrow ? sx_arena_memdup(sx_builder_arena(rw->to), attrs, n->op->attrs_bytes) : NULL;
    if (copy == NULL) {
        return attrs; /* if out of memory, the builder fails later */
    }
    *(bool *)(copy + mark->offset) = true;
    return copy;
}

/* Rounds output k if later nodes must see the bfloat16 value. */
static void settle(sx_rewrite *rw, const sx_node *n, int k, bool inputs_on_grid)
{
    widening *w = rw->user;
    sx_value v = sx_node_output(n, k);
    if (!is_bf16(rw->from, v)) {
        rw->map[v.id] = w->wide[v.id];
        return;
    }
    w->on_grid[v.id] = sx_op_keeps_bf16(n) && inputs_on_grid;
    /* The gradient of an image is as large as the image, and its kernels round it. */
    bool fused = w->fused[v.id] && w->uses[v.id] == 1 && !w->result[v.id] &&
                 n->op->id != SX_OPID_conv2d_grad_input;
    if (w->rounds && !w->on_grid[v.id] && !fused && w->uses[v.id] > 0) {
        w->wide[v.id] =
            sx_rewrite_beside(rw, n, &sx_op_round_bf16, NULL, &w->wide[v.id], 1, ".rounded%d", k);
        w->on_grid[v.id] = true;
    }
    if (w->result[v.id]) {
        rw->map[v.id] = sx_rewrite_beside(rw, n, &sx_op_cast, &(sx_cast_attrs){.dtype = SX_BF16},
                                          &w->wide[v.id], 1, ".narrow%d", k);
    }
}

/* Regions keep the types of their arguments and results, and a bitcast reads bytes: such a node
 * gets its operands in bfloat16. */
static void keep_narrow(sx_rewrite *rw, const sx_node *n)
{
    widening *w = rw->user;
    for (int i = 0; i < n->n_inputs; i++) {
        const sx_value v = n->inputs[i];
        const sx_value wide = wide_input(rw, v);
        rw->map[v.id] = is_bf16(rw->from, v) ? sx_rewrite_beside(rw, n, &sx_op_cast,
                                                                 &(sx_cast_attrs){.dtype = SX_BF16},
                                                                 &wide, 1, ".narrow%d", i)
                                             : wide;
    }
    sx_rewrite_keep(rw, n, NULL);
    for (int k = 0; k < n->n_outputs; k++) {
        const sx_value v = sx_node_output(n, k);
        w->on_grid[v.id] = true;
        w->wide[v.id] = is_bf16(rw->from, v) ? sx_rewrite_beside(rw, n, &sx_op_cast,
                                                                 &(sx_cast_attrs){.dtype = SX_F32},
                                                                 &rw->map[v.id], 1, ".wide%d", k)
                                             : rw->map[v.id];
    }
}

static void widen_node(sx_rewrite *rw, const sx_node *n)
{
    widening *w = rw->user;
    if (sx_op_has_regions(n->op) || n->op->id == SX_OPID_bitcast) {
        keep_narrow(rw, n);
        return;
    }
    const void *attrs = wide_attrs(rw, n);
    sx_value *inputs = sx_arena_array(sx_builder_arena(rw->to), n->n_inputs + 1, sx_value);
    bool on_grid = true;
    if (inputs == NULL || (attrs == NULL && n->op->attrs_bytes > 0)) {
        sx_builder_fail(rw->to, sx_no_memory("rewriting a graph"));
        return;
    }
    for (int i = 0; i < n->n_inputs; i++) {
        inputs[i] = wide_input(rw, n->inputs[i]);
        bool narrow = is_bf16(rw->from, n->inputs[i]);
        on_grid = on_grid && (!narrow || w->on_grid[n->inputs[i].id]);
    }
    attrs = marked_attrs(rw, n, attrs);
    sx_value first = sx_rewrite_node(rw, n, n->op, attrs, inputs, n->n_inputs);
    for (int k = 0; k < n->n_outputs; k++) {
        w->wide[sx_node_output(n, k).id] = sx_output_of(first, k);
        settle(rw, n, k, on_grid);
    }
}

/* ---- The pass ---- */

static void keep_node(sx_rewrite *rw, const sx_node *n)
{
    sx_rewrite_keep(rw, n, NULL);
}

static bool has_bf16(const sx_graph *g)
{
    for (int i = 1; i < g->n_values; i++) {
        if (g->values[i].type.dtype == SX_BF16) {
            return true;
        }
    }
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        for (int row = 0; row < n->op->n_attrs; row++) {
            if (n->op->attrs[row].kind == SX_ATTR_BODY && has_bf16(sx_node_body(n, row))) {
                return true;
            }
        }
    }
    return false;
}

static sx_status widen(const sx_graph *g, bool rounds, sx_graph **out);

/* A device compiles the regions of a node as graphs, and runs the pass on each. */
static sx_status widen_region(const sx_graph *region, void *user, sx_graph **out)
{
    const widening *w = user;
    return w->rounds ? sx_rewrite_run(region, 0, keep_node, NULL, out) : widen(region, false, out);
}

static sx_status widen(const sx_graph *g, bool rounds, sx_graph **out)
{
    if (!has_bf16(g)) {
        return sx_rewrite_run(g, 0, keep_node, NULL, out);
    }
    sx_arena scratch;
    sx_arena_init(&scratch, 0);
    widening w = {.rounds = rounds,
                  .wide = sx_arena_array(&scratch, g->n_values, sx_value),
                  .on_grid = sx_arena_array(&scratch, g->n_values, bool),
                  .uses = sx_arena_array(&scratch, g->n_values, int),
                  .fused = sx_arena_array(&scratch, g->n_values, bool),
                  .result = sx_arena_array(&scratch, g->n_values, bool)};
    sx_status status = SX_OK;
    if (w.wide == NULL || w.on_grid == NULL || w.uses == NULL || w.fused == NULL ||
        w.result == NULL) {
        status = sx_no_memory("rewriting a graph");
    } else {
        mark_readers(g, &w);
        status = sx_rewrite_run_deep(g, 0, widen_node, widen_region, &w, out);
    }
    sx_arena_deinit(&scratch);
    return status;
}

sx_status sx_pass_widen_bf16(const sx_graph *g, sx_graph **out)
{
    return widen(g, true, out);
}

sx_status sx_pass_drop_bf16(const sx_graph *g, sx_graph **out)
{
    return widen(g, false, out);
}
