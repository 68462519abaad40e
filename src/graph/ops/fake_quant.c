/* fake_quant: x as it would be after a conversion to integers of num_bits bits and back.
 *
 *   scale = (high - low) / (q1 - q0),  q0 = 0, or 1 with narrow_range,  q1 = 2^num_bits - 1
 *   low', high' = low and high, moved by less than a step so that 0 is on the grid
 *   y = floor((clip(x, low', high') - low') / scale - floor(-low' / scale + 1/2) + 1/2) scale
 *
 *   dx    = dy where low' <= x <= high', otherwise 0
 *   dlow  = sum of dy where x < low',  dhigh = sum of dy where x > high'
 *
 *   x             f32, any shape
 *   low, high     f32: scalars, or [C] of the last axis of x, which is not the batch then. 0 and 0
 *                 give 0, and all of the gradient goes to x
 *   num_bits      2 to 16
 *   narrow_range  without the lowest of the integers
 *   returns       x's type
 *
 * Errors   INVALID_ARGUMENT  dtypes, shapes, num_bits
 * Numbers  each step in float32, as in TensorFlow: the same integers
 * Source   TensorFlow FakeQuantWithMinMaxVars, FakeQuantWithMinMaxVarsPerChannel */
#ifdef SX_PUBLIC
typedef struct sx_fake_quant_args {
    size_t struct_size;
    int num_bits;      /* 2 to 16; 0 = 8 */
    bool narrow_range; /* without the lowest of the integers */
} sx_fake_quant_args;

/* x as after a conversion to integers and back: training that knows of it learns to bear it. low
 * and high are scalars, or vectors with a number for each of the last axis; they have gradients,
 * too. */
sx_value sx_fake_quant(sx_builder *b, sx_value x, sx_value low, sx_value high,
                       const sx_fake_quant_args *args);
#endif
#ifdef SX_ATTRS
/* fake_quant, fake_quant_grad */
typedef struct sx_fake_quant_attrs {
    int64_t num_bits;
    bool narrow_range;
} sx_fake_quant_attrs;
#endif

#include "graph/ops/quantize.h"

static const sx_attr_def fake_quant_attrs[] = {
    SX_ATTR_TF(sx_fake_quant_attrs, num_bits, SX_ATTR_INT, .tf_number = 8),
    SX_ATTR_TF(sx_fake_quant_attrs, narrow_range, SX_ATTR_BOOL, .tf_number = 0),
};

static sx_status fake_quant_infer(sx_infer_context *c)
{
    const sx_fake_quant_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0];
    if (x->dtype != SX_F32) {
        return sx_error(SX_INVALID_ARGUMENT, "x is %s, expected float32", SX_TEXT(x));
    }
    if (attrs->num_bits < 2 || attrs->num_bits > 16) {
        return sx_error(SX_INVALID_ARGUMENT, "num_bits is %lld, expected 2 to 16",
                        (long long)attrs->num_bits);
    }
    SX_TRY(sx_infer_quantize_range(x, &c->inputs[1], &c->inputs[2], x->rank - 1));
    c->outputs[0] = *x;
    return SX_OK;
}

static void fake_quant_gradient(sx_grad *g)
{
    const sx_value all =
        sx_build_op(g->b, fake_quant_grad, g->attrs, g->dy[0], g->x[0], g->x[1], g->x[2]);
    for (int i = 0; i < 3; i++) {
        g->dx[i] = sx_output_of(all, i);
    }
}

static sx_status fake_quant_host(const sx_kernel_call *c)
{
    const sx_type *x = &c->in[0].type;
    const int64_t n = sx_type_elems(x);
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = sx_quantize_channel(x, &c->in[1].type, x->rank - 1, i);
        const float v = (float)c->in[0].f[i];
        sx_fake_quant_grid q;
        sx_fake_quant_grid_of(c->attrs, (float)c->in[1].f[k], (float)c->in[2].f[k], &q);
        const float capped = v > q.high ? q.high : v, clipped = capped < q.low ? q.low : capped;
        const float step = (clipped - q.low) * q.inverse - q.zero + 0.5f;
        c->out[0].f[i] = (double)(floorf(step) * q.scale);
    }
    return SX_OK;
}

static void fake_quant_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_fake_quant,
               op->in_types[1].rank == 0 ? "FakeQuantWithMinMaxVars"
                                         : "FakeQuantWithMinMaxVarsPerChannel",
               SX_TF_NO_ATTRS);
}

#define BITS(bits, narrow) \
    (&(const sx_fake_quant_attrs){.num_bits = (bits), .narrow_range = (narrow)})
static const double low[] = {-1.1}, high[] = {1.3}, zero[] = {0}, above[] = {0.3, 0.5, 0, 0.2},
                    lows[] = {-1, -0.3, -2, 0}, highs[] = {1, 0.8, 0, 0};
#define SCALAR(numbers) SX_SAMPLE_ONE(SX_F32, numbers)
static const sx_op_sample fake_quant_samples[] = {
    /* a staircase: central differences see its steps; fake_quant_grad is compared by itself */
    {.name = "scalars",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 7), SCALAR(low), SCALAR(high)},
     .n_inputs = 3,
     .attrs = BITS(8, false),
     .no_grad_check = true},
    {.name = "narrow",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 3, -2, 5), SCALAR(low), SCALAR(high)},
     .n_inputs = 3,
     .attrs = BITS(4, true),
     .no_grad_check = true},
    {.name = "above_zero",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 4), SX_SAMPLE_LIST(SX_F32, above, 4),
                SX_SAMPLE_LIST(SX_F32, highs, 4)},
     .n_inputs = 3,
     .attrs = BITS(8, false),
     .no_grad_check = true},
    {.name = "of_nothing",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH), SCALAR(zero), SCALAR(zero)},
     .n_inputs = 3,
     .attrs = BITS(8, false),
     .no_grad_check = true},
    {.name = "channels",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 3, 2, 4), SX_SAMPLE_LIST(SX_F32, lows, 4),
                SX_SAMPLE_LIST(SX_F32, highs, 4)},
     .n_inputs = 3,
     .attrs = BITS(16, true),
     .no_grad_check = true},
};

sx_value sx_fake_quant_at(sx_builder *b, sx_value x, sx_value low_value, sx_value high_value,
                          const sx_fake_quant_args *args, const char *file, int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_fake_quant_args, args);
    const sx_fake_quant_attrs attrs = {.num_bits = args->num_bits != 0 ? args->num_bits : 8,
                                       .narrow_range = args->narrow_range};
    return sx_build_at(b, &sx_op_fake_quant, &attrs, (const sx_value[]){x, low_value, high_value},
                       3, file, line);
}

const sx_op_def sx_op_fake_quant = {
    SX_OP_NAMED(fake_quant),
    .n_in = 3,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    SX_OP_ATTRS(sx_fake_quant_attrs, fake_quant_attrs),
    .infer = fake_quant_infer,
    .grad = fake_quant_gradient,
    .host = fake_quant_host,
    .to_tf = fake_quant_to_tf,
    SX_FROM_TF({.op = "FakeQuantWithMinMaxVars"}, {.op = "FakeQuantWithMinMaxVarsPerChannel"}),
    SX_OP_SAMPLES(fake_quant_samples),
};
