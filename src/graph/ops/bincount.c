/* bincount: how often each number is there, or the sum of its weights; of the whole tensor, of each
 * row, or of each row of a ragged tensor.
 *
 *   splits         int64 [rows + 1]: of ragged rows; only there if `rows` is ragged
 *   x              int32 or int64; numbers of `size` and more do not count
 *   size           of x's dtype, a scalar or one number
 *   weights        int32, int64, float32 or float64: x's shape, or empty: all 1
 *   rows           all: any rank; each: [rows, n] or [n]; ragged: [n], cut by splits
 *   binary_output  1 for each number that is there
 *   returns        of weights' dtype: [size] or [rows, size]
 *
 * Errors   INVALID_ARGUMENT    dtypes, ranks; (running) a negative number or size
 *          RESOURCE_EXHAUSTED  (running) the result is too large
 * Source   TensorFlow Bincount, DenseBincount, RaggedBincount */
#ifdef SX_ATTRS
enum { SX_COUNTED_ALL, SX_COUNTED_EACH, SX_COUNTED_RAGGED };
typedef struct sx_bincount_attrs {
    int32_t rows; /* SX_COUNTED_ */
    bool binary_output;
} sx_bincount_attrs;
#endif

#include "graph/ops/host_ops.h"

static const char *const row_names[] = {"all", "each", "ragged", NULL};
static const sx_attr_def bincount_attrs[] = {
    SX_ATTR_NAMES(sx_bincount_attrs, rows, row_names),
    SX_ATTR_TF(sx_bincount_attrs, binary_output, SX_ATTR_BOOL),
};

static sx_status bincount_infer(sx_infer_context *c)
{
    const sx_bincount_attrs *attrs = c->attrs;
    const int first = attrs->rows == SX_COUNTED_RAGGED;
    if (c->n_inputs != 3 + first) {
        return sx_error(SX_INVALID_ARGUMENT, "%d inputs, expected %d", c->n_inputs, 3 + first);
    }
    const sx_type *x = &c->inputs[first], *size = &c->inputs[first + 1],
                  *weights = &c->inputs[first + 2];
    SX_TRY(sx_require_index("x", x));
    SX_TRY(sx_require_dtype("size", size, x->dtype));
    if (first) {
        SX_TRY(sx_require_maybe("splits", &c->inputs[0], SX_I64, 1, "[rows + 1]"));
    }
    if ((attrs->rows == SX_COUNTED_EACH && x->rank >= 0 && x->rank != 1 && x->rank != 2) ||
        (attrs->rows == SX_COUNTED_RAGGED && x->rank >= 0 && x->rank != 1) || size->rank > 1 ||
        (weights->dtype != SX_F32 && weights->dtype != SX_F64 && weights->dtype != SX_I32 &&
         weights->dtype != SX_I64)) {
        return sx_error(SX_INVALID_ARGUMENT, "x is %s, size %s, weights are %s", SX_TEXT(x),
                        SX_TEXT(size), SX_TEXT(weights));
    }
    const bool known = attrs->rows != SX_COUNTED_EACH || x->rank >= 0;
    const bool matrix =
        attrs->rows == SX_COUNTED_RAGGED || (attrs->rows == SX_COUNTED_EACH && x->rank == 2);
    c->outputs[0] = !known   ? sx_unknown_shape(weights->dtype)
                    : matrix ? sx_type_of(weights->dtype, SX_UNKNOWN_DIM, SX_UNKNOWN_DIM)
                             : sx_type_of(weights->dtype, SX_UNKNOWN_DIM);
    if (attrs->rows == SX_COUNTED_EACH && x->rank == 2) {
        c->outputs[0].dims[0] = x->dims[0];
    }
    return SX_OK;
}

static sx_status bincount_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_bincount_attrs *attrs = c->attrs;
    const int first = attrs->rows == SX_COUNTED_RAGGED;
    const sx_type *x = &c->in[first].type, *weights = &c->in[first + 2].type;
    const int64_t sizes = sx_type_elems(&c->in[first + 1].type);
    const int64_t size = sizes == 1 ? c->in[first + 1].i[0] : -1;
    const int64_t n = sx_type_elems(x), n_splits = first ? sx_type_elems(&c->in[0].type) : 1;
    bool sound =
        size >= 0 && (sx_type_elems(weights) == 0 || sx_same_dims(weights, x)) && n_splits > 0;
    for (int64_t k = 0; first && sound && k < n_splits; k++) {
        sound = k == 0 ? c->in[0].i[0] == 0 : c->in[0].i[k] >= c->in[0].i[k - 1];
    }
    if (!sound || (first && c->in[0].i[n_splits - 1] != n)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "size is %lld, x %s and weights %s; expected a size from 0 on, weights of "
                        "x's shape or none, and splits that end with x",
                        (long long)size, SX_TEXT(x), SX_TEXT(weights));
    }
    out_types[0] = first || (attrs->rows == SX_COUNTED_EACH && x->rank == 2)
                       ? sx_type_of(weights->dtype, first ? n_splits - 1 : x->dims[0], size)
                       : sx_type_of(weights->dtype, size);
    return sx_require_made("the result", &out_types[0]);
}

static sx_status bincount_host(const sx_kernel_call *c)
{
    const sx_bincount_attrs *attrs = c->attrs;
    const int first = attrs->rows == SX_COUNTED_RAGGED;
    const sx_host_tensor *x = &c->in[first], *weights = &c->in[first + 2], *y = &c->out[0];
    const int64_t size = c->in[first + 1].i[0], n = sx_type_elems(&x->type);
    const int64_t width = attrs->rows == SX_COUNTED_EACH && x->type.rank == 2 ? x->type.dims[1] : n;
    const bool weighted = sx_type_elems(&weights->type) > 0;
    sx_host_fill(c, 0, 0);
    for (int64_t k = 0, row = 0; k < n; k++) {
        const int64_t bin = x->i[k];
        while (first && c->in[0].i[row + 1] <= k) {
            row++;
        }
        row = first || k < width ? row : k / width;
        if (bin < 0) {
            return sx_error(SX_INVALID_ARGUMENT, "element %lld of x is %lld, expected 0 or more",
                            (long long)k, (long long)bin);
        }
        if (bin >= size) {
            continue;
        }
        const int64_t at = row * size + bin;
        if (attrs->binary_output) {
            sx_host_set(y, at, 1);
        } else if (sx_carrier_of(y->type.dtype) == SX_CARRIER_F) {
            y->f[at] += weighted ? weights->f[k] : 1;
        } else {
            y->i[at] = SX_WRAP(y->i[at], +, weighted ? weights->i[k] : 1);
        }
    }
    return SX_OK;
}

static void bincount_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    static const char *const tf_ops[] = {"Bincount", "DenseBincount", "RaggedBincount"};
    const sx_bincount_attrs *attrs = op->attrs;
    const sx_tf_attr types[] = {
        sx_tf_attr_type("T", (int)op->out_types[0].dtype),
        sx_tf_attr_type("Tidx", (int)op->in_types[attrs->rows == SX_COUNTED_RAGGED].dtype)};
    sx_tf_same(w, op, &sx_op_bincount, tf_ops[attrs->rows],
               (sx_tf_attr_list){types, attrs->rows == 0 ? 1 : 2});
}

static sx_status each_from_tf(const sx_tf_node *n, void *out)
{
    (void)n;
    ((sx_bincount_attrs *)out)->rows = SX_COUNTED_EACH;
    return SX_OK;
}

static sx_status ragged_from_tf(const sx_tf_node *n, void *out)
{
    (void)n;
    ((sx_bincount_attrs *)out)->rows = SX_COUNTED_RAGGED;
    return SX_OK;
}

static const double numbers[] = {3, 0, 0, 9, 5, 3}, size[] = {6}, splits[] = {0, 2, 2, 6};
static const sx_op_sample bincount_samples[] = {
    {.name = "all",
     .inputs = {SX_SAMPLE_LIST(SX_I32, numbers, 2, 3), SX_SAMPLE_ONE(SX_I32, size),
                SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3)},
     .n_inputs = 3},
    {.name = "each",
     .inputs = {SX_SAMPLE_LIST(SX_I32, numbers, 2, 3), SX_SAMPLE_ONE(SX_I32, size),
                SX_SAMPLE_I32(5, 0)},
     .n_inputs = 3,
     .attrs = &(const sx_bincount_attrs){.rows = SX_COUNTED_EACH}},
    {.name = "ragged",
     .inputs = {SX_SAMPLE_LIST(SX_I64, splits, 4), SX_SAMPLE_LIST(SX_I32, numbers, 6),
                SX_SAMPLE_ONE(SX_I32, size), SX_SAMPLE_F32(SX_FILL_NORMAL, 6)},
     .n_inputs = 4,
     .attrs = &(const sx_bincount_attrs){.rows = SX_COUNTED_RAGGED, .binary_output = true}},
};

const sx_op_def sx_op_bincount = {
    SX_OP_NAMED(bincount),
    .n_in = SX_VARIADIC,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_bincount_attrs, bincount_attrs),
    .infer = bincount_infer,
    .host = bincount_host,
    .host_types = bincount_host_types,
    .to_tf = bincount_to_tf,
    SX_FROM_TF({.op = "Bincount"}, {.op = "DenseBincount", .attrs = each_from_tf},
               {.op = "RaggedBincount", .attrs = ragged_from_tf}),
    SX_OP_SAMPLES(bincount_samples),
};
