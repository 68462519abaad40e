/* gather_grad: the gradient of gather with respect to its table: each slice of dy is added to the
 * one that it was gathered from.
 *
 *   indices     [B..., I...], int32 or int64; those outside [0, rows) add nothing
 *   dy          [B..., P..., I..., J...], a float type
 *   rows        the size of the table along the axis
 *   axis        as gather's
 *   batch_dims  as gather's
 *   returns     [B..., P..., rows, J...]
 *
 * If only the indices and their part of dy have the batch, the sums of shards are added. It is
 * linear: d(dy) = gather(g, indices).
 * Errors   INVALID_ARGUMENT  dtypes, dy does not have the indices' dimensions, negative rows
 * Numbers  accumulates in f32 for f16, bf16, in order of the examples
 * Source   TensorFlow's gradient of tf.gather, made dense */
#ifdef SX_ATTRS
typedef struct sx_gather_grad_attrs {
    int64_t rows; /* of the table whose gradient it makes */
    int64_t axis, batch_dims;
} sx_gather_grad_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def gather_grad_attrs[] = {
    SX_ATTR(sx_gather_grad_attrs, rows, SX_ATTR_INT),
    SX_ATTR(sx_gather_grad_attrs, axis, SX_ATTR_INT),
    SX_ATTR(sx_gather_grad_attrs, batch_dims, SX_ATTR_INT),
};

static sx_status gather_grad_infer(sx_infer_context *c)
{
    const sx_gather_grad_attrs *attrs = c->attrs;
    const sx_type *indices = &c->inputs[0], *dy = &c->inputs[1];
    const int64_t axis = attrs->axis, paired = attrs->batch_dims;
    SX_TRY(sx_require_index("indices", indices));
    SX_TRY(sx_require_float("dy", dy));
    bool fits = attrs->rows >= 0 && paired >= 0 && paired <= axis && paired <= indices->rank &&
                axis + indices->rank - paired <= dy->rank && axis < SX_MAX_RANK &&
                dy->rank - (indices->rank - paired) < SX_MAX_RANK;
    for (int i = 0; fits && i < indices->rank; i++) {
        fits = indices->dims[i] == dy->dims[i < paired ? i : i - paired + axis];
    }
    if (!fits) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "dy is %s for indices %s, %lld rows, axis %lld and batch_dims %lld; "
                        "expected its dimensions at the axis to be those of the indices",
                        SX_TEXT(dy), SX_TEXT(indices), (long long)attrs->rows, (long long)axis,
                        (long long)paired);
    }
    sx_type table = {.dtype = dy->dtype};
    for (int i = 0; i < axis; i++) {
        table.dims[table.rank++] = dy->dims[i];
    }
    table.dims[table.rank++] = attrs->rows;
    for (int i = (int)(axis + indices->rank - paired); i < dy->rank; i++) {
        table.dims[table.rank++] = dy->dims[i];
    }
    c->outputs[0] = table;
    return SX_OK;
}

static void gather_grad_grad(sx_grad *g)
{
    const sx_gather_grad_attrs *attrs = g->attrs;
    const sx_gather_attrs forth = {.axis = attrs->axis, .batch_dims = attrs->batch_dims};
    if (g->needed[1]) {
        g->dx[1] = sx_build_op(g->b, gather, &forth, g->dy[0], g->x[0]);
    }
}

/* The table seen as [pairs, before, rows, width], dy as [pairs, before, count, width]. */
static sx_status gather_grad_host(const sx_kernel_call *c)
{
    const sx_gather_grad_attrs *attrs = c->attrs;
    const sx_type *table = &c->out[0].type, *indices = &c->in[0].type;
    const int axis = (int)attrs->axis, paired = (int)attrs->batch_dims;
    const int64_t pairs = sx_dims_product(table, 0, paired), rows = attrs->rows;
    const int64_t before = sx_dims_product(table, paired, axis);
    const int64_t width = sx_dims_product(table, axis + 1, table->rank);
    const int64_t count = sx_dims_product(indices, paired, indices->rank);
    sx_host_fill(c, 0, 0);
    for (int64_t i = 0; i < pairs * before * count; i++) {
        const int64_t part = i / count, row = c->in[0].i[part / before * count + i % count];
        for (int64_t k = 0; k < width && row >= 0 && row < rows; k++) {
            c->out[0].f[(part * rows + row) * width + k] += c->in[1].f[i * width + k];
        }
    }
    return SX_OK;
}

#define ROWS(rows_, ...) (&(const sx_gather_grad_attrs){.rows = (rows_), __VA_ARGS__})
static const sx_op_sample gather_grad_samples[] = {
    {.name = "embedding",
     .inputs = {SX_SAMPLE_I32(6, SX_BATCH, 4), SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 4, 3)},
     .n_inputs = 2,
     .attrs = ROWS(6, .axis = 0)},
    {.name = "some_outside",
     .inputs = {SX_SAMPLE_I32(9, SX_BATCH), SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH)},
     .n_inputs = 2,
     .attrs = ROWS(4, .axis = 0)},
    {.name = "batch_inside",
     .inputs = {SX_SAMPLE_I32(6, 2, -2), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, -2, 3)},
     .n_inputs = 2,
     .attrs = ROWS(6, .axis = 0)},
    {.name = "columns", /* the table has the batch */
     .inputs = {SX_SAMPLE_I32(6, 4), SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 4, 3)},
     .n_inputs = 2,
     .attrs = ROWS(6, .axis = 1)},
    {.name = "of_each_example",
     .inputs = {SX_SAMPLE_I32(6, SX_BATCH, 4), SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 2, 4, 3)},
     .n_inputs = 2,
     .attrs = ROWS(6, .axis = 2, .batch_dims = 1)},
};

const sx_op_def sx_op_gather_grad = {
    SX_OP_NAMED(gather_grad),
    .n_in = 2,
    .n_out = 1,
    .batch_rule = SX_RULE_SUM,
    .bf16 = 0x2,
    .flags = SX_OP_SUM | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_gather_grad_attrs, gather_grad_attrs),
    .infer = gather_grad_infer,
    .grad = gather_grad_grad,
    .host = gather_grad_host,
    SX_OP_SAMPLES(gather_grad_samples),
};
