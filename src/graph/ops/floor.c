/* floor: the greatest integer not above x, as a float. The gradient is zero.
 *
 *   x        any shape, f16 bf16 f32 f64
 *   returns  x's shape and dtype
 *
 * Errors   INVALID_ARGUMENT  x is not a float type
 * Numbers  exact
 * Source   TensorFlow tf.floor */
#include "graph/ops/common.h"

static sx_status floor_infer(sx_infer *c)
{
    return sx_infer_map_float(c);
}

static void floor_ref(const sx_ref *r)
{
    sx_ref_map(r, floor);
}

static void floor_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "Floor");
}

static void floor_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    sx_hlo_map(w, op, "floor");
}

static const sx_op_sample floor_samples[] = {
    SX_SAMPLES_MAP(SX_FILL_DISTINCT),
};

SX_PUBLIC_MAP(floor)

const sx_op_def sx_op_floor = {
    SX_OP_NAMED(floor),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE | SX_OP_NO_GRAD,
    .infer = floor_infer,
    .ref = floor_ref,
    .to_tf = floor_to_tf,
    .to_stablehlo = floor_to_stablehlo,
    SX_OP_SAMPLES(floor_samples),
};
