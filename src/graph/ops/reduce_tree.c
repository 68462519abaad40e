/* reduce_tree: combines the elements along axis 0 in a fixed, balanced tree: of 4 elements
 * (0 + 1) + (2 + 3), of 3 (0 + 1) + 2.
 *
 *   x...      one numeric dtype, or bool for `and`; of each rank 1 or more, not empty along axis 0
 *   how       as of all_reduce; moments: x are means and variances of parts of one size
 *   returns   x's types without axis 0
 *
 * Inserted by sx_pass_spmd() where results must not depend on the number of replicas.
 *
 * Errors   INVALID_ARGUMENT   as all_reduce; no axis 0
 * Numbers  sum, mean: every addition is rounded to the dtype, so that all backends compute the same
 *          bits
 * Source   Chan, Golub, LeVeque 1979, for the tree and for moments */
#ifdef SX_ATTRS
typedef struct sx_reduce_tree_attrs {
    int32_t how; /* sx_combine */
} sx_reduce_tree_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def reduce_tree_attrs[] = {
    SX_ATTR_NAMES(sx_reduce_tree_attrs, how, sx_combine_names),
};

static sx_status reduce_tree_infer(sx_infer_context *c)
{
    const sx_reduce_tree_attrs *attrs = c->attrs;
    SX_TRY(sx_require_combinable(attrs->how, c->inputs, c->n_inputs));
    for (int i = 0; i < c->n_inputs; i++) {
        const sx_type *x = &c->inputs[i];
        if (x->rank < 1 || x->dims[0] < 1) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "x is %s, expected a first axis of known, positive length", SX_TEXT(x));
        }
        c->outputs[i] = sx_type_make(x->dtype, x->rank - 1, x->dims + 1);
    }
    c->n_outputs = c->n_inputs;
    return SX_OK;
}

static double rounded(sx_dtype dtype, double x)
{
    uint64_t bits;
    sx_host_store_element(dtype, x, &bits);
    return sx_host_load_element(dtype, &bits);
}

static double join(const sx_kernel_call *c, int32_t how, int k, int64_t first, int64_t count,
                   int64_t i)
{
    const sx_host_tensor *x = &c->in[k];
    const int64_t row = sx_type_elems(&c->out[k].type);
    if (count == 1) {
        return sx_host_get(x, first * row + i);
    }
    const int64_t half = (count + 1) / 2;
    const double a = join(c, how, k, first, half, i);
    const double b = join(c, how, k, first + half, count - half, i);
    return how == SX_COMBINE_AND    ? a != 0 && b != 0
           : how == SX_COMBINE_OR   ? a != 0 || b != 0
           : how == SX_COMBINE_MAX  ? (b > a || b != b ? b : a)
           : how == SX_COMBINE_MIN  ? (b < a || b != b ? b : a)
           : how == SX_COMBINE_PROD ? (c->keep_double ? a * b : rounded(x->type.dtype, a * b))
           : c->keep_double         ? a + b
                                    : rounded(x->type.dtype, a + b);
}

/* The mean of the means; the mean of the variances plus that of the squared distances. */
static void join_moments(const sx_kernel_call *c)
{
    const int64_t parts = c->in[0].type.dims[0], row = sx_type_elems(&c->out[0].type);
    for (int64_t i = 0; i < row; i++) {
        double mean = 0, square = 0;
        for (int64_t p = 0; p < parts; p++) {
            mean += c->in[0].f[p * row + i] / (double)parts;
        }
        for (int64_t p = 0; p < parts; p++) {
            const double off = c->in[0].f[p * row + i] - mean;
            square += (c->in[1].f[p * row + i] + off * off) / (double)parts;
        }
        c->out[0].f[i] = mean;
        c->out[1].f[i] = square;
    }
}

static sx_status reduce_tree_host(const sx_kernel_call *c)
{
    const sx_reduce_tree_attrs *attrs = c->attrs;
    if (attrs->how == SX_COMBINE_MOMENTS) {
        join_moments(c);
        return SX_OK;
    }
    for (int k = 0; k < c->n_in; k++) {
        const int64_t n = sx_type_elems(&c->out[k].type), parts = c->in[k].type.dims[0];
        for (int64_t i = 0; i < n; i++) {
            const double y = join(c, attrs->how, k, 0, parts, i);
            sx_host_set(&c->out[k], i, attrs->how == SX_COMBINE_MEAN ? y / (double)parts : y);
        }
    }
    return SX_OK;
}

#define HOW(how_) (&(const sx_reduce_tree_attrs){.how = (how_)})
static const sx_op_sample reduce_tree_samples[] = {
    {.name = "sums",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 5, 3), SX_SAMPLE_F32(SX_FILL_NORMAL, 4)},
     .n_inputs = 2,
     .attrs = HOW(SX_COMBINE_SUM)},
    {.name = "mean",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 2)},
     .n_inputs = 1,
     .attrs = HOW(SX_COMBINE_MEAN)},
    {.name = "max",
     .inputs = {SX_SAMPLE_I32(9, 3, 5)},
     .n_inputs = 1,
     .attrs = HOW(SX_COMBINE_MAX)},
    {.name = "and",
     .inputs = {{.type = SX_TYPE_LITERAL_(SX_BOOL, 3, 2), .fill = SX_FILL_BOOL}},
     .n_inputs = 1,
     .attrs = HOW(SX_COMBINE_AND)},
    {.name = "moments",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 3), SX_SAMPLE_F32(SX_FILL_POSITIVE, 4, 3)},
     .n_inputs = 2,
     .attrs = HOW(SX_COMBINE_MOMENTS)},
};

const sx_op_def sx_op_reduce_tree = {
    SX_OP_NAMED(reduce_tree),
    .n_in = SX_VARIADIC,
    .n_out = SX_VARIADIC,
    .flags = SX_OP_SUM | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_reduce_tree_attrs, reduce_tree_attrs),
    .infer = reduce_tree_infer,
    .host = reduce_tree_host,
    SX_OP_SAMPLES(reduce_tree_samples),
};
