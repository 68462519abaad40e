/* reshape: the same elements in the same order in another shape;  dx = dy in x's shape.
 *
 *   x        any type
 *   shape    as many elements as x, and the batch if x has it
 *   returns  x's dtype
 *
 * The batch merges with the dimensions after it, and splits into itself and those: the elements of
 * an example stay together, [N,T,D] -> [T*N,D] and back, [A,N,T] -> [A,T*N]. So the dimensions
 * before the batch have the same product in both shapes. [A,N] -> [A*N] would lay example n at n,
 * n + N, ...: transpose it to [N,A] first.
 *
 * Errors   INVALID_ARGUMENT  counts of elements differ, the batch would be lost or made, or merged
 *                            with dimensions before it
 * Numbers  exact
 * Source   TensorFlow tf.reshape */
#ifdef SX_PUBLIC
/* sx_reshape(b, x, SX_BATCH, 784). If x has the batch, so has the result, with the same number of
 * elements before it: [N,T,D] can be [T*N,D], sx_reshape(b, x, -T, D), and back. A shape that is
 * computed at run time is an operand of sx_function_node(). */
sx_value sx_reshape(sx_builder *b, sx_value x, int rank, const int64_t *dims);
#endif
#ifdef SX_ATTRS
/* reshape, broadcast_to */
typedef struct sx_shape_attrs {
    sx_ints shape; /* may have the batch */
} sx_shape_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def reshape_attrs[] = {
    SX_ATTR_MEANS(sx_shape_attrs, shape, SX_ATTR_SHAPE, SX_MEANS_SHAPE_REST)};

static sx_status reshape_infer(sx_infer_context *c)
{
    const sx_shape_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0];
    sx_type y = sx_type_make(x->dtype, attrs->shape.n, attrs->shape.v);
    for (int i = 0; i < y.rank; i++) {
        if (y.dims[i] == SX_UNKNOWN_DIM) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "size %d of the shape %s is SX_UNKNOWN_DIM: sx_function_node() takes a "
                            "shape that is computed at run time",
                            i, SX_TEXT(&y));
        }
    }
    int64_t n = sx_dims_product(x, 0, x->rank), m = sx_dims_product(&y, 0, y.rank);
    int p = sx_batch_axis(x), q = sx_batch_axis(&y);
    const char *wrong = (p < 0) != (q < 0) ? "the batch N must be in both shapes or in neither"
                        : n < 0 || n != m  ? "the numbers of elements differ"
                        : p >= 0 && sx_dims_product(x, 0, p) != sx_dims_product(&y, 0, q)
                            ? "it would take the examples apart: the batch N merges only with "
                              "dimensions after it; transpose x so that N comes first"
                            : NULL;
    if (wrong != NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "cannot reshape %s to %s: %s", SX_TEXT(x), SX_TEXT(&y),
                        wrong);
    }
    c->outputs[0] = y;
    return SX_OK;
}

static void reshape_grad(sx_grad *g)
{
    sx_type x = sx_type_of_value(g->b, g->x[0]);
    g->dx[0] = sx_reshape_to(g->b, g->dy[0], &x);
}

static void reshape_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_shape_attrs *attrs = op->attrs;
    sx_tf_value shape = sx_tf_shape(w, "shape", &attrs->shape);
    op->out[0] = sx_tf_add(w, "Reshape", NULL, sx_tf_in(op->in[0], shape),
                           sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

#define SHAPE(...) (&(const sx_shape_attrs){.shape = {__VA_ARGS__}})
static const sx_op_sample reshape_samples[] = {
    {.name = "flatten",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 3, 2, 5)},
     .n_inputs = 1,
     .attrs = SHAPE(2, {SX_BATCH, 30})},
    {.name = "unflatten",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 12)},
     .n_inputs = 1,
     .attrs = SHAPE(4, {SX_BATCH, 2, 1, 6})},
    {.name = "column",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH)},
     .n_inputs = 1,
     .attrs = SHAPE(2, {SX_BATCH, 1})},
    {.name = "to_scalar",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 1, 1)},
     .n_inputs = 1,
     .attrs = SHAPE(0, {0})},
    {.name = "static_int",
     .inputs = {SX_SAMPLE_I32(9, 6)},
     .n_inputs = 1,
     .attrs = SHAPE(2, {2, 3})},
    {.name = "merge_batch",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 4, 3)},
     .n_inputs = 1,
     .attrs = SHAPE(2, {-4, 3})},
    {.name = "split_batch",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, -4, 3)},
     .n_inputs = 1,
     .attrs = SHAPE(3, {SX_BATCH, 2, 6})},
    {.name = "merge_inside",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 3, SX_BATCH, 2, 2)},
     .n_inputs = 1,
     .attrs = SHAPE(3, {3, -2, 2})},
};

sx_value sx_reshape_at(sx_builder *b, sx_value x, int rank, const int64_t *dims, const char *file,
                       int line)
{
    sx_shape_attrs attrs = {.shape = sx_ints_of(rank, dims)};
    return sx_build_at(b, &sx_op_reshape, &attrs, &x, 1, file, line);
}

const sx_op_def sx_op_reshape = {
    SX_OP_NAMED(reshape),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x1,
    .flags = SX_OP_EXACT | SX_OP_VIEW,
    SX_OP_ATTRS(sx_shape_attrs, reshape_attrs),
    .moved = 0x1,
    .infer = reshape_infer,
    .grad = reshape_grad,
    .host = sx_host_copy,
    .to_tf = reshape_to_tf,
    SX_FROM_TF({.op = "Reshape", .operands = {{1, "shape"}}}),
    SX_OP_SAMPLES(reshape_samples),
};
