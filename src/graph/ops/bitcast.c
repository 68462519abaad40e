/* bitcast: the bytes of x as elements of another dtype.
 *
 *   x        any shape, numbers
 *   dtype    of the result, numbers
 *   returns  x's shape if the elements of both dtypes have one size; of smaller elements, with
 * another last dimension, which counts the elements in one of x; of larger elements, without the
 *            last dimension of x, which has to count the elements in one of the result
 *
 * Errors   INVALID_ARGUMENT  a string, a bool or a resource; the last dimension of x
 * Numbers  exact; a signalling NaN of float32 or float64 may become a quiet one
 * Source   TensorFlow tf.bitcast */
#ifdef SX_PUBLIC
/* The bytes of x as elements of another dtype: float32 [N,3] as uint8 is [N,3,4]. */
sx_value sx_bitcast(sx_builder *b, sx_value x, sx_dtype dtype);
#endif

#include "base/memory.h"
#include "graph/ops/common.h"

static const sx_attr_def bitcast_attrs[] = {SX_ATTR(sx_cast_attrs, dtype, SX_ATTR_DTYPE)};

static sx_status bitcast_infer(sx_infer_context *c)
{
    const sx_dtype dtype = ((const sx_cast_attrs *)c->attrs)->dtype;
    const sx_type *x = &c->inputs[0];
    sx_type y = *x;
    const size_t from = x->dtype == SX_BOOL ? 0 : sx_dtype_bytes(x->dtype),
                 to = dtype == SX_BOOL ? 0 : sx_dtype_bytes(dtype);
    y.dtype = dtype;
    if (from == 0 || to == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "cannot bitcast %s to %s: both must be numbers",
                        SX_TEXT(x), sx_dtype_name(dtype));
    }
    if (from > to) {
        if (y.rank == SX_MAX_RANK) {
            return sx_error(SX_INVALID_ARGUMENT, "bitcast of %s to %s: the rank would exceed %d",
                            SX_TEXT(x), sx_dtype_name(dtype), SX_MAX_RANK);
        }
        y.dims[y.rank++] = (int64_t)(from / to);
    } else if (from < to) {
        if (y.rank == 0 || y.dims[y.rank - 1] != (int64_t)(to / from)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "bitcast of %s to %s: expected a last dimension of %zu", SX_TEXT(x),
                            sx_dtype_name(dtype), to / from);
        }
        y.dims[--y.rank] = 0;
    }
    c->outputs[0] = y;
    return SX_OK;
}

static sx_status bitcast_host(const sx_kernel_call *c)
{
    const int64_t bytes = sx_type_bytes(&c->in[0].type);
    void *raw = bytes < 0 ? NULL : sx_arena_alloc(c->arena, (size_t)bytes + 1, 1);
    if (raw == NULL) {
        return sx_no_memory("for a bitcast");
    }
    sx_host_store(&c->in[0], raw);
    sx_host_load(&c->out[0], raw);
    return SX_OK;
}

static void bitcast_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    op->out[0] = sx_tf_add(w, "Bitcast", NULL, sx_tf_in(op->in[0]),
                           sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype),
                                       sx_tf_attr_type("type", (int)op->out_types[0].dtype)));
}

static sx_status bitcast_from_tf(const sx_tf_node *n, void *out)
{
    ((sx_cast_attrs *)out)->dtype = sx_tf_read_dtype(n, "type", SX_DTYPE_NONE);
    return SX_OK;
}

#define TO(dtype_) (&(const sx_cast_attrs){.dtype = (dtype_)})
static const sx_op_sample bitcast_samples[] = {
    {.name = "to_int",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 3)},
     .n_inputs = 1,
     .attrs = TO(SX_I32)},
    {.name = "to_smaller",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 3)},
     .n_inputs = 1,
     .attrs = TO(SX_U8)},
    {.name = "to_larger",
     .inputs = {SX_SAMPLE_I32(1000, SX_BATCH, 3, 2)},
     .n_inputs = 1,
     .attrs = TO(SX_I64)},
    {.name = "to_float",
     .inputs = {SX_SAMPLE_I32(1 << 30, 3, -2)},
     .n_inputs = 1,
     .attrs = TO(SX_F32)},
    {.name = "to_scalar", .inputs = {SX_SAMPLE_I32(1000, 2)}, .n_inputs = 1, .attrs = TO(SX_U64)},
};

sx_value sx_bitcast_at(sx_builder *b, sx_value x, sx_dtype dtype, const char *file, int line)
{
    const sx_cast_attrs attrs = {.dtype = dtype};
    return sx_build_at(b, &sx_op_bitcast, &attrs, &x, 1, file, line);
}

const sx_op_def sx_op_bitcast = {
    SX_OP_NAMED(bitcast),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_NO_GRAD | SX_OP_VIEW,
    SX_OP_ATTRS(sx_cast_attrs, bitcast_attrs),
    .infer = bitcast_infer,
    .host = bitcast_host,
    .to_tf = bitcast_to_tf,
    SX_FROM_TF({.op = "Bitcast", .attrs = bitcast_from_tf}),
    SX_OP_SAMPLES(bitcast_samples),
};
