/* sparse_segment: rows of a table, summed by segment.
 *
 *   y[s] = sum of data[indices[i]] over all i with segments[i] = s
 *   mean: divided by their number n, sqrt_n: by its square root; 0 where there are none
 *
 *   data       [rows, ...], float32 or float64; of sums also int32, int64
 *   indices    int32 or int64 [n]
 *   segments   int32 or int64 [n], from 0 on, ascending
 *   count      the number of segments, a scalar; without it as many as there are
 *   returns    of data's dtype, [segments, ...]
 *
 * Errors   INVALID_ARGUMENT    dtypes, ranks; (running) an index is out of range, segments descend
 *                               or are not below count
 *          RESOURCE_EXHAUSTED  (running) too many segments
 * Numbers  accumulates in double
 * Source   TensorFlow SparseSegmentSum, -Mean, -SqrtN, and those of names ending in
 *          WithNumSegments */
#include "graph/ops/host_ops.h"

enum { SUM, MEAN, SQRT_N };

typedef struct sx_sparse_segment_attrs {
    int32_t how;
} sx_sparse_segment_attrs;

static const char *const how_names[] = {"sum", "mean", "sqrt_n", NULL};
static const sx_attr_def sparse_segment_attrs[] = {
    SX_ATTR_NAMES(sx_sparse_segment_attrs, how, how_names)};

static sx_status sparse_segment_infer(sx_infer_context *c)
{
    const sx_sparse_segment_attrs *attrs = c->attrs;
    if (c->n_inputs != 3 && c->n_inputs != 4) {
        return sx_error(SX_INVALID_ARGUMENT, "%d inputs, expected 3 or 4", c->n_inputs);
    }
    const sx_type *data = &c->inputs[0];
    const bool integers = data->dtype == SX_I32 || data->dtype == SX_I64;
    if ((data->dtype != SX_F32 && data->dtype != SX_F64 && !(integers && attrs->how == SUM)) ||
        data->rank == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "data is %s, expected a table of float32 or float64%s",
                        SX_TEXT(data), attrs->how == SUM ? ", int32 or int64" : "");
    }
    SX_TRY(sx_require_integers("indices", &c->inputs[1], 1, "[n]"));
    SX_TRY(sx_require_integers("segments", &c->inputs[2], 1, "[n]"));
    if (c->n_inputs == 4) {
        SX_TRY(sx_require_integers("count", &c->inputs[3], 0, "a scalar"));
    }
    c->outputs[0] = *data;
    if (data->rank > 0) {
        c->outputs[0].dims[0] = SX_UNKNOWN_DIM;
    }
    return SX_OK;
}

/* dy of its segment goes to each row, divided as the sum was. */
static void sparse_segment_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    const sx_sparse_segment_attrs *attrs = g->attrs;
    const sx_gather_attrs take = {.axis = 0};
    const sx_value segments = g->x[2];
    const sx_type x = sx_type_of_value(b, g->x[0]);
    const sx_gather_grad_attrs rows = {.rows = x.dims[0]};
    sx_value dy = g->dy[0];
    if (attrs->how != SUM) {
        sx_type per_row = sx_type_of_value(b, dy);
        for (int d = 1; d < per_row.rank; d++) {
            per_row.dims[d] = 1;
        }
        const sx_shape_attrs n = {.shape = {1, {sx_type_of_value(b, segments).dims[0]}}};
        const sx_value one = sx_scalar(b, x.dtype, 1);
        const sx_value ones = sx_build_op(b, broadcast_to, &n, one);
        const sx_shape_attrs all = {.shape = {1, {per_row.dims[0]}}};
        sx_value terms = sx_build_op(b, broadcast_to, &all, sx_scalar(b, x.dtype, 0));
        terms = sx_build_op(b, maximum, NULL, sx_add_rows(b, terms, segments, ones), one);
        terms = attrs->how == MEAN ? terms : sx_build_op(b, sqrt, NULL, terms);
        dy = sx_build_op(b, div, NULL, dy, sx_reshape_to(b, terms, &per_row));
    }
    g->dx[0] =
        sx_build_op(b, gather_grad, &rows, g->x[1], sx_build_op(b, gather, &take, dy, segments));
}

static sx_status sparse_segment_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const int64_t n = c->in[1].type.dims[0];
    const int64_t *segments = c->in[2].i;
    bool sound = c->in[2].type.dims[0] == n;
    const int64_t last = sound && n > 0 ? segments[n - 1] : -1;
    sound = sound && last < INT64_MAX;
    const int64_t there = sound ? last + 1 : 0, count = c->n_in == 4 ? c->in[3].i[0] : there;
    sound = sound && count >= there && (n == 0 || segments[0] >= 0);
    for (int64_t k = 1; k < n && sound; k++) {
        sound = segments[k] >= segments[k - 1];
    }
    for (int64_t k = 0; k < n && sound; k++) {
        sound = c->in[1].i[k] >= 0 && c->in[1].i[k] < c->in[0].type.dims[0];
    }
    if (!sound) {
        return sx_error(
            SX_INVALID_ARGUMENT,
            "indices %s and segments %s are not rows of %s in segments that ascend from "
            "0, at most to %lld",
            SX_TEXT(&c->in[1].type), SX_TEXT(&c->in[2].type), SX_TEXT(&c->in[0].type),
            (long long)count);
    }
    out_types[0] = c->in[0].type;
    out_types[0].dims[0] = count;
    return sx_require_made("the result", &out_types[0]);
}

static sx_status sparse_segment_host(const sx_kernel_call *c)
{
    const sx_sparse_segment_attrs *attrs = c->attrs;
    const sx_type *data = &c->in[0].type;
    const int64_t width = sx_dims_product(data, 1, data->rank), n = c->in[1].type.dims[0];
    sx_host_fill(c, 0, 0);
    for (int64_t k = 0, begin = 0; k < n; k++) {
        const int64_t from = c->in[1].i[k] * width, segment = c->in[2].i[k], to = segment * width;
        for (int64_t j = 0; j < width; j++) {
            if (sx_carrier_of(data->dtype) == SX_CARRIER_F) {
                c->out[0].f[to + j] += c->in[0].f[from + j];
            } else {
                c->out[0].i[to + j] = SX_WRAP(c->out[0].i[to + j], +, c->in[0].i[from + j]);
            }
        }
        if (k + 1 < n && c->in[2].i[k + 1] == segment) {
            continue;
        }
        const double terms = (double)(k + 1 - begin);
        const double by = attrs->how == MEAN ? terms : attrs->how == SQRT_N ? sqrt(terms) : 1;
        for (int64_t j = 0; j < width && by != 1; j++) {
            c->out[0].f[to + j] /= by;
        }
        begin = k + 1;
    }
    return SX_OK;
}

static sx_status mean_from_tf(const sx_tf_node *n, void *out)
{
    (void)n;
    ((sx_sparse_segment_attrs *)out)->how = MEAN;
    return SX_OK;
}

static sx_status sqrt_n_from_tf(const sx_tf_node *n, void *out)
{
    (void)n;
    ((sx_sparse_segment_attrs *)out)->how = SQRT_N;
    return SX_OK;
}

static void sparse_segment_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    static const char *const names[] = {"SparseSegmentSum", "SparseSegmentMean",
                                        "SparseSegmentSqrtN"};
    const sx_sparse_segment_attrs *attrs = op->attrs;
    if (op->n_in == 4) {
        sx_tf_fail(
            w, sx_error(SX_UNIMPLEMENTED, "%s: a number of segments is not exported", op->name));
        return;
    }
    sx_tf_same(w, op, &sx_op_sparse_segment, names[attrs->how],
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype),
                           sx_tf_attr_type("Tidx", (int)op->in_types[1].dtype),
                           sx_tf_attr_type("Tsegmentids", (int)op->in_types[2].dtype)));
}

static const double rows[] = {3, 0, 0, 2, 1}, segments[] = {0, 0, 2, 2, 2};
#define SEGMENTS(name_, how_)                                                            \
    {                                                                                    \
        .name = (name_),                                                                 \
        .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 3), SX_SAMPLE_LIST(SX_I64, rows, 5), \
                   SX_SAMPLE_LIST(SX_I32, segments, 5)},                                 \
        .n_inputs = 3, .attrs = &(const sx_sparse_segment_attrs)                         \
        {                                                                                \
            .how = (how_)                                                                \
        }                                                                                \
    }
static const sx_op_sample sparse_segment_samples[] = {SEGMENTS("sum", SUM), SEGMENTS("mean", MEAN),
                                                      SEGMENTS("sqrt_n", SQRT_N)};

const sx_op_def sx_op_sparse_segment = {
    SX_OP_NAMED(sparse_segment),
    .n_in = SX_VARIADIC,
    .n_out = 1,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_sparse_segment_attrs, sparse_segment_attrs),
    .infer = sparse_segment_infer,
    .grad = sparse_segment_gradient,
    .host = sparse_segment_host,
    .host_types = sparse_segment_host_types,
    .to_tf = sparse_segment_to_tf,
    SX_FROM_TF({.op = "SparseSegmentSum"}, {.op = "SparseSegmentMean", .attrs = mean_from_tf},
               {.op = "SparseSegmentSqrtN", .attrs = sqrt_n_from_tf},
               {.op = "SparseSegmentSumWithNumSegments"},
               {.op = "SparseSegmentMeanWithNumSegments", .attrs = mean_from_tf},
               {.op = "SparseSegmentSqrtNWithNumSegments", .attrs = sqrt_n_from_tf}),
    SX_OP_SAMPLES(sparse_segment_samples),
};
