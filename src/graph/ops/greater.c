/* greater: z = x > y. No gradient.
 *
 *   x, y     one dtype, any number; shapes that broadcast as numpy's do: counted from the last,
 *            dimensions are equal or 1, and the batch meets only the batch or 1
 *   returns  the broadcast shape, bool
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or do not fit, shapes do not broadcast
 * Numbers  exact; a comparison with NaN is false
 * Source   TensorFlow tf.greater */
#include "graph/ops/common.h"

static sx_status greater_infer(sx_infer *c)
{
    return sx_infer_compare(c);
}

static double greater_of(double x, double y)
{
    return x > y;
}

static void greater_ref(const sx_ref *r)
{
    sx_ref_zip(r, greater_of);
}

static void greater_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "Greater");
}

static void greater_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_hlo_zip_compare(w, op, "GT");
}

static const sx_op_sample greater_samples[] = {
    SX_SAMPLES_ZIP(SX_FILL_DISTINCT, SX_FILL_DISTINCT),
    {.name = "labels",
     .inputs = {SX_SAMPLE_I32(3, SX_BATCH), SX_SAMPLE_I32(3, SX_BATCH)},
     .n_inputs = 2},
};

SX_PUBLIC_ZIP(greater)

const sx_op_def sx_op_greater = {
    SX_OP_NAMED(greater),
    .n_in = 2,
    .n_out = 1,
    .bf16 = 0x3,
    .flags = SX_OP_ELEMENTWISE | SX_OP_NO_GRAD,
    .infer = greater_infer,
    .ref = greater_ref,
    .to_tf = greater_to_tf,
    .to_stablehlo = greater_to_stablehlo,
    SX_OP_SAMPLES(greater_samples),
};
