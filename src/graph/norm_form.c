/* See norm_form.h. */
#include "graph/norm_form.h"

#include <string.h>

#include "graph/ops/common.h"

static bool same(sx_value a, sx_value b)
{
    return a.id == b.id;
}

/* The node that makes v, which becomes a part; NULL if it is another operator's. */
static const sx_node *part(sx_norm_form *p, sx_value v, int op)
{
    const sx_node *n = sx_graph_maker(p->graph, v);
    if (n->op->id != op || p->n_nodes == SX_NORM_NODES) {
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

/* v is that number everywhere. */
static bool is_filled(sx_norm_form *p, sx_value v, float number)
{
    const sx_norm_form before = *p;
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

/* The same dimensions, but for ones in front. */
static bool align(const sx_type *a, const sx_type *b)
{
    bool equal = true;
    for (int i = 1; i <= a->rank || i <= b->rank; i++) {
        equal = equal && (i <= a->rank ? a->dims[a->rank - i] : 1) ==
                             (i <= b->rank ? b->dims[b->rank - i] : 1);
    }
    return equal;
}

/* What v is through parts that leave it the same beside x. */
static sx_value behind_views(sx_norm_form *p, sx_value v)
{
    for (;;) {
        const sx_node *n = sx_graph_maker(p->graph, v);
        const sx_type *y = sx_graph_type(p->graph, v);
        const bool view = (n->op->flags & SX_OP_VIEW) != 0;
        if (!view || sx_graph_type(p->graph, n->inputs[0])->dtype != y->dtype ||
            !align(y, sx_graph_type(p->graph, n->inputs[0])) || part(p, v, n->op->id) == NULL) {
            return v;
        }
        p->stops_gradient = p->stops_gradient || n->op->id == SX_OPID_stop_gradient;
        v = n->inputs[0];
    }
}

static bool same_axes(const sx_ints *a, const sx_ints *b)
{
    return a->n == b->n && memcmp(a->v, b->v, (size_t)a->n * sizeof(a->v[0])) == 0;
}

/* v is the number of x's elements along the axes: a constant, size, or a sum of ones. */
static bool is_count(sx_norm_form *p, sx_value v, const sx_type *x, const sx_ints *axes)
{
    const sx_node *n = sx_graph_maker(p->graph, v);
    double count;
    float elems = 1;
    if (n->op->id == SX_OPID_size) {
        return same_axes(&((const sx_axes_attrs *)n->attrs)->axes, axes) &&
               sx_type_equal(sx_graph_type(p->graph, n->inputs[0]), x);
    }
    if (n->op->id == SX_OPID_reduce_sum) {
        return same_axes(&((const sx_reduce_attrs *)n->attrs)->axes, axes) &&
               part(p, v, SX_OPID_reduce_sum) != NULL && is_filled(p, n->inputs[0], 1) &&
               sx_type_equal(sx_graph_type(p->graph, n->inputs[0]), x);
    }
    for (int i = 0; i < axes->n; i++) {
        elems *= (float)x->dims[axes->v[i]];
    }
    return elems > 0 && read_scalar(p->graph, v, &count) && (float)count == elems;
}

/* v is the mean of *out_x, over the same axes as other means, and stands beside x as its sums with
 * the axes kept do; *out_mean: the division. */
static bool is_mean(sx_norm_form *p, sx_value v, sx_value *out_x, sx_value *out_mean)
{
    const sx_node *div = part(p, behind_views(p, v), SX_OPID_div);
    const sx_node *sum = div != NULL ? part(p, div->inputs[0], SX_OPID_reduce_sum) : NULL;
    if (sum == NULL) {
        return false;
    }
    const sx_ints *axes = &((const sx_reduce_attrs *)sum->attrs)->axes;
    const sx_type *x = sx_graph_type(p->graph, sum->inputs[0]);
    const sx_type kept = sx_reduced_type(x, axes, true);
    const bool agrees = p->axes == NULL || same_axes(p->axes, axes);
    *out_x = sum->inputs[0];
    *out_mean = div->first_output;
    p->axes = axes;
    return agrees && align(sx_graph_type(p->graph, *out_mean), &kept) &&
           is_count(p, div->inputs[1], x, axes);
}

/* x, and its mean or none, are the match's from now on; false if others are. */
static bool agree(sx_norm_form *p, sx_value x, sx_value mean)
{
    const bool agrees = !sx_value_is(p->x) || (same(p->x, x) && same(p->mean, mean));
    p->x = x;
    p->mean = mean;
    return agrees;
}

/* v is x - mean. */
static bool is_centered(sx_norm_form *p, sx_value v)
{
    const sx_norm_form before = *p;
    const sx_node *sub = part(p, v, SX_OPID_sub);
    sx_value x, mean;
    if (sub != NULL && is_mean(p, sub->inputs[1], &x, &mean) && same(x, sub->inputs[0]) &&
        agree(p, x, mean)) {
        return true;
    }
    *p = before;
    return false;
}

/* v is the square of x - mean, or of x. */
static bool is_square_of_x(sx_norm_form *p, sx_value v)
{
    const sx_norm_form before = *p;
    const sx_node *n = part(p, v, SX_OPID_squared_difference);
    for (int i = 0; i < 2 && n != NULL; i++) {
        sx_value x, mean;
        if (is_mean(p, n->inputs[i], &x, &mean) && same(x, n->inputs[1 - i])) {
            return agree(p, x, mean);
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

/* The same; its mean may stop gradients, since what passes through it there is 0. */
static bool is_square(sx_norm_form *p, sx_value v)
{
    const bool stops = p->stops_gradient, square = is_square_of_x(p, v);
    p->stops_gradient = stops;
    return square;
}

/* v is rsqrt, or sqrt, of variance + epsilon. */
static bool is_deviation(sx_norm_form *p, sx_value v, int op)
{
    const sx_node *root = part(p, v, op);
    const sx_node *add = root != NULL ? part(p, root->inputs[0], SX_OPID_add) : NULL;
    sx_value square;
    if (add == NULL) {
        return false;
    }
    const int at = read_scalar(p->graph, add->inputs[1], &p->epsilon) ? 0 : 1;
    return (at == 0 || read_scalar(p->graph, add->inputs[0], &p->epsilon)) &&
           is_mean(p, add->inputs[at], &square, &p->variance) && is_square(p, square);
}

/* v is F: s, or s gamma. */
static bool is_factor(sx_norm_form *p, sx_value v)
{
    const sx_norm_form before = *p;
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
static bool is_numerator(sx_norm_form *p, sx_value v)
{
    return sx_value_is(p->mean) ? is_centered(p, v) : same(p->x, v);
}

/* v is (x - mean) F or (x - mean) / sqrt(...), without beta. */
static bool is_normalized(sx_norm_form *p, sx_value v)
{
    const sx_norm_form before = *p;
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

/* What v is through parts that are views, or that multiply by ones and add zeros, as Keras 2's
 * fused form does before gamma and beta. */
static sx_value behind_copies(sx_norm_form *p, sx_value v)
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
static bool is_scaled(sx_norm_form *p, sx_value v)
{
    const sx_norm_form before = *p;
    if (is_normalized(p, v)) {
        return true;
    }
    for (int i = 0; i < 2; i++) {
        *p = before;
        const sx_node *mul = part(p, v, SX_OPID_mul);
        if (mul != NULL && is_normalized(p, behind_copies(p, mul->inputs[i])) &&
            !sx_value_is(p->gamma)) {
            p->gamma = mul->inputs[1 - i];
            p->gamma_type = sx_graph_type(p->graph, v);
            return true;
        }
    }
    *p = before;
    return false;
}

/* v = mean F */
static bool is_mean_scaled(sx_norm_form *p, sx_value v, sx_value factor)
{
    const sx_node *mul = part(p, v, SX_OPID_mul);
    return mul != NULL &&
           ((same(mul->inputs[0], factor) && same(behind_views(p, mul->inputs[1]), p->mean)) ||
            (same(mul->inputs[1], factor) && same(behind_views(p, mul->inputs[0]), p->mean)));
}

/* v = -mean F */
static bool is_minus_mean(sx_norm_form *p, sx_value v, sx_value factor)
{
    const sx_norm_form before = *p;
    const sx_node *mul = part(p, v, SX_OPID_mul);
    for (int i = 0; i < 2 && mul != NULL; i++) {
        const sx_node *neg = part(p, mul->inputs[i], SX_OPID_neg);
        if (neg != NULL && same(behind_views(p, neg->inputs[0]), p->mean) &&
            same(mul->inputs[1 - i], factor)) {
            return true;
        }
    }
    *p = before;
    return false;
}

/* v = beta - mean F */
static bool is_offset(sx_norm_form *p, sx_value v, sx_value factor)
{
    const sx_norm_form before = *p;
    const sx_node *n = part(p, v, SX_OPID_sub);
    if (is_minus_mean(p, v, factor)) {
        return true;
    }
    p->beta_type = sx_graph_type(p->graph, p->x);
    if (n != NULL && is_mean_scaled(p, n->inputs[1], factor)) {
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
static bool is_sum(sx_norm_form *p, sx_value v)
{
    const sx_norm_form before = *p;
    for (int i = 0; i < 4; i++) {
        *p = before;
        const sx_node *add = part(p, v, SX_OPID_add);
        const sx_node *mul = add != NULL ? part(p, add->inputs[i / 2], SX_OPID_mul) : NULL;
        if (mul != NULL && is_factor(p, mul->inputs[i % 2]) && sx_value_is(p->mean) &&
            same(mul->inputs[1 - i % 2], p->x) &&
            is_offset(p, add->inputs[1 - i / 2], mul->inputs[i % 2])) {
            return true;
        }
    }
    *p = before;
    return false;
}

static bool is_norm(sx_norm_form *p, sx_value v)
{
    const sx_norm_form before = *p;
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

bool sx_find_norm(const sx_graph *g, sx_value y, sx_norm_form *out)
{
    const sx_node *root = sx_graph_maker(g, y);
    *out = (sx_norm_form){.graph = g,
                          .x = SX_NO_VALUE,
                          .mean = SX_NO_VALUE,
                          .variance = SX_NO_VALUE,
                          .gamma = SX_NO_VALUE,
                          .beta = SX_NO_VALUE};
    return (root->op->flags & SX_OP_ELEMENTWISE) != 0 && root->n_inputs == 2 && is_norm(out, y);
}
