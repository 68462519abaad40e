/* bucketize: the number of boundaries that are not greater than each element.
 *
 *   x           int32, int64, float32 or float64
 *   boundaries  float32 [n], ascending
 *   returns     int32 of x's shape, in [0, n]
 *
 * Errors   INVALID_ARGUMENT  dtypes, boundaries that do not ascend
 * Numbers  integers are compared as float32, as TensorFlow does; NaN has bucket n
 * Source   TensorFlow Bucketize */
#include "graph/ops/host_ops.h"

typedef struct sx_bucketize_attrs {
    sx_tensor boundaries;
} sx_bucketize_attrs;

static const sx_attr_def bucketize_attrs[] = {
    SX_ATTR(sx_bucketize_attrs, boundaries, SX_ATTR_TENSOR)};

static sx_status bucketize_infer(sx_infer_context *c)
{
    const sx_bucketize_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0], *t = &attrs->boundaries.type;
    const float *at = attrs->boundaries.data;
    if (x->dtype != SX_I32 && x->dtype != SX_I64 && x->dtype != SX_F32 && x->dtype != SX_F64) {
        return sx_error(SX_INVALID_ARGUMENT, "x is %s, expected 32-bit or 64-bit numbers",
                        SX_TEXT(x));
    }
    bool ascends = at == NULL || (t->dtype == SX_F32 && t->rank == 1);
    for (int64_t i = 1; at != NULL && ascends && i < t->dims[0]; i++) {
        ascends = at[i] >= at[i - 1];
    }
    if (!ascends) {
        return sx_error(SX_INVALID_ARGUMENT, "the boundaries are not a vector of float32 that "
                                             "ascends");
    }
    c->outputs[0] = *x;
    c->outputs[0].dtype = SX_I32;
    return SX_OK;
}

static sx_status bucketize_host(const sx_kernel_call *c)
{
    const sx_bucketize_attrs *attrs = c->attrs;
    const float *at = attrs->boundaries.data;
    const int64_t count = at != NULL ? attrs->boundaries.type.dims[0] : 0;
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n; k++) {
        const double given = sx_host_get(&c->in[0], k);
        const double x =
            sx_carrier_of(c->in[0].type.dtype) == SX_CARRIER_F ? given : (double)(float)given;
        int64_t low = 0, high = count; /* the first boundary above x lies in [low, high] */
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (x < (double)at[middle]) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        c->out[0].i[k] = low;
    }
    return SX_OK;
}

static void bucketize_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_tensor *at = &((const sx_bucketize_attrs *)op->attrs)->boundaries;
    op->out[0] = sx_tf_add(
        w, "Bucketize", NULL, sx_tf_in(op->in[0]),
        sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype),
                    sx_tf_attr_floats("boundaries", at->data != NULL ? (int)at->type.dims[0] : 0,
                                      at->data)));
}

static sx_status bucketize_from_tf(const sx_tf_node *n, void *out)
{
    sx_bucketize_attrs *attrs = out;
    sx_tf_attr a;
    if (n->attr(n, "boundaries", &a) && a.kind == SX_TF_ATTR_FLOATS) {
        attrs->boundaries = (sx_tensor){sx_type_of(SX_F32, a.count), (void *)(uintptr_t)a.floats};
    }
    return SX_OK;
}

static const double values[] = {-1e9, 0, 1, 1.5, 2, 7, 1e9};
static const float bounds[] = {0, 1.5F, 2, 2, 100};
#define BOUNDS                                          \
    .attrs = &(const sx_bucketize_attrs)                \
    {                                                   \
        {                                               \
            SX_TYPE_LITERAL_(SX_F32, 5), (void *)bounds \
        }                                               \
    }
static const sx_op_sample bucketize_samples[] = {
    {.name = "floats",
     .inputs = {SX_SAMPLE_LIST(SX_F32, values, SX_BATCH, 3)},
     .n_inputs = 1,
     BOUNDS},
    {.name = "integers", .inputs = {SX_SAMPLE_LIST(SX_I64, values, 7)}, .n_inputs = 1, BOUNDS},
};

const sx_op_def sx_op_bucketize = {
    SX_OP_NAMED(bucketize),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_bucketize_attrs, bucketize_attrs),
    .infer = bucketize_infer,
    .host = bucketize_host,
    .to_tf = bucketize_to_tf,
    SX_FROM_TF({.op = "Bucketize", .attrs = bucketize_from_tf}),
    SX_OP_SAMPLES(bucketize_samples),
};
