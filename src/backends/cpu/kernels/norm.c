/* Layer, group, instance and RMS norm as Keras and others write them, in one pass:
 *
 *   y = (x - mean) s gamma + beta     s = 1 / sqrt(variance + epsilon)
 *   y = x s gamma                     s = 1 / sqrt(mean of squares + epsilon)
 *
 * where gamma and beta may be absent. The forms, F being s or s gamma:
 *
 *   x F + (beta - mean F)        Keras, tf.nn.batch_normalization
 *   ((x - mean) s) gamma + beta  by hand; (x - mean) / sqrt(variance + epsilon), too
 *
 * A match reads its own values alone: in training the gradient reads some, too, and the parts stay.
 */
#include "backends/cpu/kernel.h"
#include "base/checked.h"
#include "graph/ops/attrs.h"

/* The parts of a match. */
typedef struct norm_parts {
    const sx_graph *graph;
    const sx_node *nodes[SX_CPU_MAX_NODES]; /* root first */
    int n_nodes;
    sx_value x, mean, gamma, beta;         /* SX_NO_VALUE: none */
    const sx_type *gamma_type, *beta_type; /* of what they multiply and are added to */
    const sx_reduce_attrs *axes;
    double epsilon;
} norm_parts;

/* x as [outer, rows, cols], each of `outer` on its own: a row of `cols`, or over the rows groups of
 * `inner` columns. */
typedef struct norm_shape {
    int64_t outer, rows, cols, inner; /* inner 0: a row */
} norm_shape;

typedef struct norm_data {
    norm_shape shape;
    sx_vec_norm norm; /* without gamma and beta: */
    int gamma, beta;  /* operands, 0 = none */
    void (*rows)(const sx_vec_norm *norm, const float *x, int64_t rows, int64_t cols, float *y);
    void (*groups)(const sx_vec_norm *norm, const float *x, int64_t rows, int64_t cols,
                   int64_t inner, float *scratch, float *y);
} norm_data;

/* ---- The forms ---- */

static bool same(sx_value a, sx_value b)
{
    return a.id == b.id;
}

static bool known(sx_value v)
{
    return v.id != SX_NO_VALUE.id;
}

/* The node that makes v, which becomes a part; NULL if it is another operator's. */
static const sx_node *part(norm_parts *p, sx_value v, int op)
{
    const sx_node *n = sx_graph_maker(p->graph, v);
    if (n->op->id != op || p->n_nodes == SX_CPU_MAX_NODES) {
        return NULL;
    }
    for (int i = 0; i < p->n_nodes; i++) {
        if (p->nodes[i] == n) {
            return n;
        }
    }
    return p->nodes[p->n_nodes++] = n;
}

static bool read_scalar(const sx_graph *g, sx_value v, double *out)
{
    const sx_node *n = sx_graph_maker(g, v);
    if (n->op->id != SX_OPID_constant) {
        return false;
    }
    const sx_tensor *value = &((const sx_constant_attrs *)n->attrs)->value;
    if (value->type.dtype != SX_F32 || sx_type_elems(&value->type) != 1) {
        return false;
    }
    *out = (double)*(const float *)value->data;
    return true;
}

/* v is the mean of *out_x, over the same axes as other means. */
static bool is_mean(norm_parts *p, sx_value v, sx_value *out_x)
{
    const sx_node *div = part(p, v, SX_OPID_div);
    const sx_node *sum = div != NULL ? part(p, div->inputs[0], SX_OPID_reduce_sum) : NULL;
    double count;
    if (sum == NULL || !read_scalar(p->graph, div->inputs[1], &count)) {
        return false;
    }
    const sx_reduce_attrs *a = sum->attrs, *b = p->axes != NULL ? p->axes : a;
    const sx_type *x = sx_graph_type(p->graph, sum->inputs[0]);
    float elems = 1;
    for (int i = 0; i < a->axes.n; i++) {
        elems *= (float)x->dims[a->axes.v[i]];
    }
    *out_x = sum->inputs[0];
    p->axes = a;
    return a->keep_dims && (float)count == elems && a->axes.n == b->axes.n &&
           memcmp(a->axes.v, b->axes.v, (size_t)a->axes.n * sizeof(a->axes.v[0])) == 0;
}

/* x, and its mean or none, are the match's from now on; false if others are. */
static bool agree(norm_parts *p, sx_value x, sx_value mean)
{
    const bool agrees = !known(p->x) || (same(p->x, x) && same(p->mean, mean));
    p->x = x;
    p->mean = mean;
    return agrees;
}

/* v is x - mean. */
static bool is_centered(norm_parts *p, sx_value v)
{
    const norm_parts before = *p;
    const sx_node *sub = part(p, v, SX_OPID_sub);
    sx_value x;
    if (sub != NULL && is_mean(p, sub->inputs[1], &x) && same(x, sub->inputs[0]) &&
        agree(p, x, sub->inputs[1])) {
        return true;
    }
    *p = before;
    return false;
}

/* v is the square of x - mean, or of x. */
static bool is_square(norm_parts *p, sx_value v)
{
    const norm_parts before = *p;
    const sx_node *n = part(p, v, SX_OPID_squared_difference);
    for (int i = 0; i < 2 && n != NULL; i++) {
        sx_value x;
        if (is_mean(p, n->inputs[i], &x) && same(x, n->inputs[1 - i])) {
            return agree(p, x, n->inputs[i]);
        }
        *p = before;
        n = part(p, v, SX_OPID_squared_difference);
    }
    if ((n = part(p, v, SX_OPID_square)) == NULL &&
        ((n = part(p, v, SX_OPID_mul)) == NULL || !same(n->inputs[0], n->inputs[1]))) {
        return false;
    }
    return is_centered(p, n->inputs[0]) || agree(p, n->inputs[0], SX_NO_VALUE);
}

/* v is rsqrt, or sqrt, of variance + epsilon. */
static bool is_deviation(norm_parts *p, sx_value v, int op)
{
    const sx_node *root = part(p, v, op);
    const sx_node *add = root != NULL ? part(p, root->inputs[0], SX_OPID_add) : NULL;
    sx_value square;
    if (add == NULL) {
        return false;
    }
    const int at = read_scalar(p->graph, add->inputs[1], &p->epsilon) ? 0 : 1;
    return (at == 0 || read_scalar(p->graph, add->inputs[0], &p->epsilon)) &&
           is_mean(p, add->inputs[at], &square) && is_square(p, square);
}

/* v is F: s, or s gamma. */
static bool is_factor(norm_parts *p, sx_value v)
{
    const norm_parts before = *p;
    if (is_deviation(p, v, SX_OPID_rsqrt)) {
        return true;
    }
    for (int i = 0; i < 2; i++) {
        *p = before;
        const sx_node *mul = part(p, v, SX_OPID_mul);
        if (mul != NULL && is_deviation(p, mul->inputs[i], SX_OPID_rsqrt)) {
            p->gamma = mul->inputs[1 - i];
            p->gamma_type = sx_graph_type(p->graph, p->x);
            return true;
        }
    }
    *p = before;
    return false;
}

/* v is what F multiplies: x, less its mean if it has one. */
static bool is_numerator(norm_parts *p, sx_value v)
{
    return known(p->mean) ? is_centered(p, v) : same(p->x, v);
}

/* v is (x - mean) F or (x - mean) / sqrt(...), without beta. */
static bool is_normalized(norm_parts *p, sx_value v)
{
    const norm_parts before = *p;
    const sx_node *n = part(p, v, SX_OPID_div);
    if (n != NULL) {
        return is_deviation(p, n->inputs[1], SX_OPID_sqrt) && is_numerator(p, n->inputs[0]);
    }
    for (int i = 0; i < 2; i++) {
        *p = before;
        n = part(p, v, SX_OPID_mul);
        if (n != NULL && is_factor(p, n->inputs[i]) && is_numerator(p, n->inputs[1 - i])) {
            return true;
        }
    }
    *p = before;
    return false;
}

/* v is that number everywhere. */
static bool is_filled(norm_parts *p, sx_value v, float number)
{
    const norm_parts before = *p;
    const sx_node *n;
    while ((n = part(p, v, SX_OPID_reshape)) != NULL ||
           (n = part(p, v, SX_OPID_broadcast_to)) != NULL) {
        v = n->inputs[0];
    }
    n = sx_graph_maker(p->graph, v);
    bool filled = n->op->id == SX_OPID_constant && sx_graph_type(p->graph, v)->dtype == SX_F32;
    if (filled) {
        const sx_tensor *value = &((const sx_constant_attrs *)n->attrs)->value;
        const int64_t elems = sx_type_elems(&value->type);
        for (int64_t i = 0; i < elems && filled; i++) {
            filled = ((const float *)value->data)[i] == number;
        }
    }
    if (!filled) {
        *p = before;
    }
    return filled;
}

/* What v is through parts that are views, or that multiply by ones and add zeros, as Keras 2's
 * fused form does before gamma and beta. */
static sx_value behind_copies(norm_parts *p, sx_value v)
{
    for (;;) {
        const sx_node *n = sx_graph_maker(p->graph, v);
        const bool sum = n->op->id == SX_OPID_add, view = n->op->id == SX_OPID_reshape;
        if (!(view ||
              ((sum || n->op->id == SX_OPID_mul) && is_filled(p, n->inputs[1], sum ? 0 : 1))) ||
            part(p, v, n->op->id) == NULL) {
            return v;
        }
        v = n->inputs[0];
    }
}

/* v is the same, times gamma or not. */
static bool is_scaled(norm_parts *p, sx_value v)
{
    const norm_parts before = *p;
    if (is_normalized(p, v)) {
        return true;
    }
    for (int i = 0; i < 2; i++) {
        *p = before;
        const sx_node *mul = part(p, v, SX_OPID_mul);
        if (mul != NULL && is_normalized(p, behind_copies(p, mul->inputs[i])) && !known(p->gamma)) {
            p->gamma = mul->inputs[1 - i];
            p->gamma_type = sx_graph_type(p->graph, v);
            return true;
        }
    }
    *p = before;
    return false;
}

/* v = a b */
static bool is_product(norm_parts *p, sx_value v, sx_value a, sx_value b)
{
    const sx_node *mul = part(p, v, SX_OPID_mul);
    return mul != NULL && ((same(mul->inputs[0], a) && same(mul->inputs[1], b)) ||
                           (same(mul->inputs[0], b) && same(mul->inputs[1], a)));
}

/* v = -mean F */
static bool is_minus_mean(norm_parts *p, sx_value v, sx_value factor)
{
    const norm_parts before = *p;
    const sx_node *mul = part(p, v, SX_OPID_mul);
    for (int i = 0; i < 2 && mul != NULL; i++) {
        const sx_node *neg = part(p, mul->inputs[i], SX_OPID_neg);
        if (neg != NULL && same(neg->inputs[0], p->mean) && same(mul->inputs[1 - i], factor)) {
            return true;
        }
    }
    *p = before;
    return false;
}

/* v = beta - mean F */
static bool is_offset(norm_parts *p, sx_value v, sx_value factor)
{
    const norm_parts before = *p;
    const sx_node *n = part(p, v, SX_OPID_sub);
    if (is_minus_mean(p, v, factor)) {
        return true;
    }
    p->beta_type = sx_graph_type(p->graph, p->x);
    if (n != NULL && is_product(p, n->inputs[1], p->mean, factor)) {
        p->beta = n->inputs[0];
        return true;
    }
    n = part(p, v, SX_OPID_add);
    for (int i = 0; i < 2 && n != NULL; i++) {
        if (is_minus_mean(p, n->inputs[i], factor)) {
            p->beta = n->inputs[1 - i];
            return true;
        }
    }
    *p = before;
    return false;
}

/* v = x F + (beta - mean F) */
static bool is_sum(norm_parts *p, sx_value v)
{
    const norm_parts before = *p;
    for (int i = 0; i < 4; i++) {
        *p = before;
        const sx_node *add = part(p, v, SX_OPID_add);
        const sx_node *mul = add != NULL ? part(p, add->inputs[i / 2], SX_OPID_mul) : NULL;
        if (mul != NULL && is_factor(p, mul->inputs[i % 2]) && known(p->mean) &&
            same(mul->inputs[1 - i % 2], p->x) &&
            is_offset(p, add->inputs[1 - i / 2], mul->inputs[i % 2])) {
            return true;
        }
    }
    *p = before;
    return false;
}

static bool is_norm(norm_parts *p, sx_value v)
{
    const norm_parts before = *p;
    if (is_sum(p, v) || is_scaled(p, v)) {
        return true;
    }
    for (int i = 0; i < 2; i++) {
        *p = before;
        const sx_node *add = part(p, v, SX_OPID_add);
        if (add != NULL && is_scaled(p, behind_copies(p, add->inputs[i]))) {
            p->beta = add->inputs[1 - i];
            p->beta_type = sx_graph_type(p->graph, v);
            return true;
        }
    }
    return false;
}

/* ---- Matching ---- */

static bool find_shape(const sx_type *x, const sx_reduce_attrs *a, norm_shape *out)
{
    int64_t size[4];
    if (!sx_cpu_axis_runs(x, &a->axes, 4, size)) {
        return false;
    }
    *out = size[2] == 1 && size[3] == 1
               ? (norm_shape){size[0], 1, size[1], 0}
               : (norm_shape){size[0], size[1], size[2] * size[3], size[3]};
    return true;
}

/* v, if there is one, repeats in `whole` each `cols` elements. */
static bool repeats(const sx_graph *g, sx_value v, const sx_type *whole, int64_t cols)
{
    if (!known(v)) {
        return true;
    }
    const sx_type *t = sx_graph_type(g, v);
    int64_t size = 1;
    for (int i = 1; size < cols; i++) {
        if (i > t->rank || i > whole->rank ||
            t->dims[t->rank - i] != whole->dims[whole->rank - i]) {
            return false;
        }
        size *= t->dims[t->rank - i];
    }
    return t->dtype == SX_F32 && size == cols && sx_type_elems(t) == cols;
}

static bool find_parts(const sx_graph *g, sx_value y, norm_parts *out, norm_shape *shape)
{
    *out = (norm_parts){.graph = g,
                        .x = SX_NO_VALUE,
                        .mean = SX_NO_VALUE,
                        .gamma = SX_NO_VALUE,
                        .beta = SX_NO_VALUE};
    if (!is_norm(out, y)) {
        return false;
    }
    const sx_type *x = sx_graph_type(g, out->x);
    return x->dtype == SX_F32 && sx_type_elems(x) > 0 &&
           sx_type_elems(x) == sx_type_elems(sx_graph_type(g, y)) &&
           find_shape(x, out->axes, shape) && (shape->inner == 0 || known(out->mean)) &&
           repeats(g, out->gamma, out->gamma_type, shape->cols) &&
           repeats(g, out->beta, out->beta_type, shape->cols);
}

static bool match_norm(sx_cpu_match *m)
{
    const sx_graph *g = m->graph;
    norm_parts p;
    norm_shape shape;
    if (!find_parts(g, m->out[0], &p, &shape)) {
        return false;
    }
    for (int i = 1; i < p.n_nodes; i++) {
        const sx_value v = p.nodes[i]->first_output;
        const int k = (int)(p.nodes[i] - g->nodes);
        int reads = 0;
        for (int j = 0; j < p.n_nodes; j++) {
            for (int in = 0; in < p.nodes[j]->n_inputs; in++) {
                reads += same(p.nodes[j]->inputs[in], v) ? 1 : 0;
            }
        }
        if (m->claimed[k] || m->sharded[k] != m->sharded[m->root] || reads != m->uses[v.id]) {
            return false;
        }
        sx_cpu_claim(m, k);
    }
    const sx_value in[] = {p.x, p.gamma, p.beta};
    m->n_in = 0;
    for (int i = 0; i < 3; i++) {
        if (known(in[i])) {
            m->in[m->n_in++] = in[i];
        }
    }
    m->in_place = 1;
    return true;
}

/* ---- Running ---- */

/* A range is of elements: of the rows, or groups, that begin in it. */
static void run_norm(const sx_cpu_step *step, const sx_cpu_call *call)
{
    const norm_data *d = step->data;
    const norm_shape *s = &d->shape;
    sx_vec_norm norm = d->norm;
    norm.gamma = d->gamma > 0 ? sx_cpu_in(step, call, d->gamma) : NULL;
    norm.beta = d->beta > 0 ? sx_cpu_in(step, call, d->beta) : NULL;
    const float *x = sx_cpu_in(step, call, 0);
    float *y = sx_cpu_out(step, call, 0);
    if (s->inner == 0) {
        const int64_t first = (call->begin + s->cols - 1) / s->cols;
        const int64_t last = (call->end + s->cols - 1) / s->cols;
        d->rows(&norm, x + first * s->cols, last - first, s->cols, y + first * s->cols);
        return;
    }
    for (int64_t i = 0; i < s->outer; i++, x += s->rows * s->cols, y += s->rows * s->cols) {
        d->groups(&norm, x, s->rows, s->cols, s->inner, sx_cpu_at(call, step->scratch), y);
    }
}

static sx_status prepare_norm(const sx_cpu_site *site, sx_cpu_step *step)
{
    norm_data *d = sx_cpu_new(site, norm_data);
    norm_parts p;
    if (d == NULL) {
        return sx_cpu_no_memory();
    }
    *d = (norm_data){.rows = site->vec->norm_rows, .groups = site->vec->norm_groups};
    if (!find_parts(site->graph, site->nodes[0]->first_output, &p, &d->shape)) {
        return sx_error(SX_INTERNAL, "a norm has other parts than it was matched with");
    }
    d->norm = (sx_vec_norm){.epsilon = (float)p.epsilon, .centered = known(p.mean)};
    d->gamma = known(p.gamma) ? 1 : 0;
    d->beta = known(p.beta) ? 1 + d->gamma : 0;
    step->run = run_norm;
    step->data = d;
    if (d->shape.inner == 0) {
        step->range = sx_type_elems(&site->out[0]);
    } else {
        step->scratch_bytes = 2 * d->shape.cols * (int64_t)sizeof(float);
    }
    return SX_OK;
}

#define ROW(op_name)                                                             \
    const sx_cpu_kernel sx_cpu_kernel_norm_##op_name = {.name = "norm",          \
                                                        .op = SX_OPID_##op_name, \
                                                        .match = match_norm,     \
                                                        .prepare = prepare_norm, \
                                                        .early = true};
ROW(add)
ROW(mul)
ROW(div)
