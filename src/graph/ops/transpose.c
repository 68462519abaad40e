/* transpose: y's dimension i is x's dimension perm[i];  dx = dy transposed by the inverse
 *
 *   x        any type
 *   perm     a permutation of 0 .. rank - 1; it may move the batch
 *   returns  x's dtype
 *
 * Errors   INVALID_ARGUMENT  perm is no permutation of the rank
 * Numbers  exact
 * Source   TensorFlow tf.transpose */
#ifdef SX_PUBLIC
/* sx_transpose(b, x, 0, 3, 1, 2): NHWC to NCHW. */
sx_value sx_transpose(sx_builder *b, sx_value x, int rank, const int64_t *perm);
#endif
#ifdef SX_ATTRS
typedef struct sx_transpose_attrs {
    sx_ints perm; /* output dimension i is input dimension perm[i] */
} sx_transpose_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def transpose_attrs[] = {
    SX_ATTR_MEANS(sx_transpose_attrs, perm, SX_ATTR_INTS, SX_MEANS_ORDER)};

static bool is_permutation(const sx_ints *perm, int rank)
{
    unsigned seen = 0;
    for (int i = 0; i < perm->n; i++) {
        if (perm->v[i] < 0 || perm->v[i] >= rank) {
            return false;
        }
        seen |= 1u << perm->v[i];
    }
    return perm->n == rank && seen == (1u << rank) - 1;
}

static sx_status transpose_infer(sx_infer_context *c)
{
    const sx_transpose_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0];
    if (!is_permutation(&attrs->perm, x->rank)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "perm must be a permutation of the %d dimensions of x %s", x->rank,
                        SX_TEXT(x));
    }
    sx_type y = {.dtype = x->dtype, .rank = x->rank};
    for (int i = 0; i < x->rank; i++) {
        y.dims[i] = x->dims[attrs->perm.v[i]];
    }
    c->outputs[0] = y;
    return SX_OK;
}

static void transpose_grad(sx_grad *g)
{
    const sx_transpose_attrs *attrs = g->attrs;
    sx_transpose_attrs inverse = {.perm = {.n = attrs->perm.n}};
    for (int i = 0; i < attrs->perm.n; i++) {
        inverse.perm.v[attrs->perm.v[i]] = i;
    }
    g->dx[0] = sx_build_op(g->b, transpose, &inverse, g->dy[0]);
}

static sx_status transpose_host(const sx_kernel_call *c)
{
    const sx_transpose_attrs *attrs = c->attrs;
    const sx_type *x = &c->in[0].type, *y = &c->out[0].type;
    int64_t n = sx_type_elems(y);
    for (int64_t i = 0; i < n; i++) {
        int64_t y_at[SX_MAX_RANK], x_at[SX_MAX_RANK];
        sx_unravel(y, i, y_at);
        for (int d = 0; d < y->rank; d++) {
            x_at[attrs->perm.v[d]] = y_at[d];
        }
        sx_host_move(c, i, 0, sx_ravel(x, x_at), 1);
    }
    return SX_OK;
}

static void transpose_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_transpose_attrs *attrs = op->attrs;
    sx_tf_value perm = sx_tf_ints(w, "perm", &attrs->perm);
    op->out[0] = sx_tf_add(w, "Transpose", NULL, sx_tf_in(op->in[0], perm),
                           sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

#define PERM(...) (&(const sx_transpose_attrs){.perm = {__VA_ARGS__}})
static const sx_op_sample transpose_samples[] = {
    {.name = "to_nchw",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 2, 3, 4)},
     .n_inputs = 1,
     .attrs = PERM(4, {0, 3, 1, 2})},
    {.name = "matrix",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 3, 5)},
     .n_inputs = 1,
     .attrs = PERM(2, {1, 0})},
    {.name = "cycle",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 2, 3, 4)},
     .n_inputs = 1,
     .attrs = PERM(3, {1, 2, 0})},
    {.name = "same_int",
     .inputs = {SX_SAMPLE_I32(9, SX_BATCH, 1)},
     .n_inputs = 1,
     .attrs = PERM(2, {0, 1})},
    {.name = "scalar", .inputs = {SX_SAMPLE_SCALAR(SX_F32, SX_FILL_NORMAL)}, .n_inputs = 1},
    {.name = "batch_inside",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 3, 2)},
     .n_inputs = 1,
     .attrs = PERM(3, {1, 0, 2})},
    {.name = "batch_to_the_front",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 3, -2, 2)},
     .n_inputs = 1,
     .attrs = PERM(3, {1, 2, 0})},
};

sx_value sx_transpose_at(sx_builder *b, sx_value x, int rank, const int64_t *perm, const char *file,
                         int line)
{
    sx_transpose_attrs attrs = {.perm = sx_ints_of(rank, perm)};
    return sx_build_at(b, &sx_op_transpose, &attrs, &x, 1, file, line);
}

const sx_op_def sx_op_transpose = {
    SX_OP_NAMED(transpose),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x1,
    .flags = SX_OP_EXACT | SX_OP_KEEPS_RANK,
    SX_OP_ATTRS(sx_transpose_attrs, transpose_attrs),
    .moved = 0x1,
    .infer = transpose_infer,
    .grad = transpose_grad,
    .host = transpose_host,
    .to_tf = transpose_to_tf,
    SX_FROM_TF({.op = "Transpose", .operands = {{1, "perm"}}}),
    SX_OP_SAMPLES(transpose_samples),
};
