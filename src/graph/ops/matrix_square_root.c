/* matrix_square_root: y with y y = x whose eigenvalues have no negative real parts, of each square
 * matrix.
 *
 *   x        [...,n,n], any float
 *   returns  x's type
 *
 * Errors   INVALID_ARGUMENT  no float, not square; (running) a matrix without an inverse, or with
 *                            a real eigenvalue that is negative
 * Numbers  by sx_matrix_square_root() of linear_algebra.h; NaN or infinity in a matrix gives NaN
 * Source   TensorFlow tf.linalg.sqrtm */
#include "graph/ops/linear_algebra.h"

/* dx with yT dx + dx yT = dy, as one system of n n equations. */
static void matrix_square_root_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    const sx_type type = sx_type_of_value(b, g->y[0]);
    const int heads = type.rank - 2;
    const int64_t n = type.dims[heads];
    sx_value part[2];
    for (int k = 0; k < 2; k++) { /* yT (x) I, I (x) y */
        sx_type left = type, right = type, all = type;
        left.rank = right.rank = heads + 4;
        for (int d = 0; d < 4; d++) {
            left.dims[heads + d] = d % 2 == 0 ? n : 1;
            right.dims[heads + d] = d % 2 == 0 ? 1 : n;
        }
        all.dims[heads] = all.dims[heads + 1] = n * n;
        sx_type eye_type = k == 0 ? right : left;
        for (int d = 0; d < heads; d++) {
            eye_type.dims[d] = 1;
        }
        const sx_value row = sx_reshape_dims(b, sx_numbers_to(b, n), 1, &n);
        const sx_value eye = sx_cast_like(
            b, sx_build_op(b, equal, NULL, sx_as_column(b, row), sx_as_row(b, row)), g->y[0]);
        const sx_value y =
            sx_reshape_to(b, k == 0 ? sx_transposed(b, g->y[0]) : g->y[0], k == 0 ? &left : &right);
        part[k] =
            sx_reshape_to(b, sx_build_op(b, mul, NULL, y, sx_reshape_to(b, eye, &eye_type)), &all);
    }
    sx_type column = type;
    column.dims[heads] = n * n;
    column.dims[heads + 1] = 1;
    const sx_value system = sx_build_op(b, add, NULL, part[0], part[1]);
    const sx_value dx = sx_build_op(b, matrix_solve, (&(sx_adjoint_attrs){false}), system,
                                    sx_reshape_to(b, g->dy[0], &column));
    g->dx[0] = sx_reshape_to(b, dx, &type);
}

static sx_status matrix_square_root_host(const sx_kernel_call *c)
{
    const sx_matrices x = sx_matrices_of(&c->in[0].type);
    const int64_t size = x.rows * x.rows;
    double *room = sx_matrix_room(c, 4 * size);
    int64_t *order = sx_arena_array(c->arena, x.rows + 1, int64_t);
    if (room == NULL || order == NULL) {
        return sx_no_memory("for the square root of a matrix");
    }
    for (int64_t m = 0; m < x.count; m++) {
        double *y = c->out[0].f + m * size;
        memcpy(y, c->in[0].f + m * size, (size_t)size * sizeof(*y));
        SX_TRY(sx_matrix_square_root(c, m, x.rows, y, room, order));
    }
    return SX_OK;
}

static void matrix_square_root_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_matrix_square_root, "MatrixSquareRoot",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const double numbers[] = {4, 1, 0.5, -1, 3, 0, 2, 0.5, 5};
static const sx_op_sample matrix_square_root_samples[] = {
    {.name = "stack", .inputs = {SX_SAMPLE_LIST(SX_F32, numbers, 2, 3, 3)}, .n_inputs = 1},
};

const sx_op_def sx_op_matrix_square_root = {
    SX_OP_NAMED(matrix_square_root),
    .n_in = 1,
    .n_out = 1,
    .flags = SX_OP_HOST,
    .infer = sx_infer_square,
    .grad = matrix_square_root_gradient,
    .host = matrix_square_root_host,
    .to_tf = matrix_square_root_to_tf,
    SX_FROM_TF({.op = "MatrixSquareRoot"}),
    SX_OP_SAMPLES(matrix_square_root_samples),
};
