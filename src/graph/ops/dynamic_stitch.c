/* dynamic_stitch: the items of several values, put where their indices say.
 *
 *   indices...  k values of int32
 *   data...     k values of one dtype: [its indices' shape..., rest...]
 *   returns     data's dtype [greatest index + 1, rest...]; of an index that occurs twice, the last
 *               item; of one that does not occur, zeros (TensorFlow leaves them undefined) or ""
 *
 * Errors   INVALID_ARGUMENT    shapes, dtypes; (running) a negative index
 *          RESOURCE_EXHAUSTED  (running) too many items
 * Source   TensorFlow DynamicStitch, ParallelDynamicStitch */
#include "graph/ops/host_ops.h"

static sx_status dynamic_stitch_infer(sx_infer_context *c)
{
    const int k = c->n_inputs / 2;
    if (c->n_inputs < 2 || c->n_inputs % 2 != 0) {
        return sx_error(SX_INVALID_ARGUMENT, "%d inputs, expected as many data as indices",
                        c->n_inputs);
    }
    sx_type y = sx_unknown_shape(c->inputs[k].dtype);
    for (int i = 0; i < k; i++) {
        const sx_type *at = &c->inputs[i], *data = &c->inputs[k + i];
        SX_TRY(sx_require_dtype("indices", at, SX_I32));
        SX_TRY(sx_require_dtype("data", data, y.dtype));
        sx_type items;
        SX_TRY(sx_infer_items("indices", at, "data", data, SX_UNKNOWN_DIM, &items));
        y = items.rank != SX_UNKNOWN_RANK ? items : y;
    }
    c->outputs[0] = y;
    return SX_OK;
}

/* Where an index occurs twice each of its items gets the gradient, as in TensorFlow. */
static void dynamic_stitch_gradient(sx_grad *g)
{
    const int k = g->n_inputs / 2;
    for (int i = 0; i < k; i++) {
        if (g->needed[k + i]) {
            g->dx[k + i] =
                sx_build_op(g->b, gather, (&(sx_gather_attrs){.axis = 0}), g->dy[0], g->x[i]);
        }
    }
}

static sx_status dynamic_stitch_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const int k = c->n_in / 2;
    int64_t last = -1;
    sx_type y = sx_unknown_shape(c->in[k].type.dtype);
    for (int i = 0; i < k; i++) {
        const sx_type *at = &c->in[i].type, *data = &c->in[k + i].type;
        sx_type items;
        SX_TRY(sx_infer_items("indices", at, "data", data, 0, &items));
        if (i > 0 && !sx_same_dims(&items, &y)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "indices %d are %s and data %s, expected items of the same shape as "
                            "those before",
                            i, SX_TEXT(at), SX_TEXT(data));
        }
        y = items;
        for (int64_t j = 0, n = sx_type_elems(at); j < n; j++) {
            if (c->in[i].i[j] < 0) {
                return sx_error(SX_INVALID_ARGUMENT, "index %lld of indices %d is %lld",
                                (long long)j, i, (long long)c->in[i].i[j]);
            }
            last = SX_MAX(last, c->in[i].i[j]);
        }
    }
    y.dims[0] = last + 1;
    out_types[0] = y;
    return sx_require_made("the items", &y);
}

static sx_status dynamic_stitch_host(const sx_kernel_call *c)
{
    const sx_type *y = &c->out[0].type;
    const int k = c->n_in / 2;
    const size_t bytes = (size_t)sx_dims_product(y, 1, y->rank) * sx_carrier_bytes(y->dtype);
    if (bytes == 0) {
        return SX_OK;
    }
    sx_host_fill(c, 0, 0);
    for (int i = 0; i < k; i++) {
        for (int64_t j = 0, n = sx_type_elems(&c->in[i].type); j < n; j++) {
            memcpy((char *)c->out[0].data + (size_t)c->in[i].i[j] * bytes,
                   (const char *)c->in[k + i].data + (size_t)j * bytes, bytes);
        }
    }
    return SX_OK;
}

static void dynamic_stitch_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_dynamic_stitch, "DynamicStitch",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[op->n_in / 2].dtype),
                           sx_tf_attr_int("N", op->n_in / 2)));
}

static const double first[] = {4, 0}, second[] = {3, 1, 2, 3}, once[] = {3, 1, 2, 6};
static const sx_op_sample dynamic_stitch_samples[] = {
    /* no_grad_check: index 3 occurs twice */
    {.name = "rows",
     .inputs = {SX_SAMPLE_LIST(SX_I32, first, 2), SX_SAMPLE_LIST(SX_I32, second, 2, 2),
                SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 2, 3)},
     .n_inputs = 4,
     .no_grad_check = true},
    {.name = "once",
     .inputs = {SX_SAMPLE_LIST(SX_I32, first, 2), SX_SAMPLE_LIST(SX_I32, once, 2, 2),
                SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 2, 3)},
     .n_inputs = 4},
};

const sx_op_def sx_op_dynamic_stitch = {
    SX_OP_NAMED(dynamic_stitch),
    .n_in = SX_VARIADIC,
    .n_out = 1,
    .flags = SX_OP_HOST,
    .infer = dynamic_stitch_infer,
    .grad = dynamic_stitch_gradient,
    .host = dynamic_stitch_host,
    .host_types = dynamic_stitch_host_types,
    .to_tf = dynamic_stitch_to_tf,
    SX_FROM_TF({.op = "DynamicStitch"}, {.op = "ParallelDynamicStitch"}),
    SX_OP_SAMPLES(dynamic_stitch_samples),
};
