/* fractional_pool_grad: the gradient of fractional_pool. Of the greatest, each dy goes to the first
 * element of its window, in row-major order, that equals y; of the mean, to all in equal parts.
 *
 *   x               [N,H,W,C], what was pooled: float32 or float64
 *   y, dy           [N,H',W',C] of its dtype: the result, and its gradient
 *   rows, columns   int64 [H' + 1], [W' + 1]: where the windows begin, as fractional_pool gives
 * them average, overlapping   as fractional_pool's; its other attributes are not read returns x's
 * type
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks; (running) sizes that do not match, windows outside of x
 * Source   TensorFlow FractionalMaxPoolGrad, FractionalAvgPoolGrad */
#include "graph/ops/host_ops.h"

static const sx_attr_def fractional_pool_grad_attrs[] = {
    SX_ATTR(sx_fractional_pool_attrs, average, SX_ATTR_BOOL),
    SX_ATTR_TF(sx_fractional_pool_attrs, overlapping, SX_ATTR_BOOL),
};

static sx_status fractional_pool_grad_infer(sx_infer_context *c)
{
    const sx_type *x = &c->inputs[0];
    SX_TRY(sx_require_float("x", x));
    SX_TRY(sx_require_maybe("x", x, x->dtype, 4, "[N,H,W,C]"));
    SX_TRY(sx_require_maybe("y", &c->inputs[1], x->dtype, 4, "[N,H',W',C]"));
    SX_TRY(sx_require_maybe("dy", &c->inputs[2], x->dtype, 4, "[N,H',W',C]"));
    SX_TRY(sx_require_maybe("rows", &c->inputs[3], SX_I64, 1, "[H' + 1]"));
    SX_TRY(sx_require_maybe("columns", &c->inputs[4], SX_I64, 1, "[W' + 1]"));
    c->outputs[0] = *x;
    return SX_OK;
}

/* The windows' begins ascend within the axis, and there is one more than windows. */
static bool are_windows(const sx_host_tensor *at, int64_t windows, int64_t size)
{
    bool sound = at->type.dims[0] == windows + 1 && at->i[0] >= 0 && at->i[windows] <= size;
    for (int64_t k = 0; k < windows && sound; k++) {
        sound = at->i[k] < at->i[k + 1];
    }
    return sound;
}

static sx_status fractional_pool_grad_host(const sx_kernel_call *c)
{
    const sx_fractional_pool_attrs *a = c->attrs;
    const sx_type *x = &c->in[0].type, *y = &c->in[1].type;
    const int64_t *rows = c->in[3].i, *columns = c->in[4].i;
    if (!sx_same_dims(y, &c->in[2].type) || y->dims[0] != x->dims[0] || y->dims[3] != x->dims[3] ||
        !are_windows(&c->in[3], y->dims[1], x->dims[1]) ||
        !are_windows(&c->in[4], y->dims[2], x->dims[2])) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "x is %s, y %s, dy %s, rows %s, columns %s: sizes do not match, or windows "
                        "do not ascend within x",
                        SX_TEXT(x), SX_TEXT(y), SX_TEXT(&c->in[2].type), SX_TEXT(&c->in[3].type),
                        SX_TEXT(&c->in[4].type));
    }
    sx_host_fill(c, 0, 0);
    for (int64_t k = 0, n = sx_type_elems(y); k < n; k++) {
        int64_t to[SX_MAX_RANK], first = -1;
        sx_unravel(y, k, to);
        const int64_t bottom = SX_MIN(rows[to[1] + 1] + a->overlapping, x->dims[1]),
                      right = SX_MIN(columns[to[2] + 1] + a->overlapping, x->dims[2]);
        const double count = (double)(bottom - rows[to[1]]) * (double)(right - columns[to[2]]);
        if (k % (1 << 16) == 0) {
            SX_TRY(sx_cancel_check(c->cancel));
        }
        for (int64_t h = rows[to[1]]; h < bottom; h++) {
            for (int64_t w = columns[to[2]]; w < right; w++) {
                const int64_t at = ((to[0] * x->dims[1] + h) * x->dims[2] + w) * x->dims[3] + to[3];
                if (a->average) {
                    c->out[0].f[at] += c->in[2].f[k] / count;
                } else if (first < 0 && c->in[0].f[at] == c->in[1].f[k]) {
                    first = at;
                }
            }
        }
        if (first >= 0) {
            c->out[0].f[first] += c->in[2].f[k];
        }
    }
    return SX_OK;
}

static void fractional_pool_grad_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    if (((const sx_fractional_pool_attrs *)op->attrs)->average) {
        sx_tf_fail(
            w, sx_error(SX_UNIMPLEMENTED, "%s: the gradient of means is not exported", op->name));
        return;
    }
    sx_tf_same(w, op, &sx_op_fractional_pool_grad, "FractionalMaxPoolGrad",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const double rows[] = {0, 1, 3, 4}, columns[] = {0, 2, 3};
static const sx_op_sample fractional_pool_grad_samples[] = {
    /* all are equal: the first of each window is taken */
    {.name = "max",
     .inputs = {SX_SAMPLE_F32(SX_FILL_TRUE, 2, 4, 3, 2), SX_SAMPLE_F32(SX_FILL_TRUE, 2, 3, 2, 2),
                SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3, 2, 2), SX_SAMPLE_LIST(SX_I64, rows, 4),
                SX_SAMPLE_LIST(SX_I64, columns, 3)},
     .n_inputs = 5,
     .attrs = &(const sx_fractional_pool_attrs){.overlapping = true}},
};

const sx_op_def sx_op_fractional_pool_grad = {
    SX_OP_NAMED(fractional_pool_grad),
    .n_in = 5,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_REFUSES_GRAD,
    SX_OP_ATTRS(sx_fractional_pool_attrs, fractional_pool_grad_attrs),
    .infer = fractional_pool_grad_infer,
    .host = fractional_pool_grad_host,
    .to_tf = fractional_pool_grad_to_tf,
    SX_FROM_TF({.op = "FractionalMaxPoolGrad"}),
    SX_OP_SAMPLES(fractional_pool_grad_samples),
};
