/* bias_add: y[..., c] = x[..., c] + b[c];  dx = dy, db = dy summed over all but the last axis
 *
 *   x        [..., C], rank 2 or more, a float type
 *   b        [C] of the same dtype
 *   returns  x's type
 *
 * Errors   INVALID_ARGUMENT  not a float type, rank below 2, b is not [C]
 * Numbers  one rounding
 * Source   TensorFlow tf.nn.bias_add, NHWC */
#include "graph/elementwise.h"
#include "graph/ops/common.h"

static sx_status bias_add_infer(sx_infer_context *c)
{
    const sx_type *x = &c->inputs[0];
    SX_TRY(sx_require_float("x", x));
    if (x->rank < 2) {
        return sx_error(SX_INVALID_ARGUMENT, "x %s has rank %d, expected [...,C]", SX_TEXT(x),
                        x->rank);
    }
    SX_TRY(sx_require_vector("b", &c->inputs[1], x->dtype, x->dims[x->rank - 1]));
    c->outputs[0] = *x;
    return SX_OK;
}

static void bias_add_grad(sx_grad *g)
{
    g->dx[0] = g->dy[0];
    if (g->needed[1]) {
        g->dx[1] = sx_unbroadcast(g->b, g->dy[0], g->x[1]);
    }
}

static const sx_op_sample bias_add_samples[] = {
    {.name = "dense",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 7), SX_SAMPLE_F32(SX_FILL_NORMAL, 7)},
     .n_inputs = 2},
    {.name = "image",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 3, 5, 2), SX_SAMPLE_F32(SX_FILL_NORMAL, 2)},
     .n_inputs = 2},
    {.name = "one",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 1), SX_SAMPLE_F32(SX_FILL_NORMAL, 1)},
     .n_inputs = 2},
};

SX_PUBLIC_ZIP(bias_add)

const sx_op_def sx_op_bias_add = {
    SX_OP_NAMED(bias_add),
    .n_in = 2,
    .n_out = 1,
    .bf16 = 0x3,
    .flags = SX_OP_ELEMENTWISE,
    .infer = bias_add_infer,
    .grad = bias_add_grad,
    SX_OP_ROW(bias_add),
    SX_OP_SAMPLES(bias_add_samples),
};
