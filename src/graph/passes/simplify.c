/* Removes nodes whose result follows from types alone: copies of their input (identity, a cast or
 * reshape to the same type, a transpose that changes nothing), counts of elements and gathered
 * dimensions once they are known; adds a row where zeros with that row are added; pads in the
 * convolution and its gradients; multiplies where a square or a cube is asked for, and not by 1.
 * One row per operator.
 */
#include <math.h>
#include <string.h>

#include "graph/ops/attrs.h"
#include "graph/ops/conv_geometry.h"
#include "graph/passes/passes.h"
#include "graph/passes/rewrite.h"

/* Sets the node's output in the map; false if the node must stay. */
typedef bool simplify_fn(sx_rewrite *rw, const sx_node *n);

static bool copy_input(sx_rewrite *rw, const sx_node *n)
{
    rw->map[n->first_output.id] = rw->map[n->inputs[0].id];
    return true;
}

static bool copy_if_same_type(sx_rewrite *rw, const sx_node *n)
{
    return sx_type_equal(sx_graph_type(rw->from, n->inputs[0]),
                         sx_graph_type(rw->from, n->first_output)) &&
           copy_input(rw, n);
}

/* A transpose that leaves all dimensions where they are, or takes back the one before it. */
static bool transpose_back(sx_rewrite *rw, const sx_node *n)
{
    const sx_ints *perm = &((const sx_transpose_attrs *)n->attrs)->perm;
    const sx_node *before = sx_graph_maker(rw->from, n->inputs[0]);
    const sx_ints *first =
        before->op == &sx_op_transpose ? &((const sx_transpose_attrs *)before->attrs)->perm : NULL;
    bool stays = true, returns = first != NULL;
    for (int i = 0; i < perm->n; i++) {
        stays = stays && perm->v[i] == i;
        returns = returns && first->v[perm->v[i]] == i;
    }
    if (stays || returns) {
        rw->map[n->first_output.id] = rw->map[(stays ? n : before)->inputs[0].id];
    }
    return stays || returns;
}

static bool count_elements(sx_rewrite *rw, const sx_node *n)
{
    const sx_axes_attrs *attrs = n->attrs;
    const sx_type *x = sx_graph_type(rw->from, n->inputs[0]),
                  *y = sx_graph_type(rw->from, n->first_output);
    double count = 1;
    for (int i = 0; i < attrs->axes.n; i++) {
        int64_t dim = x->dims[attrs->axes.v[i]];
        if (dim < 0) {
            return false;
        }
        count *= (double)dim;
    }
    float count_f32 = (float)count;
    void *data = y->dtype == SX_F64 ? (void *)&count : &count_f32;
    sx_rewrite_constant(rw, n, 0, &(sx_tensor){*y, data});
    return true;
}

/* Dimensions of a value, gathered from its shape by constant numbers, once they are known. */
static bool gather_dims(sx_rewrite *rw, const sx_node *n)
{
    const sx_node *shape = sx_graph_maker(rw->from, n->inputs[0]);
    const sx_node *which = sx_graph_maker(rw->from, n->inputs[1]);
    const sx_type *y = sx_graph_type(rw->from, n->first_output);
    int64_t wide[SX_MAX_RANK];
    int32_t narrow[SX_MAX_RANK];
    const int64_t count = sx_type_elems(y);
    if (shape->op != &sx_op_shape || count < 0 || count > SX_MAX_RANK) {
        return false;
    }
    if (which->op != &sx_op_constant) {
        return false;
    }
    const sx_type *x = sx_graph_type(rw->from, shape->inputs[0]);
    const sx_tensor *value = &((const sx_constant_attrs *)which->attrs)->value;
    for (int64_t i = 0; i < count; i++) {
        const int64_t k = value->type.dtype == SX_I64 ? ((const int64_t *)value->data)[i]
                                                      : ((const int32_t *)value->data)[i];
        if (k < 0 || k >= x->rank || x->dims[k] < 0 || x->dims[k] > INT32_MAX) {
            return false;
        }
        wide[i] = x->dims[k];
        narrow[i] = (int32_t)x->dims[k];
    }
    void *data = y->dtype == SX_I64 ? (void *)wide : narrow;
    sx_rewrite_constant(rw, n, 0, &(sx_tensor){*y, data});
    return true;
}

static bool is_zeros(const sx_graph *g, sx_value v)
{
    const sx_node *n = sx_graph_maker(g, v);
    n = n->op == &sx_op_broadcast_to ? sx_graph_maker(g, n->inputs[0]) : n;
    if (n->op != &sx_op_constant) {
        return false;
    }
    const sx_tensor *value = &((const sx_constant_attrs *)n->attrs)->value;
    const size_t bytes = (size_t)sx_type_bytes(&value->type);
    const char *data = value->data;
    return value->type.dtype != SX_STRING &&
           (bytes == 0 || (data[0] == 0 && memcmp(data, data + 1, bytes - 1) == 0));
}

/* x + put_row(zeros, row, i), the gradient of take_row in a loop: put_row(x, x[i] + row, i), which
 * does not read all of x. */
static bool add_row(sx_rewrite *rw, const sx_node *n)
{
    for (int i = 0; i < 2; i++) {
        const sx_node *put = sx_graph_maker(rw->from, n->inputs[i]);
        const sx_value x = rw->map[n->inputs[1 - i].id];
        if (put->op != &sx_op_put_row || !is_zeros(rw->from, put->inputs[0]) ||
            !sx_type_equal(sx_graph_type(rw->from, n->inputs[1 - i]),
                           sx_graph_type(rw->from, n->first_output))) {
            continue;
        }
        const sx_value row = rw->map[put->inputs[1].id], index = rw->map[put->inputs[2].id];
        const sx_value old = sx_rewrite_beside(rw, n, &sx_op_take_row, put->attrs,
                                               (const sx_value[]){x, index}, 2, ".row");
        const sx_value sum =
            sx_rewrite_beside(rw, n, &sx_op_add, NULL, (const sx_value[]){old, row}, 2, ".sum");
        rw->map[n->first_output.id] = sx_rewrite_node(rw, n, &sx_op_put_row, put->attrs,
                                                      (const sx_value[]){x, sum, index}, 3);
        return true;
    }
    return false;
}

/* A convolution of an image with a border of zeros, as Keras' ZeroPadding2D makes, or its gradient
 * with respect to the filter: the convolution pads, unless it takes no such image: an empty one. */
static bool conv_of_border(sx_rewrite *rw, const sx_node *n)
{
    const sx_node *border = sx_graph_maker(rw->from, n->inputs[0]);
    const sx_type *filter =
        sx_graph_type(rw->from, n->op == &sx_op_conv2d ? n->inputs[1] : n->first_output);
    const sx_pad_attrs *pad = border->attrs;
    sx_conv_geometry g;
    if (border->op != &sx_op_pad || pad->value != 0 || pad->before.v[0] != 0 ||
        pad->after.v[0] != 0 || pad->before.v[3] != 0 || pad->after.v[3] != 0) {
        return false;
    }
    sx_conv2d_attrs *attrs =
        sx_arena_memdup(sx_builder_arena(rw->to), n->attrs, sizeof(sx_conv2d_attrs));
    if (attrs == NULL) {
        return false;
    }
    sx_status status =
        sx_conv_geometry_of(attrs, sx_graph_type(rw->from, n->inputs[0]), filter, &g);
    if (status == SX_OK) {
        attrs->padding = SX_EXPLICIT;
        attrs->pads =
            (sx_ints){4,
                      {pad->before.v[1] + g.h.pad_before, pad->after.v[1] + g.h.pad_after,
                       pad->before.v[2] + g.w.pad_before, pad->after.v[2] + g.w.pad_after}};
        status = sx_conv_geometry_of(attrs, sx_graph_type(rw->from, border->inputs[0]), filter, &g);
    }
    const bool fits = status == SX_OK;
    sx_status_free(status);
    if (!fits) {
        return false;
    }
    const sx_value in[] = {rw->map[border->inputs[0].id], rw->map[n->inputs[1].id]};
    rw->map[n->first_output.id] = sx_rewrite_node(rw, n, n->op, attrs, in, 2);
    return true;
}

/* The maxima of what a relu makes with a border of zeros, as Keras' ResNets have, or with a border
 * that is less than any number: the pool pads. */
static bool max_pool_of_border(sx_rewrite *rw, const sx_node *n)
{
    const sx_pool2d_attrs *old = n->attrs;
    const sx_node *border = sx_graph_maker(rw->from, n->inputs[0]);
    const sx_pad_attrs *pad = border->attrs;
    sx_pool_geometry g;
    if (border->op != &sx_op_pad || old->padding != SX_VALID || pad->before.v[0] != 0 ||
        pad->after.v[0] != 0 || pad->before.v[3] != 0 || pad->after.v[3] != 0) {
        return false;
    }
    sx_pool2d_attrs *attrs = sx_arena_memdup(sx_builder_arena(rw->to), old, sizeof(*old));
    const bool positive = sx_graph_maker(rw->from, border->inputs[0])->op == &sx_op_relu;
    if (attrs == NULL || !(pad->value == -INFINITY || (pad->value == 0 && positive))) {
        return false;
    }
    attrs->padding = SX_EXPLICIT;
    attrs->pads =
        (sx_ints){4, {pad->before.v[1], pad->after.v[1], pad->before.v[2], pad->after.v[2]}};
    sx_status status = sx_pool_geometry_of(attrs, sx_graph_type(rw->from, border->inputs[0]), &g);
    const bool fits = status == SX_OK;
    sx_status_free(status);
    if (fits) {
        rw->map[n->first_output.id] =
            sx_rewrite_node(rw, n, n->op, attrs, &rw->map[border->inputs[0].id], 1);
    }
    return fits;
}

static bool is_only_reader(const sx_graph *g, const sx_node *n, sx_value v)
{
    bool only = true;
    for (int k = 0; k < g->n_nodes && only; k++) {
        for (int i = 0; i < g->nodes[k].n_inputs && only; i++) {
            only = g->nodes[k].inputs[i].id != v.id || &g->nodes[k] == n;
        }
    }
    for (int i = 0; i < g->n_results && only; i++) {
        only = g->results[i].value.id != v.id;
    }
    return only;
}

/* The gradient of an image, without that of its border, which the convolution pads. */
static bool image_without_border(sx_rewrite *rw, const sx_node *n)
{
    const sx_node *whole = sx_graph_maker(rw->from, n->inputs[0]);
    const sx_type *image = sx_graph_type(rw->from, n->inputs[0]);
    const sx_type *part = sx_graph_type(rw->from, n->first_output);
    const sx_ints *begin = &((const sx_slice_attrs *)n->attrs)->begin;
    sx_conv_geometry g;
    if (whole->op != &sx_op_conv2d_grad_input || begin->v[0] != 0 || begin->v[3] != 0 ||
        part->dims[0] != image->dims[0] || part->dims[3] != image->dims[3] ||
        !is_only_reader(rw->from, n, n->inputs[0])) {
        return false;
    }
    sx_conv2d_attrs *attrs =
        sx_arena_memdup(sx_builder_arena(rw->to), whole->attrs, sizeof(sx_conv2d_attrs));
    if (attrs == NULL) {
        return false;
    }
    const sx_type *filter = sx_graph_type(rw->from, whole->inputs[1]);
    const sx_type *dy = sx_graph_type(rw->from, whole->inputs[0]);
    sx_status status = sx_conv_geometry_of(attrs, image, filter, &g);
    if (status == SX_OK) {
        const int64_t h = begin->v[1], w = begin->v[2];
        attrs->padding = SX_EXPLICIT;
        attrs->pads =
            (sx_ints){4,
                      {h + g.h.pad_before, image->dims[1] - h - part->dims[1] + g.h.pad_after,
                       w + g.w.pad_before, image->dims[2] - w - part->dims[2] + g.w.pad_after}};
        attrs->size = (sx_ints){2, {part->dims[1], part->dims[2]}};
        status = sx_conv_geometry_of(attrs, part, filter, &g);
    }
    const bool fits = status == SX_OK && g.h.out == dy->dims[1] && g.w.out == dy->dims[2];
    sx_status_free(status);
    if (!fits) {
        return false;
    }
    rw->map[n->first_output.id] = sx_build_node(
        rw->to, &(sx_node_spec){.op = whole->op,
                                .attrs = attrs,
                                .inputs = (const sx_value[]){rw->map[whole->inputs[0].id],
                                                             rw->map[whole->inputs[1].id]},
                                .n_inputs = 2,
                                .name = n->name,
                                .device = whole->device,
                                .file = whole->file,
                                .line = whole->line});
    return true;
}

/* x^2 and x^3 of floats, as TensorFlow's optimizer does: GELU's approximation has a cube. */
static bool multiply(sx_rewrite *rw, const sx_node *n)
{
    const sx_node *exponent = sx_graph_maker(rw->from, n->inputs[1]);
    const sx_type *y = sx_graph_type(rw->from, n->first_output);
    const sx_value x = rw->map[n->inputs[0].id];
    if (exponent->op != &sx_op_constant || y->dtype != SX_F32 ||
        !sx_type_equal(sx_graph_type(rw->from, n->inputs[0]), y)) {
        return false;
    }
    const sx_tensor *value = &((const sx_constant_attrs *)exponent->attrs)->value;
    const float power = sx_type_elems(&value->type) == 1 ? *(const float *)value->data : 0;
    if (power != 2 && power != 3) {
        return false;
    }
    if (power == 2) {
        rw->map[n->first_output.id] = sx_rewrite_node(rw, n, &sx_op_square, NULL, &x, 1);
    } else {
        const sx_value square = sx_rewrite_beside(rw, n, &sx_op_square, NULL, &x, 1, ".square");
        rw->map[n->first_output.id] =
            sx_rewrite_node(rw, n, &sx_op_mul, NULL, (const sx_value[]){square, x}, 2);
    }
    return true;
}

/* A product by 1, as Keras' silu has it. */
static bool times_one(sx_rewrite *rw, const sx_node *n)
{
    const sx_type *y = sx_graph_type(rw->from, n->first_output);
    for (int i = 0; i < 2; i++) {
        const sx_node *factor = sx_graph_maker(rw->from, n->inputs[i]);
        const sx_value x = n->inputs[1 - i];
        if (factor->op != &sx_op_constant || y->dtype != SX_F32 ||
            !sx_type_equal(sx_graph_type(rw->from, x), y)) {
            continue;
        }
        const sx_tensor *value = &((const sx_constant_attrs *)factor->attrs)->value;
        if (sx_type_elems(&value->type) == 1 && *(const float *)value->data == 1) {
            rw->map[n->first_output.id] = rw->map[x.id];
            return true;
        }
    }
    return false;
}

static simplify_fn *const rows[SX_OPID_COUNT] = {
    [SX_OPID_identity] = copy_input,
    [SX_OPID_stop_gradient] = copy_input,
    [SX_OPID_cast] = copy_if_same_type,
    [SX_OPID_reshape] = copy_if_same_type,
    [SX_OPID_bitcast] = copy_if_same_type,
    [SX_OPID_broadcast_to] = copy_if_same_type,
    [SX_OPID_size] = count_elements,
    [SX_OPID_add] = add_row,
    [SX_OPID_gather] = gather_dims,
    [SX_OPID_transpose] = transpose_back,
    [SX_OPID_conv2d] = conv_of_border,
    [SX_OPID_pow] = multiply,
    [SX_OPID_conv2d_grad_filter] = conv_of_border,
    [SX_OPID_max_pool2d] = max_pool_of_border,
    [SX_OPID_slice] = image_without_border,
    [SX_OPID_mul] = times_one,
};

static void simplify_node(sx_rewrite *rw, const sx_node *n)
{
    simplify_fn *fn = rows[n->op->id];
    if (fn == NULL || !fn(rw, n)) {
        sx_rewrite_keep(rw, n, NULL);
    }
}

static sx_status in_region(const sx_graph *region, void *user, sx_graph **out)
{
    (void)user;
    return sx_pass_simplify(region, out);
}

sx_status sx_pass_simplify(const sx_graph *g, sx_graph **out)
{
    return sx_rewrite_run_deep(g, 0, simplify_node, in_region, NULL, out);
}
