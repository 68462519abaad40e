/* dropout: y = x / (1 - rate) where kept, else 0;  dx = dropout(dy) with the same seed, step and
 * key.
 *
 * Whether an element is kept depends on (seed, key, step, its place) only: not on threads,
 * shards or restarts. For element e of row n (dimension 0, which has the batch if x has it; a
 * scalar is one row), with E elements in a row and j = e / 2:
 *
 *   words  = threefry2x32(key     = (seed[0] ^ key_lo, seed[1] ^ key_hi),
 *                         counter = (step mod 2^32, (n ceil(E / 2) + j) mod 2^32))
 *   kept   = words[e mod 2] >= floor(rate 2^32)
 *
 *   x        any shape, a float type
 *   seed     uint32[2]
 *   step     int64 scalar: the training step
 *   first    uint32 scalar, optional: which row of the whole batch is row 0 of x, where x is a part
 *   rate     in [0, 1)
 *   key      64 bits, a hash of the operator's scope name, so that layers differ
 *   returns  x's type
 *
 * n is the row in the whole batch: of x, plus `first`, which sx_pass_spmd() passes.
 *
 * Errors   INVALID_ARGUMENT  dtypes, rate or key out of range, the batch elsewhere than first
 * Numbers  one rounding of x times the rounded 1 / (1 - rate)
 * Source   TensorFlow tf.nn.dropout, for what it means; the bits are ours */
#ifdef SX_PUBLIC
typedef struct sx_nn_dropout_args {
    size_t struct_size;
    double rate;  /* the fraction that is dropped, in [0, 1) */
    uint64_t key; /* different for each layer: a hash of the scope's name */
} sx_nn_dropout_args;

/* seed uint32[2], step int64 scalar */
sx_value sx_nn_dropout(sx_builder *b, sx_value x, sx_value seed, sx_value step,
                       const sx_nn_dropout_args *args);
#endif
#ifdef SX_ATTRS
typedef struct sx_dropout_attrs {
    double rate;            /* in [0, 1): the share that is dropped */
    int64_t key_hi, key_lo; /* each in [0, 2^32): hash of the operator's scope name */
} sx_dropout_attrs;
#endif

#include "graph/ops/common.h"

#include "base/threefry.h"

static const sx_attr_def dropout_attrs[] = {
    SX_ATTR(sx_dropout_attrs, rate, SX_ATTR_FLOAT),
    SX_ATTR(sx_dropout_attrs, key_hi, SX_ATTR_INT),
    SX_ATTR(sx_dropout_attrs, key_lo, SX_ATTR_INT),
};

static bool is_u32(int64_t v)
{
    return v >= 0 && v <= UINT32_MAX;
}

static sx_status dropout_infer(sx_infer_context *c)
{
    const sx_dropout_attrs *attrs = c->attrs;
    if (c->n_inputs < 3 || c->n_inputs > 4) {
        return sx_error(SX_INVALID_ARGUMENT, "%d operands, expected x, seed, step", c->n_inputs);
    }
    SX_TRY(sx_require_float("x", &c->inputs[0]));
    SX_TRY(sx_require_vector("seed", &c->inputs[1], SX_U32, 2));
    SX_TRY(sx_require_scalar("step", &c->inputs[2], SX_I64));
    if (c->n_inputs > 3) {
        SX_TRY(sx_require_scalar("first", &c->inputs[3], SX_U32));
    }
    if (!(attrs->rate >= 0 && attrs->rate < 1)) {
        return sx_error(SX_INVALID_ARGUMENT, "rate is %g, expected [0, 1)", attrs->rate);
    }
    if (!is_u32(attrs->key_hi) || !is_u32(attrs->key_lo)) {
        return sx_error(SX_INVALID_ARGUMENT, "key_hi or key_lo is not in [0, 2^32)");
    }
    if (sx_batch_axis(&c->inputs[0]) > 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "x is %s, expected the batch N as first dimension: which elements are kept "
                        "depends on their example; add sx_transpose() before and after",
                        SX_TEXT(&c->inputs[0]));
    }
    c->outputs[0] = c->inputs[0];
    return SX_OK;
}

static void dropout_grad(sx_grad *g)
{
    sx_value in[4] = {g->dy[0], g->x[1], g->x[2], g->n_inputs > 3 ? g->x[3] : SX_NO_VALUE};
    g->dx[0] = sx_build(g->b, &sx_op_dropout, g->attrs, in, g->n_inputs);
}

/* Is element `e` of the example at `position` kept? */
static bool is_kept(const sx_kernel_call *c, int64_t position, int64_t elems, int64_t e)
{
    const sx_dropout_attrs *attrs = c->attrs;
    const int64_t *seed = c->in[1].i;
    uint32_t threshold = (uint32_t)floor(attrs->rate * 0x1p32);
    int64_t pair = position * ((elems + 1) / 2) + e / 2;
    sx_u32x2 words = sx_threefry2x32((sx_u32x2){(uint32_t)seed[0] ^ (uint32_t)attrs->key_lo,
                                                (uint32_t)seed[1] ^ (uint32_t)attrs->key_hi},
                                     (sx_u32x2){(uint32_t)c->in[2].i[0], (uint32_t)pair});
    return (e % 2 == 0 ? words.a : words.b) >= threshold;
}

static sx_status dropout_host(const sx_kernel_call *c)
{
    const sx_dropout_attrs *attrs = c->attrs;
    const sx_type *x = &c->in[0].type;
    int64_t n = sx_type_elems(x), examples = x->rank == 0 ? 1 : x->dims[0];
    const int64_t first = c->n_in > 3 ? c->in[3].i[0] : 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t elems = n / examples;
        bool kept = is_kept(c, first + i / elems, elems, i % elems);
        c->out[0].f[i] = kept ? c->in[0].f[i] / (1 - attrs->rate) : 0;
    }
    return SX_OK;
}

#define STREAM                                                            \
    {.type = SX_TYPE_LITERAL_(SX_U32, 2), .fill = SX_FILL_BITS},          \
    {                                                                     \
        .type = {.dtype = SX_I64}, .fill = SX_FILL_INDEX, .limit = 100000 \
    }
#define RATE(...) (&(const sx_dropout_attrs){__VA_ARGS__})
static const sx_op_sample dropout_samples[] = {
    {.name = "half",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 64), STREAM},
     .n_inputs = 3,
     .attrs = RATE(.rate = 0.5, .key_hi = 0x9e3779b9, .key_lo = 7)},
    {.name = "odd",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 3, 7), STREAM},
     .n_inputs = 3,
     .attrs = RATE(.rate = 0.4, .key_lo = 0xffffffff)},
    {.name = "none",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 1, 5), STREAM},
     .n_inputs = 3,
     .attrs = NULL},
    {.name = "scalar",
     .inputs = {SX_SAMPLE_SCALAR(SX_F32, SX_FILL_NORMAL), STREAM},
     .n_inputs = 3,
     .attrs = RATE(.rate = 0.1)},
    {.name = "multiple",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, -3, 5), STREAM},
     .n_inputs = 3,
     .attrs = RATE(.rate = 0.5, .key_lo = 3)},
    {.name = "part",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 5),
                STREAM,
                {.type = {.dtype = SX_U32}, .fill = SX_FILL_INDEX, .limit = 100}},
     .n_inputs = 4,
     .attrs = RATE(.rate = 0.5, .key_lo = 3)},
};

sx_value sx_nn_dropout_at(sx_builder *b, sx_value x, sx_value seed, sx_value step,
                          const sx_nn_dropout_args *args, const char *file, int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_nn_dropout_args, args);
    sx_dropout_attrs attrs = {
        .rate = args->rate,
        .key_hi = (int64_t)(args->key >> 32),
        .key_lo = (int64_t)(args->key & UINT32_MAX),
    };
    return sx_build_at(b, &sx_op_dropout, &attrs, (const sx_value[]){x, seed, step}, 3, file, line);
}

const sx_op_def sx_op_dropout = {
    SX_OP_NAMED(dropout),
    .n_in = SX_VARIADIC,
    .n_out = 1,
    .batch_rule = SX_RULE_ROWS,
    .bf16 = 0x1,
    .flags = SX_OP_NO_TF,
    SX_OP_ATTRS(sx_dropout_attrs, dropout_attrs),
    .infer = dropout_infer,
    .grad = dropout_grad,
    .host = dropout_host,
    SX_OP_SAMPLES(dropout_samples),
};
