/* max_pool2d_grad: the gradient of max_pool2d. Each dy goes to the first element of its window, in
 * row-major order, that equals y; an element chosen by several windows gets their sum.
 *
 *   x        [N,H,W,C], what was pooled
 *   y, dy    [N,H',W',C]: the result, and its gradient
 *   window, strides, padding   as max_pool2d
 *   returns  x's type
 *
 * Gradient of dy: of each window, g of the element that its dy went to; of x and y zero
 * Errors   INVALID_ARGUMENT  as max_pool2d; y or dy is not what pooling x gives
 * Numbers  one addition for each window
 * Source   TensorFlow MaxPoolGrad, MaxPoolGradGrad on the CPU */
#include "graph/ops/common.h"
#include "graph/ops/conv_geometry.h"

static const sx_attr_def max_pool2d_grad_attrs[] = {
    SX_ATTR(sx_pool2d_attrs, window, SX_ATTR_INTS),
    SX_ATTR(sx_pool2d_attrs, strides, SX_ATTR_INTS),
    SX_ATTR_NAMES(sx_pool2d_attrs, padding, sx_padding_names),
    SX_ATTR(sx_pool2d_attrs, pads, SX_ATTR_INTS),
};

static sx_status max_pool2d_grad_infer(sx_infer_context *c)
{
    const sx_type *x = &c->inputs[0];
    sx_pool_geometry g;
    SX_TRY(sx_pool_geometry_of(c->attrs, x, &g));
    sx_type y = sx_type_of(x->dtype, g.n, g.h.out, g.w.out, g.c);
    SX_TRY(sx_require_equal("y", &c->inputs[1], "x", &y));
    SX_TRY(sx_require_equal("dy", &c->inputs[2], "x", &y));
    c->outputs[0] = *x;
    return SX_OK;
}

/* Where the places of offset k of all windows along an axis are; *out_inside has the axis, `axis`
 * of 1 and 2, and says which of them are in the image. */
static sx_value places_of(sx_builder *b, const sx_conv_window *w, int64_t k, int axis,
                          sx_value *out_inside)
{
    const sx_type type =
        axis == 1 ? sx_type_of(SX_I64, w->out, 1, 1) : sx_type_of(SX_I64, w->out, 1);
    const sx_value windows = sx_build(
        b, &sx_op_iota, &(sx_iota_attrs){.shape = {1, {w->out}}, .dtype = SX_I64}, NULL, 0);
    const sx_value steps =
        sx_build_op(b, mul, NULL, windows, sx_scalar(b, SX_I64, (double)w->stride));
    const sx_value at =
        sx_build_op(b, add, NULL, steps, sx_scalar(b, SX_I64, (double)(k - w->pad_before)));
    const sx_value first = sx_build_op(b, greater_equal, NULL, at, sx_scalar(b, SX_I64, 0));
    const sx_value last = sx_build_op(b, less, NULL, at, sx_scalar(b, SX_I64, (double)w->in));
    *out_inside = sx_reshape_to(b, sx_build_op(b, logical_and, NULL, first, last), &type);
    return at;
}

/* Each offset within a window in turn: those of its elements that equal y, where no element before
 * did, give their g. */
static void max_pool2d_grad_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    const sx_type type = sx_type_of_value(b, g->x[0]);
    const sx_gather_attrs rows = {.axis = 1}, columns = {.axis = 2};
    sx_pool_geometry p;
    sx_value sum = SX_NO_VALUE, taken = SX_NO_VALUE;
    const sx_value zero = sx_scalar_like(b, g->dy[0], 0);
    sx_builder_fail(b, sx_pool_geometry_of(g->attrs, &type, &p));
    if (!g->needed[2] || sx_builder_failed(b)) {
        return;
    }
    for (int64_t i = 0; i < p.h.kernel * p.w.kernel; i++) {
        sx_value row_inside, column_inside;
        const sx_value row = places_of(b, &p.h, i / p.w.kernel, 1, &row_inside);
        const sx_value column = places_of(b, &p.w, i % p.w.kernel, 2, &column_inside);
        sx_value x = sx_build_op(b, gather, &rows, g->x[0], row);
        sx_value dd = sx_build_op(b, gather, &rows, g->dy[0], row);
        x = sx_build_op(b, gather, &columns, x, column);
        dd = sx_build_op(b, gather, &columns, dd, column);
        sx_value hit = sx_build_op(b, equal, NULL, x, g->x[1]);
        hit = sx_build_op(b, logical_and, NULL, hit,
                          sx_build_op(b, logical_and, NULL, row_inside, column_inside));
        if (sx_value_is(taken)) {
            const sx_value is_first =
                sx_build_op(b, logical_and, NULL, hit, sx_build_op(b, logical_not, NULL, taken));
            taken = sx_build_op(b, logical_or, NULL, taken, hit);
            hit = is_first;
        } else {
            taken = hit;
        }
        sum = sx_add_maybe(b, sum, sx_build_op(b, select, NULL, hit, dd, zero));
    }
    g->dx[2] = sum;
}

typedef struct scatter {
    const sx_kernel_call *c;
    double *taken_by; /* the y whose dy was assigned last */
} scatter;

static void give_to_first(void *user, int64_t count, double *x, double *y)
{
    scatter *s = user;
    (void)count;
    if (*x == *y && s->taken_by != y) {
        s->taken_by = y;
        s->c->out[0].f[x - s->c->in[0].f] += s->c->in[2].f[y - s->c->in[1].f];
    }
}

/* The walk visits one window after the other, each in row-major order. */
static sx_status max_pool2d_grad_host(const sx_kernel_call *c)
{
    sx_host_fill(c, 0, 0);
    scatter s = {.c = c};
    sx_pool_walk(c->attrs, &c->in[0], &c->in[1], give_to_first, &s);
    return SX_OK;
}

/* y is a separate input, so a sample's random y equals no x; tests/graph/test_ops.c tests pooling
 * and this together. */
#define DD        SX_FILL_DISTINCT
#define POOL(...) (&(const sx_pool2d_attrs){__VA_ARGS__})
static const sx_op_sample max_pool2d_grad_samples[] = {
    {.name = "half",
     .inputs = {SX_SAMPLE_F32(DD, SX_BATCH, 6, 4, 3), SX_SAMPLE_F32(DD, SX_BATCH, 3, 2, 3),
                SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 3, 2, 3)},
     .n_inputs = 3,
     .attrs = POOL(.window = {2, {2, 2}})},
    {.name = "one_by_one",
     .inputs = {SX_SAMPLE_F32(SX_FILL_TRUE, SX_BATCH, 3, 3, 2),
                SX_SAMPLE_F32(SX_FILL_TRUE, SX_BATCH, 3, 3, 2),
                SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 3, 3, 2)},
     .n_inputs = 3,
     .attrs = POOL(.window = {2, {1, 1}})},
    {.name = "all_tied",
     .inputs = {SX_SAMPLE_F32(SX_FILL_TRUE, 2, 5, 5, 2), SX_SAMPLE_F32(SX_FILL_TRUE, 2, 3, 3, 2),
                SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3, 3, 2)},
     .n_inputs = 3,
     .attrs = POOL(.window = {2, {3, 3}}, .strides = {2, {2, 2}}, .padding = SX_SAME)},
};

/* Windows whose dy is zero are not read and give zeros. */
static void max_pool2d_grad_parts(const sx_parts *p)
{
    sx_type windows = p->in_nonzero[2];
    windows.dims[0] = p->out_used[0].dims[0];
    windows.dims[3] = p->out_used[0].dims[3];
    p->in_used[1] = p->in_used[2] = windows;
    sx_pool_image_part(p->attrs, &p->in[0], &windows, &p->in_used[0]);
    sx_pool_image_part(p->attrs, &p->in[0], &p->in_nonzero[2], &p->out_nonzero[0]);
}

/* Where windows do not overlap, each element gets one gradient at most. */
static bool max_pool2d_grad_is_exact(const void *attrs)
{
    const sx_pool2d_attrs *a = attrs;
    return a->strides.n == 0 ||
           (a->window.v[0] <= a->strides.v[0] && a->window.v[1] <= a->strides.v[1]);
}

const sx_op_def sx_op_max_pool2d_grad = {
    SX_OP_NAMED(max_pool2d_grad),
    .n_in = 3,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x7,
    .flags = SX_OP_NO_TF | SX_OP_EXACT,
    SX_OP_ATTRS(sx_pool2d_attrs, max_pool2d_grad_attrs),
    .infer = max_pool2d_grad_infer,
    .grad = max_pool2d_grad_gradient,
    .host = max_pool2d_grad_host,
    .parts = max_pool2d_grad_parts,
    .parts_fit = sx_pool_parts_fit,
    .exact_if = max_pool2d_grad_is_exact,
    SX_OP_SAMPLES(max_pool2d_grad_samples),
};
