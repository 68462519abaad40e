/* isotonic_regression: the closest numbers, by their squared distances, that do not increase along
 * the last dimension: means of runs of x.
 *
 *   x              [..., n], numbers
 *   output_dtype   a float
 *   returns        output_dtype [..., n], and int32 [..., n]: which run it is in, from 0
 *
 * Errors   INVALID_ARGUMENT  dtypes, a scalar
 * Source   TensorFlow IsotonicRegression (pools of adjacent violators) */
#include "graph/ops/linear_algebra.h"

typedef struct sx_isotonic_regression_attrs {
    sx_dtype output_dtype;
} sx_isotonic_regression_attrs;

static const sx_attr_def isotonic_regression_attrs[] = {
    SX_ATTR_TF(sx_isotonic_regression_attrs, output_dtype, SX_ATTR_DTYPE, .tf_number = SX_F32)};

static sx_status isotonic_regression_infer(sx_infer_context *c)
{
    const sx_isotonic_regression_attrs *a = c->attrs;
    const sx_type *x = &c->inputs[0];
    const sx_carrier carrier = sx_carrier_of(x->dtype);
    if (!sx_dtype_is_float(a->output_dtype) || x->rank == 0 ||
        (carrier != SX_CARRIER_F && carrier != SX_CARRIER_I)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "x is %s and output_dtype %s, expected numbers with a sign along a "
                        "dimension, and a float",
                        SX_TEXT(x), sx_dtype_name(a->output_dtype));
    }
    c->outputs[0] = c->outputs[1] = *x;
    c->outputs[0].dtype = a->output_dtype;
    c->outputs[1].dtype = SX_I32;
    return SX_OK;
}

/* A run: its sum, and where it lies. */
typedef struct run {
    double sum;
    int64_t from, to;
} run;

static double mean_of(const run *r)
{
    return r->sum / (double)(r->to - r->from);
}

/* Each number of a run gets the mean of its dy. */
static void isotonic_regression_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    if (!sx_value_is(g->dy[0])) {
        return;
    }
    const sx_value runs = g->y[1];
    const sx_value same = sx_cast_like(
        b, sx_build_op(b, equal, NULL, sx_as_column(b, runs), sx_as_row(b, runs)), g->dy[0]);
    const sx_reduce_attrs last = {.axes = {1, {sx_type_of_value(b, same).rank - 1}}};
    const sx_value sum =
        sx_build_op(b, reduce_sum, &last, sx_build_op(b, mul, NULL, same, sx_as_row(b, g->dy[0])));
    const sx_value mean = sx_build_op(b, div, NULL, sum, sx_build_op(b, reduce_sum, &last, same));
    g->dx[0] = sx_cast_like(b, mean, g->x[0]);
}

static sx_status isotonic_regression_host(const sx_kernel_call *c)
{
    const sx_type *x = &c->in[0].type;
    const int64_t n = x->dims[x->rank - 1], rows = sx_dims_product(x, 0, x->rank - 1);
    run *runs = sx_arena_array(c->arena, n + 1, run);
    if (runs == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    for (int64_t row = 0; row < rows; row++) {
        int64_t count = 0;
        for (int64_t i = 0; i < n; i++) {
            runs[count++] = (run){sx_host_get(&c->in[0], row * n + i), i, i + 1};
            while (count > 1 && mean_of(&runs[count - 1]) > mean_of(&runs[count - 2])) {
                runs[count - 2].sum += runs[count - 1].sum;
                runs[count - 2].to = i + 1;
                count--;
            }
        }
        for (int64_t k = 0; k < count; k++) {
            for (int64_t i = runs[k].from; i < runs[k].to; i++) {
                c->out[0].f[row * n + i] = mean_of(&runs[k]);
                c->out[1].i[row * n + i] = k;
            }
        }
    }
    return SX_OK;
}

static void isotonic_regression_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_isotonic_regression, "IsotonicRegression",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const double numbers[] = {3, 1, 2, 2, 5, 0, -1, 4};
static const sx_op_sample isotonic_regression_samples[] = {
    {.name = "floats",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 3, 9)},
     .n_inputs = 1,
     .attrs = &(const sx_isotonic_regression_attrs){SX_F32}},
    {.name = "integers",
     .inputs = {SX_SAMPLE_LIST(SX_I32, numbers, 2, 4)},
     .n_inputs = 1,
     .attrs = &(const sx_isotonic_regression_attrs){SX_F64}},
};

const sx_op_def sx_op_isotonic_regression = {
    SX_OP_NAMED(isotonic_regression),
    .n_in = 1,
    .n_out = 2,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_isotonic_regression_attrs, isotonic_regression_attrs),
    .infer = isotonic_regression_infer,
    .grad = isotonic_regression_gradient,
    .host = isotonic_regression_host,
    .to_tf = isotonic_regression_to_tf,
    SX_FROM_TF({.op = "IsotonicRegression"}),
    SX_OP_SAMPLES(isotonic_regression_samples),
};
