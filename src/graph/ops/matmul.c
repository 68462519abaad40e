/* matmul: y = op(a) op(b), where op transposes if asked.
 *
 *   da = dy op(b)ᵀ,  db = op(a)ᵀ dy, and transposed where a, b were
 *
 *   a, b     [..., M, K] and [..., K, N] of one dtype, any number: matrices, or stacks of them,
 * whose dimensions in front broadcast; the batch may be one of those, the rows of `a`, the columns
 * of `b`, or the inner dimension wide     f16 and bf16 operands give f32, the type of the
 * accumulator returns  [..., rows of op(a), columns of op(b)]
 *
 * If the inner dimension is the batch, the products of shards are added.
 * Errors   INVALID_ARGUMENT  rank below 2, no number, inner dimensions differ, dimensions in front
 *                            do not broadcast, the batch as rows and columns
 * Numbers  accumulates in f32 for f16, bf16, f32; error within 1e-5 of the sum of |terms|;
 *          integers wrap
 * Source   TensorFlow tf.linalg.matmul */
#ifdef SX_PUBLIC
typedef struct sx_matmul_args {
    size_t struct_size;
    bool transpose_a, transpose_b;
} sx_matmul_args;

/* The product of two matrices, or of stacks of them, [..., M, K] by [..., K, N]. */
sx_value sx_matmul(sx_builder *b, sx_value lhs, sx_value rhs, const sx_matmul_args *args);
#endif
#ifdef SX_ATTRS
typedef struct sx_matmul_attrs {
    bool transpose_a, transpose_b;
    bool wide; /* the result stays in the accumulator's dtype: float32 for bfloat16 */
} sx_matmul_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def matmul_attrs[] = {
    SX_ATTR(sx_matmul_attrs, transpose_a, SX_ATTR_BOOL),
    SX_ATTR(sx_matmul_attrs, transpose_b, SX_ATTR_BOOL),
    SX_ATTR(sx_matmul_attrs, wide, SX_ATTR_BOOL),
};

/* The type without its last two dimensions. */
static sx_type head_of(const sx_type *t)
{
    sx_type head = *t;
    head.rank -= 2;
    return head;
}

static sx_status matmul_infer(sx_infer_context *c)
{
    const sx_matmul_attrs *attrs = c->attrs;
    const sx_type *a = &c->inputs[0], *b = &c->inputs[1];
    SX_TRY(sx_require_number("a", a));
    SX_TRY(sx_require_dtype("b", b, a->dtype));
    if (a->rank < 2 || b->rank < 2) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "a is %s and b is %s, expected [...,M,K] and [...,K,N]; add sx_reshape()",
                        SX_TEXT(a), SX_TEXT(b));
    }
    const int64_t *of_a = &a->dims[a->rank - 2], *of_b = &b->dims[b->rank - 2];
    if (of_a[!attrs->transpose_a] != of_b[attrs->transpose_b]) {
        return sx_error(SX_INVALID_ARGUMENT, "the inner dimensions of a %s%s and b %s%s differ",
                        SX_TEXT(a), attrs->transpose_a ? " transposed" : "", SX_TEXT(b),
                        attrs->transpose_b ? " transposed" : "");
    }
    const sx_type head_a = head_of(a), head_b = head_of(b);
    sx_type y;
    SX_TRY(sx_infer_broadcast(&head_a, &head_b, &y));
    y.dtype =
        attrs->wide && sx_dtype_is_float(a->dtype) ? sx_accumulator_dtype(a->dtype) : a->dtype;
    y.dims[y.rank++] = of_a[attrs->transpose_a];
    y.dims[y.rank++] = of_b[!attrs->transpose_b];
    c->outputs[0] = y;
    return SX_OK;
}

static sx_value product(sx_builder *b, sx_value lhs, bool transpose_lhs, sx_value rhs,
                        bool transpose_rhs)
{
    sx_matmul_attrs attrs = {.transpose_a = transpose_lhs, .transpose_b = transpose_rhs};
    return sx_build_op(b, matmul, &attrs, lhs, rhs);
}

/* a as given:     da = dy op(b)ᵀ      b as given:     db = op(a)ᵀ dy
 * a transposed:   da = op(b) dyᵀ      b transposed:   db = dyᵀ op(a) */
static void matmul_grad(sx_grad *g)
{
    const sx_matmul_attrs *attrs = g->attrs;
    bool ta = attrs->transpose_a, tb = attrs->transpose_b;
    sx_value a = g->x[0], b = g->x[1], dy = sx_cast_like(g->b, g->dy[0], a);
    if (g->needed[0]) {
        sx_value da = ta ? product(g->b, b, tb, dy, true) : product(g->b, dy, false, b, !tb);
        g->dx[0] = sx_unbroadcast(g->b, da, a);
    }
    if (g->needed[1]) {
        sx_value db = tb ? product(g->b, dy, true, a, ta) : product(g->b, a, !ta, dy, false);
        g->dx[1] = sx_unbroadcast(g->b, db, b);
    }
}

static int64_t place_of(const sx_host_tensor *t, int64_t first, bool transposed, int64_t row,
                        int64_t column)
{
    int64_t width = t->type.dims[t->type.rank - 1];
    return first + (transposed ? column * width + row : row * width + column);
}

static sx_status matmul_host(const sx_kernel_call *c)
{
    const sx_matmul_attrs *attrs = c->attrs;
    const sx_host_tensor *a = &c->in[0], *b = &c->in[1], *y = &c->out[0];
    const sx_type heads[3] = {head_of(&a->type), head_of(&b->type), head_of(&y->type)};
    const int64_t rows = y->type.dims[y->type.rank - 2], columns = y->type.dims[y->type.rank - 1];
    const int64_t inner = a->type.dims[a->type.rank - 2 + !attrs->transpose_a];
    const int64_t products = sx_type_elems(&heads[2]);
    for (int64_t p = 0; p < products; p++) {
        const int64_t of_a = sx_broadcast_offset(&heads[2], &heads[0], p) * rows * inner;
        const int64_t of_b = sx_broadcast_offset(&heads[2], &heads[1], p) * inner * columns;
#define MULTIPLY(type, field)                                                  \
    for (int64_t i = 0; i < rows; i++) {                                       \
        for (int64_t j = 0; j < columns; j++) {                                \
            type sum = 0;                                                      \
            for (int64_t k = 0; k < inner; k++) {                              \
                sum += a->field[place_of(a, of_a, attrs->transpose_a, i, k)] * \
                       b->field[place_of(b, of_b, attrs->transpose_b, k, j)];  \
            }                                                                  \
            y->field[(p * rows + i) * columns + j] = sum;                      \
        }                                                                      \
    }
        if (sx_dtype_is_float(y->type.dtype)) {
            MULTIPLY(double, f)
        } else { /* modulo 2^64: the same bits for signed numbers */
            MULTIPLY(uint64_t, u)
        }
    }
    return SX_OK;
}

static void matmul_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_matmul_attrs *attrs = op->attrs;
    sx_tf_attr list[3] = {sx_tf_attr_type("T", (int)op->in_types[0].dtype)};
    int n = 1;
    const bool plain = op->in_types[0].rank == 2 && op->in_types[1].rank == 2;
    if (attrs->transpose_a) {
        list[n++] = sx_tf_attr_bool(plain ? "transpose_a" : "adj_x", true);
    }
    if (attrs->transpose_b) {
        list[n++] = sx_tf_attr_bool(plain ? "transpose_b" : "adj_y", true);
    }
    sx_tf_value y = sx_tf_add(w, plain ? "MatMul" : "BatchMatMulV2", NULL,
                              sx_tf_in(op->in[0], op->in[1]), (sx_tf_attr_list){list, n});
    op->out[0] = sx_tf_cast(w, y, op->in_types[0].dtype, op->out_types[0].dtype);
}

static sx_status matmul_from_tf(const sx_tf_node *n, void *out)
{
    sx_matmul_attrs *attrs = out;
    attrs->transpose_a = sx_tf_read_bool(n, "transpose_a", false);
    attrs->transpose_b = sx_tf_read_bool(n, "transpose_b", false);
    return SX_OK;
}

static sx_status batch_matmul_from_tf(const sx_tf_node *n, void *out)
{
    sx_matmul_attrs *attrs = out;
    attrs->transpose_a = sx_tf_read_bool(n, "adj_x", false);
    attrs->transpose_b = sx_tf_read_bool(n, "adj_y", false);
    return SX_OK;
}

#define NN              SX_FILL_NORMAL
#define TRANSPOSE(a, b) (&(const sx_matmul_attrs){.transpose_a = (a), .transpose_b = (b)})
static const sx_op_sample matmul_samples[] = {
    {.name = "dense",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 7), SX_SAMPLE_F32(NN, 7, 3)},
     .n_inputs = 2},
    {.name = "to_one",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 33), SX_SAMPLE_F32(NN, 33, 1)},
     .n_inputs = 2},
    {.name = "input_gradient",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 3), SX_SAMPLE_F32(NN, 7, 3)},
     .n_inputs = 2,
     .attrs = TRANSPOSE(false, true)},
    {.name = "filter_gradient",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 7), SX_SAMPLE_F32(NN, SX_BATCH, 3)},
     .n_inputs = 2,
     .attrs = TRANSPOSE(true, false)},
    {.name = "both_transposed",
     .inputs = {SX_SAMPLE_F32(NN, 4, 5), SX_SAMPLE_F32(NN, 2, 4)},
     .n_inputs = 2,
     .attrs = TRANSPOSE(true, true)},
    {.name = "one_by_one",
     .inputs = {SX_SAMPLE_F32(NN, 1, 1), SX_SAMPLE_F32(NN, 1, 1)},
     .n_inputs = 2},
    {.name = "multiple",
     .inputs = {SX_SAMPLE_F32(NN, -3, 7), SX_SAMPLE_F32(NN, 7, 2)},
     .n_inputs = 2},
    {.name = "multiple_summed",
     .inputs = {SX_SAMPLE_F32(NN, 7, -2), SX_SAMPLE_F32(NN, -2, 3)},
     .n_inputs = 2},
    {.name = "heads",
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 2, 3, 4), SX_SAMPLE_F32(NN, SX_BATCH, 2, 5, 4)},
     .n_inputs = 2,
     .attrs = TRANSPOSE(false, true)},
    {.name = "sequence", /* the same b for each example */
     .inputs = {SX_SAMPLE_F32(NN, SX_BATCH, 3, 4), SX_SAMPLE_F32(NN, 4, 2)},
     .n_inputs = 2},
    {.name = "broadcast",
     .inputs = {SX_SAMPLE_F32(NN, 3, 1, 4, 2), SX_SAMPLE_F32(NN, -2, 4, 5)},
     .n_inputs = 2,
     .attrs = TRANSPOSE(true, false)},
    {.name = "tokens", /* a's rows hold the batch */
     .inputs = {SX_SAMPLE_F32(NN, 2, -3, 4), SX_SAMPLE_F32(NN, 2, 4, 5)},
     .n_inputs = 2},
    {.name = "int32",
     .inputs = {SX_SAMPLE_I32(1000, SX_BATCH, 7), SX_SAMPLE_I32(1000, 7, 3)},
     .n_inputs = 2},
    {.name = "batch_columns",
     .inputs = {SX_SAMPLE_F32(NN, 4, 5), SX_SAMPLE_F32(NN, -2, 5)},
     .n_inputs = 2,
     .attrs = TRANSPOSE(false, true)},
};

sx_value sx_matmul_at(sx_builder *b, sx_value lhs, sx_value rhs, const sx_matmul_args *args,
                      const char *file, int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_matmul_args, args);
    sx_matmul_attrs attrs = {.transpose_a = args->transpose_a, .transpose_b = args->transpose_b};
    return sx_build_at(b, &sx_op_matmul, &attrs, (const sx_value[]){lhs, rhs}, 2, file, line);
}

static double matmul_flops(const sx_type *in, const sx_type *out)
{
    /* K² = (M K) (K N) / (M N), whichever operand is transposed */
    const double a = in[0].rank < 2
                         ? 0
                         : (double)in[0].dims[in[0].rank - 1] * (double)in[0].dims[in[0].rank - 2];
    const double b = in[1].rank < 2
                         ? 0
                         : (double)in[1].dims[in[1].rank - 1] * (double)in[1].dims[in[1].rank - 2];
    const double y = out[0].rank < 2 ? 0
                                     : (double)out[0].dims[out[0].rank - 1] *
                                           (double)out[0].dims[out[0].rank - 2];
    return y == 0 ? 0 : 2 * (double)sx_type_elems(&out[0]) * sqrt(a * b / y);
}

const sx_op_def sx_op_matmul = {
    SX_OP_NAMED(matmul),
    .n_in = 2,
    .n_out = 1,
    .batch_rule = SX_RULE_SUM,
    .bf16 = 0x3,
    .flags = SX_OP_SUM,
    SX_OP_ATTRS(sx_matmul_attrs, matmul_attrs),
    .infer = matmul_infer,
    .grad = matmul_grad,
    .host = matmul_host,
    .flops = matmul_flops,
    .to_tf = matmul_to_tf,
    SX_FROM_TF({.op = "MatMul", .attrs = matmul_from_tf},
               {.op = "BatchMatMulV2", .attrs = batch_matmul_from_tf},
               {.op = "BatchMatMul", .attrs = batch_matmul_from_tf}),
    SX_OP_SAMPLES(matmul_samples),
};
