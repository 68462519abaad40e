/* cast: y = x in another dtype;  dx = dy cast back, where both are floats.
 *
 * Float to integer drops the fraction; a value out of range gives the same result as TensorFlow on
 * x86-64 (on the host; devices may differ). Integer to integer is modulo 2^bits. To bool: x != 0.
 * From bool: 0 or 1.
 *
 *   x        any shape, any dtype but string
 *   dtype    of the result, not string
 *   returns  x's shape
 *
 * Errors   INVALID_ARGUMENT  a string, or no dtype
 * Numbers  float to float rounds to nearest even
 * Source   TensorFlow tf.cast */
#ifdef SX_PUBLIC
/* x in another dtype. */
sx_value sx_cast(sx_builder *b, sx_value x, sx_dtype dtype);
#endif
#ifdef SX_ATTRS
/* cast, bitcast; argmax and iota have their own */
typedef struct sx_cast_attrs {
    sx_dtype dtype;
} sx_cast_attrs;
#endif

#include "graph/ops/common.h"
#include "graph/ops/precision.h"

static const sx_attr_def cast_attrs[] = {SX_ATTR(sx_cast_attrs, dtype, SX_ATTR_DTYPE)};

static sx_status cast_infer(sx_infer_context *c)
{
    const sx_cast_attrs *attrs = c->attrs;
    if (sx_dtype_bytes(c->inputs[0].dtype) == 0 || sx_dtype_bytes(attrs->dtype) == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "cannot cast %s to %s: both must be numbers or bool",
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

/* The result of x86-64's scalar conversions where C leaves it undefined, as in TensorFlow for one
 * element (its vector loops saturate some dtypes). A narrow integer is the low bits of a conversion
 * to int32, uint32 those of one to int64. */
static int64_t float_to_int(double x, sx_dtype to)
{
    if (to == SX_U32 || to == SX_I64) {
        return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
    }
    return x > -0x1p31 - 1 && x < 0x1p31 ? (int64_t)x : INT32_MIN;
}

static uint64_t float_to_u64(double x)
{
    const uint64_t half = (uint64_t)1 << 63;
    return x >= -0x1p63 && x < 0x1p63  ? (uint64_t)(int64_t)x
           : x >= 0x1p63 && x < 0x1p64 ? (uint64_t)(int64_t)(x - 0x1p63) + half
                                       : half;
}

static sx_status cast_host(const sx_kernel_call *c)
{
    const sx_host_tensor *x = &c->in[0], *y = &c->out[0];
    const sx_dtype to = y->type.dtype;
    const sx_carrier from_carrier = sx_carrier_of(x->type.dtype), to_carrier = sx_carrier_of(to);
    int64_t n = sx_type_elems(&y->type);
    for (int64_t i = 0; i < n; i++) {
        bool is_float = from_carrier == SX_CARRIER_F;
        double f = is_float ? x->f[i] : 0;
        uint64_t bits = from_carrier == SX_CARRIER_B ? x->b[i] != 0 : is_float ? 0 : x->u[i];
        switch (to_carrier) {
        case SX_CARRIER_F: /* integers are rounded to float32 directly, not through double */
            f = is_float                       ? f
                : from_carrier == SX_CARRIER_I ? (to == SX_F64 ? (double)x->i[i] : (float)x->i[i])
                                               : (to == SX_F64 ? (double)bits : (float)bits);
            y->f[i] = f;
            break;
        case SX_CARRIER_I:
            y->i[i] = is_float ? float_to_int(f, to) : (int64_t)bits;
            break;
        case SX_CARRIER_U:
            y->u[i] = is_float ? float_to_u64(f) : bits;
            break;
        default: /* bool */
            y->b[i] = is_float ? f != 0 : bits != 0;
            break;
        }
    }
    return SX_OK;
}

static void cast_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    op->out[0] = sx_tf_cast(w, op->in[0], op->in_types[0].dtype, op->out_types[0].dtype);
}

static sx_status cast_from_tf(const sx_tf_node *n, void *out)
{
    sx_cast_attrs *attrs = out;
    attrs->dtype = sx_tf_read_dtype(n, "DstT", SX_DTYPE_NONE);
    return SX_OK;
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
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x1,
    .flags = SX_OP_ELEMENTWISE,
    SX_OP_ATTRS(sx_cast_attrs, cast_attrs),
    .infer = cast_infer,
    .grad = cast_grad,
    .host = cast_host,
    .to_tf = cast_to_tf,
    SX_FROM_TF({.op = "Cast", .attrs = cast_from_tf}),
    SX_OP_SAMPLES(cast_samples),
};
