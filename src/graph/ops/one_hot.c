/* one_hot: y[..., c] = on where c == index[...], else off. An index outside [0, depth) gives a row
 * of off. No gradient.
 *
 *   indices  any shape of rank up to 7, int32 or int64
 *   depth    0 or more
 *   dtype    of the result: a number or bool
 *   returns  [..., depth]
 *
 * Errors   INVALID_ARGUMENT  dtypes, rank, depth
 * Numbers  exact; on and off are rounded to the dtype
 * Source   TensorFlow tf.one_hot with axis -1 */
#ifdef SX_PUBLIC
typedef struct sx_one_hot_args {
    size_t struct_size;
    int64_t depth;
    double on, off; /* both 0: 1 and 0 */
    sx_dtype dtype; /* default float32 */
} sx_one_hot_args;

/* indices [...] -> [..., depth] */
sx_value sx_one_hot(sx_builder *b, sx_value indices, const sx_one_hot_args *args);
#endif
#ifdef SX_ATTRS
typedef struct sx_one_hot_attrs {
    int64_t depth;
    double on, off;
    sx_dtype dtype;
} sx_one_hot_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def one_hot_attrs[] = {
    SX_ATTR(sx_one_hot_attrs, depth, SX_ATTR_INT),
    SX_ATTR(sx_one_hot_attrs, on, SX_ATTR_FLOAT),
    SX_ATTR(sx_one_hot_attrs, off, SX_ATTR_FLOAT),
    SX_ATTR(sx_one_hot_attrs, dtype, SX_ATTR_DTYPE),
};

static sx_status one_hot_infer(sx_infer_context *c)
{
    const sx_one_hot_attrs *attrs = c->attrs;
    sx_type y = c->inputs[0];
    SX_TRY(sx_require_index("indices", &y));
    if (y.rank >= SX_MAX_RANK || attrs->depth < 0 || sx_dtype_bytes(attrs->dtype) == 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "indices are %s, depth is %lld and dtype %s; expected a rank below %d, a "
                        "depth of 0 or more, and numbers or bool",
                        SX_TEXT(&y), (long long)attrs->depth, sx_dtype_name(attrs->dtype),
                        SX_MAX_RANK);
    }
    y.dims[y.rank++] = attrs->depth;
    y.dtype = attrs->dtype;
    c->outputs[0] = y;
    return SX_OK;
}

static sx_status one_hot_host(const sx_kernel_call *c)
{
    const sx_one_hot_attrs *attrs = c->attrs;
    int64_t n = sx_type_elems(&c->out[0].type);
    for (int64_t i = 0; i < n; i++) {
        bool hit = c->in[0].i[i / attrs->depth] == i % attrs->depth;
        sx_host_set(&c->out[0], i, hit ? attrs->on : attrs->off);
    }
    return SX_OK;
}

static void one_hot_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_one_hot_attrs *attrs = op->attrs;
    const sx_tf_attr list[] = {sx_tf_attr_type("T", (int)attrs->dtype),
                               sx_tf_attr_type("TI", (int)op->in_types[0].dtype)};
    sx_tf_value depth = sx_tf_const_i32(w, "depth", (int32_t)attrs->depth);
    sx_tf_value on = sx_tf_scalar(w, "on", attrs->dtype, attrs->on);
    sx_tf_value off = sx_tf_scalar(w, "off", attrs->dtype, attrs->off);
    op->out[0] = sx_tf_add(w, "OneHot", NULL, sx_tf_in(op->in[0], depth, on, off),
                           (sx_tf_attr_list){list, op->in_types[0].dtype == SX_I64 ? 1 : 2});
}

static sx_status one_hot_from_tf(const sx_tf_node *n, void *out)
{
    sx_one_hot_attrs *attrs = out;
    attrs->dtype = sx_tf_read_dtype(n, "T", n->n_in > 2 ? n->types[2].dtype : SX_F32);
    return SX_OK;
}

#define HOT(...) (&(const sx_one_hot_attrs){__VA_ARGS__})
static const sx_op_sample one_hot_samples[] = {
    {.name = "labels",
     .inputs = {SX_SAMPLE_I32(4, SX_BATCH)},
     .n_inputs = 1,
     .attrs = HOT(.depth = 4, .on = 1, .dtype = SX_F32)},
    {.name = "some_outside",
     .inputs = {SX_SAMPLE_I32(9, SX_BATCH, 3)},
     .n_inputs = 1,
     .attrs = HOT(.depth = 3, .on = 0.9, .off = 0.05, .dtype = SX_F32)},
    {.name = "scalar_int",
     .inputs = {{.type = {.dtype = SX_I64}, .fill = SX_FILL_INDEX, .limit = 2}},
     .n_inputs = 1,
     .attrs = HOT(.depth = 2, .on = 1, .dtype = SX_I32)},
    {.name = "batch_inside",
     .inputs = {SX_SAMPLE_I32(4, 3, -2)},
     .n_inputs = 1,
     .attrs = HOT(.depth = 4, .on = 1, .dtype = SX_F32)},
};

sx_value sx_one_hot_at(sx_builder *b, sx_value indices, const sx_one_hot_args *args,
                       const char *file, int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_one_hot_args, args);
    bool unset = args->on == 0 && args->off == 0;
    sx_one_hot_attrs attrs = {
        .depth = args->depth,
        .on = unset ? 1 : args->on,
        .off = args->off,
        .dtype = args->dtype == SX_DTYPE_NONE ? SX_F32 : args->dtype,
    };
    return sx_build_at(b, &sx_op_one_hot, &attrs, &indices, 1, file, line);
}

const sx_op_def sx_op_one_hot = {
    SX_OP_NAMED(one_hot),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_one_hot_attrs, one_hot_attrs),
    .infer = one_hot_infer,
    .host = one_hot_host,
    .to_tf = one_hot_to_tf,
    SX_FROM_TF({.op = "OneHot", /* another axis: import_library_numbers.c */
                .operands = {{1, "depth"}, {2, "on"}, {3, "off"}},
                .attrs = one_hot_from_tf}),
    SX_OP_SAMPLES(one_hot_samples),
};
