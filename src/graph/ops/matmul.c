/* matmul: y = op(a) op(b), where op transposes if asked.
 *
 *   da = dy op(b)ᵀ,  db = op(a)ᵀ dy, and transposed where a, b were
 *
 *   a, b     rank 2, one float dtype; the batch may be the rows of `a`, the columns of `b`, or the
 *            inner dimension
 *   wide     f16 and bf16 operands give f32, the type of the accumulator
 *   returns  [rows of op(a), columns of op(b)]
 *
 * If the inner dimension is the batch, the products of shards are added.
 * Errors   INVALID_ARGUMENT  rank not 2, no float, inner dimensions differ, the batch as rows and
 *                            columns
 * Numbers  accumulates in f32 for f16, bf16, f32; error within 1e-5 of the sum of |terms|
 * Source   TensorFlow tf.linalg.matmul on matrices */
#ifdef SX_PUBLIC
typedef struct sx_matmul_args {
    size_t struct_size;
    bool transpose_a, transpose_b;
} sx_matmul_args;

/* The product of two matrices; the rows of lhs may be the batch. */
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

static sx_status matmul_infer(sx_infer_context *c)
{
    const sx_matmul_attrs *attrs = c->attrs;
    const sx_type *a = &c->inputs[0], *b = &c->inputs[1];
    SX_TRY(sx_require_float("a", a));
    SX_TRY(sx_require_dtype("b", b, a->dtype));
    SX_TRY(sx_require_rank("a", a, 2, "[N,K]"));
    SX_TRY(sx_require_rank("b", b, 2, "[K,M]"));
    int64_t rows = a->dims[attrs->transpose_a], inner_a = a->dims[!attrs->transpose_a];
    int64_t columns = b->dims[!attrs->transpose_b], inner_b = b->dims[attrs->transpose_b];
    if (inner_a != inner_b) {
        return sx_error(SX_INVALID_ARGUMENT, "the inner dimensions of a %s%s and b %s%s differ",
                        SX_TEXT(a), attrs->transpose_a ? " transposed" : "", SX_TEXT(b),
                        attrs->transpose_b ? " transposed" : "");
    }
    sx_dtype dtype = attrs->wide ? sx_accumulator_dtype(a->dtype) : a->dtype;
    c->outputs[0] = sx_type_of(dtype, rows, columns);
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
        g->dx[0] = ta ? product(g->b, b, tb, dy, true) : product(g->b, dy, false, b, !tb);
    }
    if (g->needed[1]) {
        g->dx[1] = tb ? product(g->b, dy, true, a, ta) : product(g->b, a, !ta, dy, false);
    }
}

static double element(const sx_host_tensor *t, bool transposed, int64_t row, int64_t column)
{
    int64_t width = t->type.dims[1];
    return transposed ? t->f[column * width + row] : t->f[row * width + column];
}

static sx_status matmul_host(const sx_kernel_call *c)
{
    const sx_matmul_attrs *attrs = c->attrs;
    const sx_host_tensor *y = &c->out[0];
    int64_t rows = y->type.dims[0], columns = y->type.dims[1];
    int64_t inner = c->in[0].type.dims[!attrs->transpose_a];
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            double sum = 0;
            for (int64_t k = 0; k < inner; k++) {
                sum += element(&c->in[0], attrs->transpose_a, i, k) *
                       element(&c->in[1], attrs->transpose_b, k, j);
            }
            y->f[i * columns + j] = sum;
        }
    }
    return SX_OK;
}

static void matmul_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_matmul_attrs *attrs = op->attrs;
    sx_tf_attr list[3] = {sx_tf_attr_type("T", (int)op->in_types[0].dtype)};
    int n = 1;
    if (attrs->transpose_a) {
        list[n++] = sx_tf_attr_bool("transpose_a", true);
    }
    if (attrs->transpose_b) {
        list[n++] = sx_tf_attr_bool("transpose_b", true);
    }
    sx_tf_value y =
        sx_tf_add(w, "MatMul", NULL, sx_tf_in(op->in[0], op->in[1]), (sx_tf_attr_list){list, n});
    op->out[0] = sx_tf_cast(w, y, op->in_types[0].dtype, op->out_types[0].dtype);
}

static sx_status matmul_from_tf(const sx_tf_node *n, void *out)
{
    sx_matmul_attrs *attrs = out;
    attrs->transpose_a = sx_tf_read_bool(n, "transpose_a", false);
    attrs->transpose_b = sx_tf_read_bool(n, "transpose_b", false);
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
    int64_t rows = out[0].dims[0];
    double inner = rows == 0 ? 0 : (double)sx_type_elems(&in[0]) / (double)rows;
    return 2.0 * (double)sx_type_elems(&out[0]) * inner;
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
    SX_FROM_TF({.op = "MatMul", .attrs = matmul_from_tf}),
    SX_OP_SAMPLES(matmul_samples),
};
