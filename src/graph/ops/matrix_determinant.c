/* matrix_determinant: the determinant of each square matrix; with `log` its sign, and the logarithm
 * of its magnitude.
 *
 *   x        [...,n,n], any float
 *   returns  [...] of x's dtype; with `log` two of them
 *
 * Errors   INVALID_ARGUMENT  no float, not square
 * Numbers  by LU factors, whose product overflows only if the determinant does; of no element it
 *          is 1
 * Source   TensorFlow tf.linalg.det, tf.linalg.slogdet */
#include "graph/ops/linear_algebra.h"

typedef struct sx_matrix_determinant_attrs {
    bool log;
} sx_matrix_determinant_attrs;

static const sx_attr_def matrix_determinant_attrs[] = {
    SX_ATTR(sx_matrix_determinant_attrs, log, SX_ATTR_BOOL)};

static sx_status matrix_determinant_infer(sx_infer_context *c)
{
    const sx_matrix_determinant_attrs *attrs = c->attrs;
    SX_TRY(sx_require_square("x", &c->inputs[0]));
    c->n_outputs = attrs->log ? 2 : 1;
    c->outputs[0] = c->outputs[1] = sx_heads_of(&c->inputs[0], 2);
    return SX_OK;
}

/* dx = dy y x⁻ᵀ; of the logarithm dy x⁻ᵀ, and none of the sign */
static void matrix_determinant_grad(sx_grad *g)
{
    const sx_matrix_determinant_attrs *attrs = g->attrs;
    const sx_value dy = attrs->log              ? g->dy[1]
                        : sx_value_is(g->dy[0]) ? sx_build_op(g->b, mul, NULL, g->dy[0], g->y[0])
                                                : SX_NO_VALUE;
    if (sx_value_is(dy)) {
        const sx_value inverse =
            sx_build_op(g->b, matrix_inverse, &(sx_adjoint_attrs){.adjoint = true}, g->x[0]);
        g->dx[0] =
            sx_build_op(g->b, mul, NULL, sx_as_column(g->b, sx_as_column(g->b, dy)), inverse);
    }
}

static sx_status matrix_determinant_host(const sx_kernel_call *c)
{
    const sx_matrix_determinant_attrs *attrs = c->attrs;
    const sx_matrices x = sx_matrices_of(&c->in[0].type);
    const int64_t n = x.rows;
    double *lu = sx_matrix_room(c, n * n);
    int64_t *order = sx_arena_array(c->arena, n + 1, int64_t);
    int sign;
    bool regular;
    if (lu == NULL || order == NULL) {
        return sx_no_memory("for the factors of a matrix");
    }
    for (int64_t p = 0; p < x.count; p++) {
        memcpy(lu, c->in[0].f + p * n * n, (size_t)(n * n) * sizeof(*lu));
        SX_TRY(sx_lu_factor(c, lu, n, order, &sign, &regular));
        double product = sign, signs = sign, logs = 0; /* product 2^exponent */
        int exponent = 0;
        for (int64_t i = 0; i < n; i++) {
            const double v = lu[i * n + i];
            int moved = 0;
            product = frexp(product * v, &moved);
            exponent += isfinite(product) ? moved : 0;
            signs *= v > 0 ? 1 : v < 0 ? -1 : v;
            logs += log(fabs(v));
        }
        c->out[0].f[p] = attrs->log ? signs : ldexp(product, exponent);
        if (attrs->log) {
            c->out[1].f[p] = logs;
        }
    }
    return SX_OK;
}

static void matrix_determinant_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_matrix_determinant_attrs *attrs = op->attrs;
    sx_tf_same(w, op, &sx_op_matrix_determinant,
               attrs->log ? "LogMatrixDeterminant" : "MatrixDeterminant",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static sx_status log_from_tf(const sx_tf_node *n, void *out)
{
    (void)n;
    ((sx_matrix_determinant_attrs *)out)->log = true;
    return SX_OK;
}

static const double numbers[] = {4, 1, 0.5, -1, 3, 0, 2, 0.5, 5};
static const sx_op_sample matrix_determinant_samples[] = {
    {.name = "stack", .inputs = {SX_SAMPLE_LIST(SX_F32, numbers, 2, 3, 3)}, .n_inputs = 1},
    {.name = "log",
     .inputs = {SX_SAMPLE_LIST(SX_F32, numbers, 3, 3)},
     .n_inputs = 1,
     .attrs = &(const sx_matrix_determinant_attrs){.log = true}},
};

const sx_op_def sx_op_matrix_determinant = {
    SX_OP_NAMED(matrix_determinant),
    .n_in = 1,
    .n_out = SX_VARIADIC,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_matrix_determinant_attrs, matrix_determinant_attrs),
    .infer = matrix_determinant_infer,
    .grad = matrix_determinant_grad,
    .host = matrix_determinant_host,
    .to_tf = matrix_determinant_to_tf,
    SX_FROM_TF({.op = "MatrixDeterminant"}, {.op = "LogMatrixDeterminant", .attrs = log_from_tf}),
    SX_OP_SAMPLES(matrix_determinant_samples),
};
