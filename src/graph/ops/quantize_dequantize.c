/* quantize_dequantize: x as it would be after a conversion to integers of num_bits bits and back, 0
 * being 0.
 *
 *   y = round(clip(x, low', high') scale) / scale
 *   scale: the greatest by which low and high stay among the integers; low', high': the range that
 *   the integers then have
 *
 *   dx = dy where low <= x <= high, otherwise 0; with straight_through dy everywhere
 *
 *   x                 floats, any shape
 *   low, high         of x's dtype: scalars, or vectors along `axis`, which is not the batch
 *   num_bits          1 to 62; at least 2 for signed integers
 *   axis              of x; -1 for scalars
 *   signed_input      the integers are signed
 *   narrow_range      without the lowest of them, if they are
 *   range_given       false: low and high are the extremes of x, and nothing is clipped
 *   half_up           halves are rounded upwards; otherwise to the even integer
 *   straight_through  of the gradient
 *   returns           x's type
 *
 * low and high have no gradient.
 * Errors   INVALID_ARGUMENT  dtypes, shapes, num_bits
 * Numbers  float32 and float64: each step in x's dtype, as in TensorFlow: the same integers. 16-bit
 *          floats in float32, rounded once
 * Source   TensorFlow QuantizeAndDequantizeV4 (V2 and V3: straight_through) */
#ifdef SX_PUBLIC
typedef struct sx_quantize_dequantize_args {
    size_t struct_size;
    int num_bits;          /* 0 = 8 */
    bool unsigned_input;   /* the integers are not signed */
    bool narrow_range;     /* without the lowest of the integers */
    bool half_up;          /* halves are rounded upwards, not to the even integer */
    bool straight_through; /* the gradient passes outside of the range, too */
    bool per_channel;      /* low and high are vectors along `axis` */
    int axis;              /* -1 = the last */
} sx_quantize_dequantize_args;

/* x, clipped to about [low, high], as after a conversion to integers and back that keeps 0. */
sx_value sx_quantize_dequantize(sx_builder *b, sx_value x, sx_value low, sx_value high,
                                const sx_quantize_dequantize_args *args);
#endif
#ifdef SX_ATTRS
typedef struct sx_quantize_dequantize_attrs {
    int64_t num_bits, axis;
    bool signed_input, narrow_range, range_given, half_up, straight_through;
} sx_quantize_dequantize_attrs;
#endif

#include "graph/ops/quantize.h"

static const sx_attr_def quantize_dequantize_attrs[] = {
    SX_ATTR_TF(sx_quantize_dequantize_attrs, num_bits, SX_ATTR_INT, .tf_number = 8),
    SX_ATTR_TF(sx_quantize_dequantize_attrs, axis, SX_ATTR_INT, .tf_number = -1),
    SX_ATTR_TF(sx_quantize_dequantize_attrs, signed_input, SX_ATTR_BOOL, .tf_number = 1),
    SX_ATTR_TF(sx_quantize_dequantize_attrs, narrow_range, SX_ATTR_BOOL, .tf_number = 0),
    SX_ATTR_TF(sx_quantize_dequantize_attrs, range_given, SX_ATTR_BOOL, .tf_number = 0),
    SX_ATTR(sx_quantize_dequantize_attrs, half_up, SX_ATTR_BOOL),
    SX_ATTR(sx_quantize_dequantize_attrs, straight_through, SX_ATTR_BOOL),
};

static sx_status quantize_dequantize_infer(sx_infer_context *c)
{
    const sx_quantize_dequantize_attrs *attrs = c->attrs;
    const int64_t least = attrs->signed_input ? 2 : 1;
    SX_TRY(sx_require_float("x", &c->inputs[0]));
    if (attrs->num_bits < least || attrs->num_bits > 62) {
        return sx_error(SX_INVALID_ARGUMENT, "num_bits is %lld, expected %lld to 62",
                        (long long)attrs->num_bits, (long long)least);
    }
    SX_TRY(sx_infer_quantize_range(&c->inputs[0], &c->inputs[1], &c->inputs[2], attrs->axis));
    c->outputs[0] = c->inputs[0];
    return SX_OK;
}

static void quantize_dequantize_grad(sx_grad *g)
{
    const sx_quantize_dequantize_attrs *attrs = g->attrs;
    const sx_type x = sx_type_of_value(g->b, g->x[0]);
    if (!g->needed[0] || attrs->straight_through) {
        g->dx[0] = g->dy[0];
        return;
    }
    sx_value range[2] = {g->x[1], g->x[2]};
    sx_shape_attrs along = {.shape = {.n = x.rank}};
    for (int i = 0; i < 2 && sx_type_of_value(g->b, range[i]).rank > 0; i++) {
        for (int d = 0; d < x.rank; d++) {
            along.shape.v[d] = d == attrs->axis ? x.dims[d] : 1;
        }
        range[i] = sx_build_op(g->b, reshape, &along, range[i]);
    }
    const sx_value above = sx_build_op(g->b, greater_equal, NULL, g->x[0], range[0]);
    const sx_value below = sx_build_op(g->b, less_equal, NULL, g->x[0], range[1]);
    const sx_value inside = sx_build_op(g->b, logical_and, NULL, above, below);
    g->dx[0] = sx_build_op(g->b, select, NULL, inside, g->dy[0], sx_scalar_like(g->b, g->x[0], 0));
}

static sx_status quantize_dequantize_host(const sx_kernel_call *c)
{
    const sx_quantize_dequantize_attrs *attrs = c->attrs;
    const sx_type *x = &c->in[0].type;
    const bool wide = x->dtype == SX_F64;
    const int64_t n = sx_type_elems(x);
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = sx_quantize_channel(x, &c->in[1].type, attrs->axis, i);
        double v = c->in[0].f[i];
        sx_quantize_grid q;
        sx_quantize_grid_of(attrs, wide, c->in[1].f[k], c->in[2].f[k], &q);
        if (attrs->range_given) {
            v = v > q.high ? q.high : v;
            v = v < q.low ? q.low : v;
        }
        v = wide ? v * q.scale : (double)((float)v * (float)q.scale);
        v = !attrs->half_up ? rint(v) : wide ? floor(v + 0.5) : (double)floorf((float)v + 0.5f);
        c->out[0].f[i] = wide ? v * q.inverse : (double)((float)v * (float)q.inverse);
    }
    return SX_OK;
}

static void quantize_dequantize_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_quantize_dequantize_attrs *attrs = op->attrs;
    sx_tf_attr list[8];
    int n = 0;
    list[n++] = sx_tf_attr_type("T", (int)op->in_types[0].dtype);
    if (attrs->half_up) {
        list[n++] = sx_tf_attr_string("round_mode", "HALF_UP");
    }
    sx_tf_same(w, op, &sx_op_quantize_dequantize,
               attrs->straight_through ? "QuantizeAndDequantizeV2" : "QuantizeAndDequantizeV4",
               (sx_tf_attr_list){list, n});
}

static sx_status quantize_dequantize_from_tf(const sx_tf_node *n, void *out)
{
    sx_quantize_dequantize_attrs *attrs = out;
    attrs->half_up = sx_tf_read_is(n, "round_mode", "HALF_UP", false);
    if (!attrs->range_given) {
        return sx_error(SX_UNIMPLEMENTED, "range_given is false: the importer adds the extremes");
    }
    return SX_OK;
}

/* V3, where range_given is true by default. */
static sx_status v3_from_tf(const sx_tf_node *n, void *out)
{
    sx_quantize_dequantize_attrs *attrs = out;
    attrs->straight_through = true;
    attrs->range_given = sx_tf_read_bool(n, "range_given", true);
    return quantize_dequantize_from_tf(n, out);
}

static sx_status straight_from_tf(const sx_tf_node *n, void *out)
{
    ((sx_quantize_dequantize_attrs *)out)->straight_through = true;
    return quantize_dequantize_from_tf(n, out);
}

#define GIVEN(bits, axis_, ...)             \
    (&(const sx_quantize_dequantize_attrs){ \
        .num_bits = (bits), .axis = (axis_), .range_given = true, __VA_ARGS__})
static const double low[] = {-1.1}, high[] = {1.3}, zero[] = {0}, lows[] = {-1, -0.3, -2},
                    highs[] = {0.5, 0.8, 0.1};
#define SCALAR(numbers) SX_SAMPLE_ONE(SX_F32, numbers)
static const sx_op_sample quantize_dequantize_samples[] = {
    /* a staircase: central differences see its steps */
    {.name = "scalars",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 7), SCALAR(low), SCALAR(high)},
     .n_inputs = 3,
     .attrs = GIVEN(8, -1, .signed_input = true),
     .no_grad_check = true},
    {.name = "unsigned",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 3, -2, 5), SCALAR(zero), SCALAR(high)},
     .n_inputs = 3,
     .attrs = GIVEN(4, -1, .half_up = true),
     .no_grad_check = true},
    {.name = "channels",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 4, 3), SX_SAMPLE_LIST(SX_F32, lows, 3),
                SX_SAMPLE_LIST(SX_F32, highs, 3)},
     .n_inputs = 3,
     .attrs = GIVEN(8, 2, .signed_input = true, .narrow_range = true),
     .no_grad_check = true},
    {.name = "inner_axis",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 3, 4), SX_SAMPLE_LIST(SX_F32, lows, 3),
                SX_SAMPLE_LIST(SX_F32, highs, 3)},
     .n_inputs = 3,
     .attrs = GIVEN(5, 1, .signed_input = true, .straight_through = true),
     .no_grad_check = true},
    {.name = "no_range",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH), SCALAR(zero), SCALAR(zero)},
     .n_inputs = 3,
     .attrs = GIVEN(8, -1, .signed_input = true, .half_up = true),
     .no_grad_check = true},
};

sx_value sx_quantize_dequantize_at(sx_builder *b, sx_value x, sx_value low_value,
                                   sx_value high_value, const sx_quantize_dequantize_args *args,
                                   const char *file, int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_quantize_dequantize_args, args);
    const int rank = sx_type_of_value(b, x).rank;
    const sx_quantize_dequantize_attrs attrs = {
        .num_bits = args->num_bits != 0 ? args->num_bits : 8,
        .axis = args->per_channel ? sx_normalize_axis(args->axis, rank) : -1,
        .signed_input = !args->unsigned_input,
        .narrow_range = args->narrow_range,
        .range_given = true,
        .half_up = args->half_up,
        .straight_through = args->straight_through,
    };
    return sx_build_at(b, &sx_op_quantize_dequantize, &attrs,
                       (const sx_value[]){x, low_value, high_value}, 3, file, line);
}

const sx_op_def sx_op_quantize_dequantize = {
    SX_OP_NAMED(quantize_dequantize),
    .n_in = 3,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    SX_OP_ATTRS(sx_quantize_dequantize_attrs, quantize_dequantize_attrs),
    .infer = quantize_dequantize_infer,
    .grad = quantize_dequantize_grad,
    .host = quantize_dequantize_host,
    .to_tf = quantize_dequantize_to_tf,
    SX_FROM_TF(
        {.op = "QuantizeAndDequantizeV4", .attrs = quantize_dequantize_from_tf},
        {.op = "QuantizeAndDequantizeV2", .attrs = straight_from_tf},
        {.op = "QuantizeAndDequantizeV3", .operands = {{3, "num_bits"}}, .attrs = v3_from_tf}),
    SX_OP_SAMPLES(quantize_dequantize_samples),
};
