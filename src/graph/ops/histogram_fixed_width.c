/* histogram_fixed_width: how many values are in each of nbins bins of equal width; the first and
 * the last have those outside the range, too.
 *
 *   values       int32, int64, float32 or float64, any shape
 *   value_range  of the same dtype [2]: the lowest, below the highest
 *   nbins        int32 scalar, positive
 *   dtype        of the result: int32 or int64
 *   returns      [nbins]
 *
 * Errors   INVALID_ARGUMENT    dtypes, ranks; (running) nbins, the range, a value that is NaN
 *          RESOURCE_EXHAUSTED  (running) nbins is too large
 * Source   TensorFlow HistogramFixedWidth */
#include "graph/ops/host_ops.h"

typedef struct sx_histogram_fixed_width_attrs {
    sx_dtype dtype;
} sx_histogram_fixed_width_attrs;

static const sx_attr_def histogram_fixed_width_attrs[] = {
    SX_ATTR_TF(sx_histogram_fixed_width_attrs, dtype, SX_ATTR_DTYPE, .tf_number = SX_I32)};

static sx_status histogram_fixed_width_infer(sx_infer_context *c)
{
    const sx_histogram_fixed_width_attrs *attrs = c->attrs;
    const sx_type *values = &c->inputs[0];
    SX_TRY(sx_require_maybe("value_range", &c->inputs[1], values->dtype, 1, "[2]"));
    SX_TRY(sx_require_maybe("nbins", &c->inputs[2], SX_I32, 0, "a scalar"));
    if ((values->dtype != SX_F32 && values->dtype != SX_F64 && values->dtype != SX_I32 &&
         values->dtype != SX_I64) ||
        (attrs->dtype != SX_I32 && attrs->dtype != SX_I64)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "values are %s and dtype %s, expected 32-bit or 64-bit numbers and "
                        "integers",
                        SX_TEXT(values), sx_dtype_name(attrs->dtype));
    }
    c->outputs[0] = sx_type_of(attrs->dtype, SX_UNKNOWN_DIM);
    return SX_OK;
}

static sx_status histogram_fixed_width_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_histogram_fixed_width_attrs *attrs = c->attrs;
    const sx_host_tensor *range = &c->in[1];
    if (c->in[2].i[0] <= 0 || sx_type_elems(&range->type) != 2 ||
        !(sx_host_get(range, 0) < sx_host_get(range, 1))) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "nbins is %lld and the range has %lld numbers, expected a positive number "
                        "and the lowest value before the highest",
                        (long long)c->in[2].i[0], (long long)sx_type_elems(&range->type));
    }
    out_types[0] = sx_type_of(attrs->dtype, c->in[2].i[0]);
    return sx_require_made("the histogram", &out_types[0]);
}

/* Differences have the dtype of the values, as TensorFlow's. */
static double difference(const sx_host_tensor *x, int64_t k, const sx_host_tensor *range, int bound)
{
    if (sx_carrier_of(x->type.dtype) != SX_CARRIER_F) {
        const int64_t d = SX_WRAP(x->i[k], -, range->i[bound]);
        return x->type.dtype == SX_I32 ? (double)(int32_t)d : (double)d;
    }
    const double d = x->f[k] - range->f[bound];
    return x->type.dtype == SX_F32 ? (float)d : d;
}

static sx_status histogram_fixed_width_host(const sx_kernel_call *c)
{
    const sx_host_tensor *x = &c->in[0], *range = &c->in[1];
    const int64_t bins = c->in[2].i[0];
    const double step = difference(range, 1, range, 0) / (double)bins;
    sx_host_fill(c, 0, 0);
    for (int64_t k = 0, n = sx_type_elems(&x->type); k < n; k++) {
        const double v = sx_host_get(x, k);
        if (isnan(v)) {
            return sx_error(SX_INVALID_ARGUMENT, "element %lld of values is NaN", (long long)k);
        }
        double bin = v < sx_host_get(range, 0) ? 0 : difference(x, k, range, 0) / step;
        bin = fmin(fmax(bin, 0), (double)(bins - 1));
        c->out[0].i[(int64_t)bin]++;
    }
    return SX_OK;
}

static void histogram_fixed_width_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_histogram_fixed_width, "HistogramFixedWidth",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const double numbers[] = {-1, 0, 1.5, 2, 5, 15}, range[] = {0, 5}, bins[] = {5};
static const sx_op_sample histogram_fixed_width_samples[] = {
    {.name = "five",
     .inputs = {SX_SAMPLE_LIST(SX_F32, numbers, 2, 3), SX_SAMPLE_LIST(SX_F32, range, 2),
                SX_SAMPLE_ONE(SX_I32, bins)},
     .n_inputs = 3,
     .attrs = &(const sx_histogram_fixed_width_attrs){.dtype = SX_I32}},
};

const sx_op_def sx_op_histogram_fixed_width = {
    SX_OP_NAMED(histogram_fixed_width),
    .n_in = 3,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_histogram_fixed_width_attrs, histogram_fixed_width_attrs),
    .infer = histogram_fixed_width_infer,
    .host = histogram_fixed_width_host,
    .host_types = histogram_fixed_width_host_types,
    .to_tf = histogram_fixed_width_to_tf,
    SX_FROM_TF({.op = "HistogramFixedWidth"}),
    SX_OP_SAMPLES(histogram_fixed_width_samples),
};
