/* stateless_random: random numbers that are a function of a seed, the same as TensorFlow's. No
 * gradient.
 *
 *   seed          int32[2] or int64[2]
 *   first         uint32 scalar, optional: which row of the whole batch is row 0 of the result,
 *                 where that is a part
 *   shape         static, or the batch first
 *   distribution  uniform: in [0, 1); normal: mean 0, deviation 1
 *   returns       float32[shape]
 *
 * Philox-4x32-10 (base/philox.h) with the key and counter that TensorFlow makes of the seed; words
 * 4i .. 4i+3 are those of counter i, one for each element of the whole batch:
 *
 *   m = philox(key = (0x3ec8f720, 0x02461e29), counter = (seed[0] low, high, seed[1] low, high))
 *   words 4i .. = philox(key = (m[0], m[1]), counter = (i low, i high, m[2], m[3]))
 *   uniform     = (word mod 2^23) / 2^23
 *   normal      = Box and Muller's pair r sin t, r cos t of two uniforms u, v:
 *                 r = sqrt(-2 log max(u, 1e-7)), t = 2 pi v
 *
 * sx_pass_spmd() passes `first`.
 *
 * Errors   INVALID_ARGUMENT  another seed, a shape that is too large or has the batch elsewhere
 * Numbers  uniform exact; normal to the accuracy of float32's log, sin and cos
 * Source   TensorFlow StatelessRandomUniform, StatelessRandomNormal (GenerateKey in
 *          core/kernels/stateless_random_ops.cc; core/lib/random/random_distributions.h) */
#ifdef SX_ATTRS
enum { SX_RANDOM_UNIFORM, SX_RANDOM_NORMAL };
typedef struct sx_stateless_random_attrs {
    sx_ints shape;
    int32_t distribution; /* SX_RANDOM_UNIFORM, SX_RANDOM_NORMAL */
} sx_stateless_random_attrs;
#endif

#include "graph/ops/random_stream.h"

static const char *const distributions[] = {"uniform", "normal", NULL};

static const sx_attr_def stateless_random_attrs[] = {
    SX_ATTR(sx_stateless_random_attrs, shape, SX_ATTR_SHAPE),
    SX_ATTR_NAMES(sx_stateless_random_attrs, distribution, distributions),
};

static sx_status stateless_random_infer(sx_infer_context *c)
{
    const sx_stateless_random_attrs *attrs = c->attrs;
    const sx_type y = sx_type_make(SX_F32, attrs->shape.n, attrs->shape.v);
    const sx_type one = sx_type_with_batch(y, 1);
    if (c->n_inputs < 1 || c->n_inputs > 2) {
        return sx_error(SX_INVALID_ARGUMENT, "%d operands, expected seed", c->n_inputs);
    }
    const sx_dtype dtype = c->inputs[0].dtype == SX_I32 ? SX_I32 : SX_I64;
    SX_TRY(sx_require_vector("seed", &c->inputs[0], dtype, 2));
    if (c->n_inputs > 1) {
        SX_TRY(sx_require_scalar("first", &c->inputs[1], SX_U32));
    }
    if (sx_batch_axis(&y) > 0 || !sx_type_is_static(&one) || sx_type_bytes(&one) < 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "shape %s is too large, or has the batch elsewhere than first",
                        SX_TEXT(&y));
    }
    c->outputs[0] = y;
    return SX_OK;
}

static sx_status stateless_random_host(const sx_kernel_call *c)
{
    const sx_stateless_random_attrs *attrs = c->attrs;
    const sx_type *type = &c->out[0].type;
    const int64_t n = sx_type_elems(type);
    const int64_t before = c->n_in > 1 ? c->in[1].i[0] * sx_dims_product(type, 1, type->rank) : 0;
    sx_philox_stream s;
    sx_random_seed((uint64_t)c->in[0].i[0], (uint64_t)c->in[0].i[1], &s);
    sx_philox_skip(&s, (uint64_t)(before / 4));
    for (int64_t i = -(before % 4); i < n; i += 4) {
        uint32_t words[4];
        double y[4];
        sx_philox_next(&s, words);
        for (int k = 0; k < 4; k += 2) {
            if (attrs->distribution == SX_RANDOM_NORMAL) {
                sx_random_normal_floats(words + k, y + k);
            } else {
                y[k] = sx_random_float(words[k]);
                y[k + 1] = sx_random_float(words[k + 1]);
            }
        }
        for (int k = i < 0 ? (int)-i : 0; k < 4 && i + k < n; k++) {
            c->out[0].f[i + k] = y[k];
        }
    }
    return SX_OK;
}

static void stateless_random_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_stateless_random_attrs *attrs = op->attrs;
    if (op->n_in > 1 || sx_type_has_batch(&op->out_types[0])) {
        sx_tf_fail(w, sx_error(SX_UNIMPLEMENTED,
                               "%s: random numbers for each example of a batch have no TensorFlow "
                               "form; use a function, or a size that is not the batch",
                               op->name));
        return;
    }
    sx_tf_value shape = sx_tf_ints(w, "shape", &attrs->shape);
    op->out[0] =
        sx_tf_add(w,
                  attrs->distribution == SX_RANDOM_NORMAL ? "StatelessRandomNormal"
                                                          : "StatelessRandomUniform",
                  NULL, sx_tf_in(shape, op->in[0]),
                  sx_tf_attrs(sx_tf_attr_type("dtype", SX_F32), sx_tf_attr_type("T", SX_I32),
                              sx_tf_attr_type("Tseed", (int)op->in_types[0].dtype)));
}

static sx_status read_float32(const sx_tf_node *n)
{
    return sx_tf_read_dtype(n, "dtype", SX_F32) == SX_F32
               ? SX_OK
               : sx_error(SX_UNIMPLEMENTED, "only float32 is supported");
}

static sx_status uniform_from_tf(const sx_tf_node *n, void *out)
{
    ((sx_stateless_random_attrs *)out)->distribution = SX_RANDOM_UNIFORM;
    return read_float32(n);
}

static sx_status normal_from_tf(const sx_tf_node *n, void *out)
{
    ((sx_stateless_random_attrs *)out)->distribution = SX_RANDOM_NORMAL;
    return read_float32(n);
}

#define RANDOM(d_, ...) \
    (&(const sx_stateless_random_attrs){.distribution = (d_), .shape = __VA_ARGS__})
#define SEED(dtype_)                                                                 \
    {                                                                                \
        .type = SX_TYPE_LITERAL_(dtype_, 2), .fill = SX_FILL_INDEX, .limit = 1 << 30 \
    }
static const sx_op_sample stateless_random_samples[] = {
    {.name = "uniform",
     .inputs = {SEED(SX_I64)},
     .n_inputs = 1,
     .attrs = RANDOM(SX_RANDOM_UNIFORM, {2, {5, 3}})},
    {.name = "batch",
     .inputs = {SEED(SX_I32)},
     .n_inputs = 1,
     .attrs = RANDOM(SX_RANDOM_UNIFORM, {3, {SX_BATCH, 3, 1}})},
    {.name = "multiple",
     .inputs = {SEED(SX_I64)},
     .n_inputs = 1,
     .attrs = RANDOM(SX_RANDOM_NORMAL, {2, {-3, 2}}),
     .tolerance = 1e-4},
    {.name = "part",
     .inputs = {SEED(SX_I64), {.type = {.dtype = SX_U32}, .fill = SX_FILL_INDEX, .limit = 100}},
     .n_inputs = 2,
     .attrs = RANDOM(SX_RANDOM_UNIFORM, {2, {4, 5}})},
    {.name = "scalar",
     .inputs = {SEED(SX_I32)},
     .n_inputs = 1,
     .attrs = RANDOM(SX_RANDOM_UNIFORM, {0})},
    {.name = "normal",
     .inputs = {SEED(SX_I64)},
     .n_inputs = 1,
     .attrs = RANDOM(SX_RANDOM_NORMAL, {2, {3, 7}}),
     .tolerance = 1e-4}, /* the angle is rounded to float32: 4e-7 near a zero of sin or cos */
};

const sx_op_def sx_op_stateless_random = {
    SX_OP_NAMED(stateless_random),
    .n_in = SX_VARIADIC,
    .n_out = 1,
    .batch_rule = SX_RULE_ROWS,
    .flags = SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_stateless_random_attrs, stateless_random_attrs),
    .infer = stateless_random_infer,
    .host = stateless_random_host,
    .to_tf = stateless_random_to_tf,
    SX_FROM_TF(
        {.op = "StatelessRandomUniform", .operands = {{0, "shape"}}, .attrs = uniform_from_tf},
        {.op = "StatelessRandomNormal", .operands = {{0, "shape"}}, .attrs = normal_from_tf}),
    SX_OP_SAMPLES(stateless_random_samples),
};
