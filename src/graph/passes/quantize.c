/* See quantize.h. */
#include "graph/passes/quantize.h"

#include <math.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/builder.h"
#include "graph/ops/attrs.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

sx_status sx_quantize_prepare(const sx_graph *g, sx_graph **out)
{
    typedef sx_status pass_fn(const sx_graph *g, sx_graph **out);
    static pass_fn *const passes[] = {
        sx_pass_simplify, sx_pass_fold_constants, sx_pass_merge_equal, sx_pass_fuse_swish,
        sx_pass_freeze,   sx_pass_simplify,       sx_pass_drop_dead};
    sx_graph *made = NULL;
    for (size_t i = 0; i < SX_COUNT(passes); i++) {
        sx_graph *next = NULL;
        sx_status status = passes[i](made != NULL ? made : g, &next);
        sx_graph_destroy(made);
        SX_TRY(status);
        made = next;
    }
    *out = made;
    return SX_OK;
}

/* ---- Products ---- */

typedef struct finding {
    const sx_graph *g;
    bool rounds;         /* to bfloat16: all products are chosen */
    bool *frozen;        /* [n_values]: follows from variables and constants alone */
    bool *after;         /* [n_values]: follows from a product */
    bool *before;        /* [n_nodes]: a product follows from its results */
    bool *chosen;        /* [n_nodes]: products that are quantized */
    int *uses;           /* [n_values] */
    bool *quantized;     /* [n_values]: points */
    bool *by_matmul;     /* [n_values]: points that products of matrices read */
    const char **device; /* [n_values]: of the first product whose filter it is */
} finding;

static bool is_product(const finding *f, const sx_node *n)
{
    const sx_graph *g = f->g;
    if (n->op->id != SX_OPID_conv2d && n->op->id != SX_OPID_matmul) {
        return false;
    }
    const sx_type *filter = sx_graph_type(g, n->inputs[1]);
    if (n->op->id == SX_OPID_matmul) {
        const sx_matmul_attrs *attrs = n->attrs;
        if (attrs->transpose_a || attrs->transpose_b || filter->rank != 2) {
            return false;
        }
    } else if (((const sx_conv2d_attrs *)n->attrs)->bf16_operands) {
        return false;
    }
    return filter->dtype == SX_F32 && f->frozen[n->inputs[1].id] && !f->frozen[n->inputs[0].id];
}

static void mark_order(finding *f)
{
    const sx_graph *g = f->g;
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        bool after = is_product(f, n);
        for (int i = 0; i < n->n_inputs; i++) {
            after = after || f->after[n->inputs[i].id];
        }
        for (int i = 0; i < n->n_outputs; i++) {
            f->after[sx_node_output(n, i).id] = after;
        }
    }
    for (int k = g->n_nodes - 1; k >= 0; k--) {
        const sx_node *n = &g->nodes[k];
        const bool makes = f->before[k] || is_product(f, n);
        for (int i = 0; i < n->n_inputs && makes; i++) {
            f->before[g->values[n->inputs[i].id].node] = true;
        }
    }
}

static void choose_products(finding *f, sx_quantize_points *out)
{
    const sx_graph *g = f->g;
    int all = 0;
    for (int k = 0; k < g->n_nodes; k++) {
        const sx_node *n = &g->nodes[k];
        all += is_product(f, n);
        f->chosen[k] =
            is_product(f, n) && (f->rounds || (f->after[n->inputs[0].id] && f->before[k]));
        out->products += f->chosen[k];
    }
    for (int k = 0; k < g->n_nodes && out->products == 0; k++) {
        f->chosen[k] = is_product(f, &g->nodes[k]);
    }
    out->products = out->products == 0 ? all : out->products;
    out->skipped = all - out->products;
}

/* ---- Points ---- */

/* The node that makes `v`, if nothing else reads it. */
static const sx_node *sole(const finding *f, sx_value v)
{
    return f->uses[v.id] == 1 ? sx_graph_maker(f->g, v) : NULL;
}

/* Whether `n` is a quantized product, or a bias added to one that nothing else reads. */
static bool ends_product(const finding *f, const sx_node *n)
{
    if (n != NULL && n->op->id == SX_OPID_bias_add) {
        n = sole(f, n->inputs[0]);
    }
    return n != NULL && f->chosen[n - f->g->nodes];
}

/* A depthwise convolution, or a bias added to one. */
static bool is_depthwise(const finding *f, const sx_node *n)
{
    if (n != NULL && n->op->id == SX_OPID_bias_add) {
        n = sole(f, n->inputs[0]);
    }
    if (n == NULL || n->op->id != SX_OPID_conv2d) {
        return false;
    }
    const int64_t groups = ((const sx_conv2d_attrs *)n->attrs)->groups;
    const sx_type *filter = sx_graph_type(f->g, n->inputs[1]);
    return groups > 1 && filter->dims[2] == 1 && filter->dims[3] == groups;
}

/* Whether the kernel of a product computes this activation of its sums. That of bfloat16 computes
 * swish slower than a step of its own, but for depthwise convolutions: swish reads what is rounded.
 */
static bool is_act(const finding *f, const sx_node *n)
{
    return n->op->id == SX_OPID_relu || n->op->id == SX_OPID_relu6 ||
           (n->op->id == SX_OPID_swish && (!f->rounds || is_depthwise(f, sole(f, n->inputs[0]))));
}

static const sx_node *without_act(const finding *f, const sx_node *n)
{
    return is_act(f, n) ? sole(f, n->inputs[0]) : n;
}

/* An addition of two values of one shape. */
static bool is_sum(const finding *f, const sx_node *n)
{
    return n != NULL && n->op->id == SX_OPID_add &&
           sx_type_equal(sx_graph_type(f->g, n->inputs[0]), sx_graph_type(f->g, n->inputs[1]));
}

/* Of a sum, the operand of a quantized product with which it can be computed; -1: neither. */
static int product_of_sum(const finding *f, const sx_node *sum)
{
    for (int i = 1; i >= 0; i--) {
        if (ends_product(f, sole(f, sum->inputs[i])) && !f->quantized[sum->inputs[i].id]) {
            return i;
        }
    }
    return -1;
}

/* What `v` is a view of. */
static sx_value behind_views(const sx_graph *g, sx_value v)
{
    while ((sx_graph_maker(g, v)->op->flags & SX_OP_VIEW) != 0) {
        v = sx_graph_maker(g, v)->inputs[0];
    }
    return v;
}

/* Quantizes an image; if that is the maximum of what a quantized product makes, then rather that;
 * and if it is a sum with a quantized product, then what is added to that, too. Numbers of bfloat16
 * are the same in a view. */
static void add_image(finding *f, sx_value v)
{
    const sx_graph *g = f->g;
    v = f->rounds ? behind_views(g, v) : v;
    sx_value pooled = v;
    while (sx_graph_maker(g, pooled)->op->id == SX_OPID_max_pool2d) {
        pooled = sx_graph_maker(g, pooled)->inputs[0];
    }
    for (;;) {
        const sx_node *made = without_act(f, sx_graph_maker(g, pooled));
        const int product = is_sum(f, made) ? product_of_sum(f, made) : -1;
        const bool whole = product >= 0 || ends_product(f, made);
        f->quantized[(whole ? pooled : v).id] = true;
        if (product < 0 || f->quantized[made->inputs[1 - product].id]) {
            return;
        }
        v = pooled = made->inputs[1 - product];
    }
}

/* Rounds what a convolution makes, with bias, sum and activation, so that it lies in 2 bytes until
 * it is read: by a batch norm before the next convolution, say, or a concat. */
static void add_results(finding *f, sx_arena *arena)
{
    const sx_graph *g = f->g;
    bool *goes_on =
        sx_arena_array(arena, g->n_values + 1, bool); /* part of what one kernel makes */
    for (int k = 0; k < g->n_nodes && goes_on != NULL; k++) {
        const sx_node *n = &g->nodes[k];
        const bool follows = n->op->id == SX_OPID_bias_add || is_act(f, n);
        const int part = is_sum(f, n) ? product_of_sum(f, n) : follows ? 0 : -1;
        if (part >= 0) {
            goes_on[n->inputs[part].id] = f->uses[n->inputs[part].id] == 1;
        }
    }
    for (int k = 0; k < g->n_nodes && goes_on != NULL; k++) {
        const sx_value v = g->nodes[k].first_output;
        const sx_node *made = without_act(f, &g->nodes[k]);
        const int side = is_sum(f, made) ? product_of_sum(f, made) : -1;
        const sx_node *product = side >= 0 ? sole(f, made->inputs[side]) : made;
        if (ends_product(f, product) && !goes_on[v.id]) {
            product = product->op->id == SX_OPID_bias_add ? sole(f, product->inputs[0]) : product;
            f->quantized[v.id] = f->quantized[v.id] || product->op->id == SX_OPID_conv2d;
        }
    }
}

static sx_status list_points(const finding *f, sx_arena *arena, sx_quantize_points *out)
{
    const sx_graph *g = f->g;
    out->points = sx_arena_array(arena, g->n_values + 1, sx_quantize_point);
    if (out->points == NULL) {
        return sx_no_memory("quantizing a graph");
    }
    for (int v = 1; v < g->n_values; v++) {
        const sx_value value = {(uint32_t)v};
        const sx_type *t = sx_graph_type(g, value);
        if (!f->quantized[v]) {
            continue;
        }
        sx_quantize_point *p = &out->points[out->n++];
        *p = (sx_quantize_point){
            .value = value, .is_filter = f->frozen[v], .by_matmul = f->by_matmul[v]};
        p->device = f->device[v] != NULL ? f->device[v] : sx_graph_maker(g, value)->device;
        p->channels = p->is_filter ? t->dims[t->rank - 1] : 1;
        p->low = sx_arena_array(arena, p->channels + 1, float);
        p->high = sx_arena_array(arena, p->channels + 1, float);
        if (p->low == NULL || p->high == NULL) {
            return sx_no_memory("quantizing a graph");
        }
    }
    return SX_OK;
}

static sx_status find(const sx_graph *g, bool rounds, sx_arena *arena, sx_quantize_points *out)
{
    *out = (sx_quantize_points){0};
    finding f = {.g = g,
                 .rounds = rounds,
                 .frozen = sx_arena_array(arena, g->n_values + 1, bool),
                 .after = sx_arena_array(arena, g->n_values + 1, bool),
                 .before = sx_arena_array(arena, g->n_nodes + 1, bool),
                 .chosen = sx_arena_array(arena, g->n_nodes + 1, bool),
                 .uses = sx_arena_array(arena, g->n_values + 1, int),
                 .quantized = sx_arena_array(arena, g->n_values + 1, bool),
                 .by_matmul = sx_arena_array(arena, g->n_values + 1, bool),
                 .device = sx_arena_array(arena, g->n_values + 1, const char *)};
    if (f.frozen == NULL || f.after == NULL || f.before == NULL || f.chosen == NULL ||
        f.uses == NULL || f.quantized == NULL || f.by_matmul == NULL || f.device == NULL) {
        return sx_no_memory("quantizing a graph");
    }
    sx_mark_frozen(g, f.frozen);
    sx_rewrite_count_readers(g, f.uses);
    mark_order(&f);
    choose_products(&f, out);
    for (int k = 0; k < g->n_nodes; k++) {
        if (f.chosen[k]) {
            const uint32_t filter = g->nodes[k].inputs[1].id;
            add_image(&f, g->nodes[k].inputs[0]);
            f.quantized[filter] = true;
            for (int i = 0; i < 2 && g->nodes[k].op->id == SX_OPID_matmul; i++) {
                f.by_matmul[behind_views(g, g->nodes[k].inputs[i]).id] = true;
            }
            f.device[filter] = f.device[filter] != NULL ? f.device[filter] : g->nodes[k].device;
        }
    }
    if (rounds) {
        add_results(&f, arena);
    }
    return list_points(&f, arena, out);
}

sx_status sx_quantize_find(const sx_graph *g, sx_arena *arena, sx_quantize_points *out)
{
    return find(g, false, arena, out);
}

/* ---- Ranges ---- */

static sx_status check_point(const sx_graph *g, const sx_quantize_point *p)
{
    for (int64_t k = 0; k < p->channels; k++) {
        if (!isfinite(p->low[k]) || !isfinite(p->high[k]) || p->low[k] > p->high[k]) {
            return sx_error(
                SX_INVALID_ARGUMENT, "\"%s\" cannot be quantized: its values lie in [%g, %g]",
                sx_graph_maker(g, p->value)->name, (double)p->low[k], (double)p->high[k]);
        }
    }
    return SX_OK;
}

/* The node that makes the point's value, as if on the device that is to round it. */
static sx_node maker_at(const sx_rewrite *rw, const sx_quantize_point *p)
{
    sx_node n = *sx_graph_maker(rw->from, p->value);
    n.device = p->device;
    return n;
}

static sx_value add_range(sx_rewrite *rw, const sx_node *n, const sx_quantize_point *p,
                          const char *what, const float *numbers)
{
    float *copy =
        sx_arena_memdup(sx_builder_arena(rw->to), numbers, (size_t)p->channels * sizeof(*numbers));
    const sx_constant_attrs attrs = {
        {p->is_filter ? sx_type_of(SX_F32, p->channels) : sx_scalar_type(SX_F32), copy}};
    if (copy == NULL) {
        sx_builder_fail(rw->to, sx_no_memory("quantizing a graph"));
        return SX_NO_VALUE;
    }
    return sx_rewrite_beside(rw, n, &sx_op_constant, &attrs, NULL, 0, ".%s", what);
}

static sx_value add_quantizer(sx_rewrite *rw, const sx_quantize_point *p)
{
    const sx_node n = maker_at(rw, p);
    float *low = sx_arena_array(sx_builder_arena(rw->to), p->channels + 1, float),
          *high = sx_arena_array(sx_builder_arena(rw->to), p->channels + 1, float);
    if (low == NULL || high == NULL) {
        sx_builder_fail(rw->to, sx_no_memory("quantizing a graph"));
        return SX_NO_VALUE;
    }
    const bool is_signed = p->is_filter || p->low[0] < 0;
    for (int64_t k = 0; k < p->channels; k++) {
        high[k] = is_signed ? fmaxf(fabsf(p->low[k]), fabsf(p->high[k])) : p->high[k];
        low[k] = is_signed ? -high[k] : 0;
    }
    const sx_quantize_dequantize_attrs attrs = {
        .num_bits = 8,
        .axis = p->is_filter ? sx_graph_type(rw->from, p->value)->rank - 1 : -1,
        .signed_input = is_signed,
        .narrow_range = p->is_filter,
        .range_given = true};
    const sx_value inputs[] = {rw->map[p->value.id], add_range(rw, &n, p, "low", low),
                               add_range(rw, &n, p, "high", high)};
    return sx_rewrite_beside(rw, &n, &sx_op_quantize_dequantize, &attrs, inputs, 3, ".quantized");
}

/* ---- bfloat16 ---- */

static sx_value add_rounding(sx_rewrite *rw, const sx_quantize_point *p)
{
    const sx_node n = maker_at(rw, p);
    return sx_rewrite_beside(rw, &n, &sx_op_round_bf16, NULL, &rw->map[p->value.id], 1, ".rounded");
}

/* Whether what the node makes is rounded since its operands are: a view, maxima, a concat. */
static bool stays_rounded(const sx_node *n, const bool *rounded)
{
    const bool one = (n->op->flags & SX_OP_VIEW) != 0 || n->op->id == SX_OPID_max_pool2d;
    bool all = one || n->op->id == SX_OPID_concat;
    for (int i = 0; i < (one ? 1 : n->n_inputs); i++) {
        all = all && rounded[n->inputs[i].id];
    }
    return all;
}

/* A convolution whose operands are rounded is marked with that. */
static const void *marked_attrs(const sx_rewrite *rw, const sx_node *n, const bool *rounded)
{
    if (n->op->id != SX_OPID_conv2d || !rounded[n->inputs[1].id] || !rounded[n->inputs[0].id]) {
        return NULL;
    }
    sx_conv2d_attrs *attrs = sx_arena_memdup(sx_builder_arena(rw->to), n->attrs, sizeof(*attrs));
    if (attrs != NULL) { /* if out of memory, the builder fails later */
        attrs->bf16_operands = true;
    }
    return attrs;
}

/* ---- Graphs ---- */

/* Outputs show what a value is without its quantizer. */
static void write_results(sx_rewrite *rw, const sx_value *plain)
{
    for (int i = 0; i < rw->from->n_results; i++) {
        const sx_result *r = &rw->from->results[i];
        const sx_value v =
            sx_value_is(plain[r->value.id]) ? plain[r->value.id] : rw->map[r->value.id];
        if (r->arg == SX_RESULT_IS_OUTPUT) {
            sx_output(rw->to, r->name, v);
        } else {
            sx_assign(rw->to, r->name, v);
        }
    }
}

static void observe_points(sx_rewrite *rw, const sx_quantize_points *points)
{
    for (int i = 0; i < points->n; i++) {
        const char *name = sx_arena_printf(sx_builder_arena(rw->to), "_sextant/point%d", i);
        if (name == NULL) {
            sx_builder_fail(rw->to, sx_no_memory("quantizing a graph"));
            return;
        }
        sx_output(rw->to, name, rw->map[points->points[i].value.id]);
    }
}

/* What a copy of the graph has more: outputs, quantizers, or roundings. */
typedef enum change { OBSERVED, QUANTIZED, ROUNDED } change;

static sx_status write_graph(const sx_graph *g, const sx_quantize_points *points, change made,
                             sx_graph **out)
{
    sx_rewrite rw = {.from = g, .map = sx_alloc((size_t)g->n_values, sizeof(sx_value))};
    sx_value *plain = sx_alloc((size_t)g->n_values, sizeof(sx_value));
    bool *rounded = sx_alloc((size_t)g->n_values, sizeof(bool));
    sx_status status = rw.map == NULL || plain == NULL || rounded == NULL
                           ? sx_no_memory("quantizing a graph")
                           : SX_OK;
    status = status == SX_OK ? sx_builder_create_like(g, &rw.to) : status;
    if (status != SX_OK) {
        goto done;
    }
    for (int k = 0, arg = 0, next = 0; k < g->n_nodes && !sx_builder_failed(rw.to); k++) {
        const sx_node *n = &g->nodes[k];
        if (arg < g->n_args && g->args[arg].value.id == n->first_output.id) {
            sx_builder_at(rw.to, n->file, n->line);
            rw.map[n->first_output.id] = sx_build_arg_on(
                rw.to, &g->args[arg++], *sx_graph_type(g, n->first_output), n->device);
        } else {
            sx_rewrite_keep(&rw, n, made == ROUNDED ? marked_attrs(&rw, n, rounded) : NULL);
            if (n->n_outputs > 0) {
                rounded[n->first_output.id] = made == ROUNDED && stays_rounded(n, rounded);
            }
        }
        for (; made != OBSERVED && next < points->n &&
               (int)g->values[points->points[next].value.id].node == k;
             next++) {
            const sx_quantize_point *p = &points->points[next];
            const uint32_t v = p->value.id;
            plain[v] = rw.map[v];
            if (made == QUANTIZED) {
                rw.map[v] = add_quantizer(&rw, p);
            } else if (!rounded[v] || p->by_matmul) {
                rw.map[v] = add_rounding(&rw, p);
            }
            rounded[v] = made == ROUNDED;
        }
    }
    write_results(&rw, plain);
    if (made == OBSERVED) {
        observe_points(&rw, points);
    }
    status = sx_builder_finish(rw.to, out);
done:
    sx_builder_destroy(rw.to);
    sx_free(rw.map);
    sx_free(plain);
    sx_free(rounded);
    return status;
}

sx_status sx_quantize_observe(const sx_graph *g, const sx_quantize_points *points, sx_graph **out)
{
    return write_graph(g, points, OBSERVED, out);
}

sx_status sx_pass_quantize(const sx_graph *g, const sx_quantize_points *points, sx_graph **out)
{
    for (int i = 0; i < points->n; i++) {
        SX_TRY(check_point(g, &points->points[i]));
    }
    return write_graph(g, points, QUANTIZED, out);
}

sx_status sx_pass_round_products(const sx_graph *g, sx_graph **out)
{
    sx_quantize_points points;
    sx_arena arena;
    sx_arena_init(&arena, 0);
    sx_status status = find(g, true, &arena, &points);
    status = status == SX_OK ? write_graph(g, &points, ROUNDED, out) : status;
    sx_arena_deinit(&arena);
    return status;
}
