/* add: z = x + y;  dx = dz, dy = dz, each summed over what broadcasting added
 *
 *   x, y     one dtype, any number; shapes that broadcast as numpy's do: counted from the last,
 *            dimensions are equal or 1, and the batch meets only the batch or 1
 *   returns  the broadcast shape, the dtype of x
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or do not fit, shapes do not broadcast
 * Numbers  one rounding
 * Source   TensorFlow tf.add */
#include "graph/ops/common.h"

static sx_status add_infer(sx_infer *c)
{
    return sx_infer_zip_number(c);
}

/* dx = dz, dy = dz */
static void add_grad(sx_grad *g)
{
    if (g->needed[0]) {
        g->dx[0] = sx_unbroadcast(g->b, g->dy[0], g->x[0]);
    }
    if (g->needed[1]) {
        g->dx[1] = sx_unbroadcast(g->b, g->dy[0], g->x[1]);
    }
}

static double add_of(double x, double y)
{
    return x + y;
}

static void add_ref(const sx_ref *r)
{
    sx_ref_zip(r, add_of);
}

static void add_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "AddV2");
}

static void add_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_hlo_zip(w, op, "add");
}

static const sx_op_sample add_samples[] = {
    SX_SAMPLES_ZIP(SX_FILL_NORMAL, SX_FILL_NORMAL),
    {.name = "int32",
     .inputs = {SX_SAMPLE_I32(9, SX_BATCH, 4), SX_SAMPLE_I32(9, 4)},
     .n_inputs = 2},
};

SX_PUBLIC_ZIP(add)

const sx_op_def sx_op_add = {
    SX_OP_NAMED(add),
    .n_in = 2,
    .n_out = 1,
    .bf16 = 0x3,
    .flags = SX_OP_ELEMENTWISE,
    .infer = add_infer,
    .grad = add_grad,
    .ref = add_ref,
    .to_tf = add_to_tf,
    .to_stablehlo = add_to_stablehlo,
    SX_OP_SAMPLES(add_samples),
};
