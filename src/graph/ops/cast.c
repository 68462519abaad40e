/* cast: y = x in another dtype;  dx = dy cast back, where both are floats.
 *
 * Floats become integers by dropping the fraction, as in C; what does not fit is undefined, as in
 * TensorFlow. To bool: x != 0. From bool: 0 or 1.
 *
 *   x        any shape, any dtype but string
 *   dtype    of the result, not string
 *   returns  x's shape
 *
 * Errors   INVALID_ARGUMENT  a string, or no dtype
 * Numbers  float to float rounds to nearest even
 * Source   TensorFlow tf.cast */
#include "graph/ops/common.h"
#include "graph/ops/precision.h"

static const sx_attr_def cast_attrs[] = {SX_ATTR(sx_cast_attrs, dtype, SX_ATTR_DTYPE)};

static sx_status cast_infer(sx_infer *c)
{
    const sx_cast_attrs *attrs = c->attrs;
    if (sx_dtype_bytes(c->inputs[0].dtype) == 0 || sx_dtype_bytes(attrs->dtype) == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "%s to %s; both must be numbers or bool",
                        SX_TEXT(&c->inputs[0]), sx_dtype_name(attrs->dtype));
    }
    c->outputs[0] = c->inputs[0];
    c->outputs[0].dtype = attrs->dtype;
    return SX_OK;
}

static void cast_grad(sx_grad *g)
{
    sx_dtype from = sx_type_of_value(g->b, g->x[0]).dtype,
             to = sx_type_of_value(g->b, g->y[0]).dtype;
    if (sx_dtype_is_float(from) && sx_dtype_is_float(to)) {
        sx_value dy = from == SX_F32 ? sx_widen_gradient(g->b, g->dy[0]) : g->dy[0];
        g->dx[0] = sx_cast_like(g->b, dy, g->x[0]);
    }
}

static void cast_ref(const sx_ref *r)
{
    sx_dtype dtype = r->out[0].type.dtype;
    int64_t n = sx_type_elems(&r->out[0].type);
    for (int64_t i = 0; i < n; i++) {
        double x = r->in[0].data[i];
        if (dtype == SX_BOOL) {
            x = x != 0;
        } else if (sx_dtype_is_integer(dtype)) {
            x = trunc(x);
        }
        r->out[0].data[i] = x;
    }
}

static void cast_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    op->out[0] = sx_tf_cast(w, op->in[0], op->in_types[0].dtype, op->out_types[0].dtype);
}

static void cast_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_cast_attrs *attrs = op->attrs;
    sx_hlo x = op->in[0];
    bool to_bool = attrs->dtype == SX_BOOL && op->in_types[0].dtype != SX_BOOL;
    op->out[0] = to_bool ? sx_hlo_compare(w, "NE", x, sx_hlo_like(w, x, 0))
                         : sx_hlo_convert(w, x, attrs->dtype);
}

#define TO(dtype_) (&(const sx_cast_attrs){.dtype = (dtype_)})
static const sx_op_sample cast_samples[] = {
    {.name = "to_double",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 3)},
     .n_inputs = 1,
     .attrs = TO(SX_F64)},
    {.name = "to_int",
     .inputs = {SX_SAMPLE_F32(SX_FILL_DISTINCT, 2, 3)},
     .n_inputs = 1,
     .attrs = TO(SX_I32)},
    {.name = "to_bool",
     .inputs = {SX_SAMPLE_I32(2, SX_BATCH)},
     .n_inputs = 1,
     .attrs = TO(SX_BOOL)},
    {.name = "from_bool",
     .inputs = {SX_SAMPLE_BOOL(SX_BATCH, 5)},
     .n_inputs = 1,
     .attrs = TO(SX_F32)},
    {.name = "from_int",
     .inputs = {SX_SAMPLE_I32(1000, SX_BATCH)},
     .n_inputs = 1,
     .attrs = TO(SX_F32)},
};

sx_value sx_cast_at(sx_builder *b, sx_value x, sx_dtype dtype, const char *file, int line)
{
    sx_cast_attrs attrs = {.dtype = dtype};
    return sx_build_at(b, &sx_op_cast, &attrs, &x, 1, file, line);
}

const sx_op_def sx_op_cast = {
    SX_OP_NAMED(cast),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    SX_OP_ATTRS(sx_cast_attrs, cast_attrs),
    .infer = cast_infer,
    .grad = cast_grad,
    .ref = cast_ref,
    .to_tf = cast_to_tf,
    .to_stablehlo = cast_to_stablehlo,
    SX_OP_SAMPLES(cast_samples),
};
