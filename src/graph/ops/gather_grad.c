/* gather_grad: the gradient of gather with respect to its table: each dy is added to the row it was
 * gathered from.
 *
 *   dtable[v, j...] = sum of dy[i..., j...] over the i... with index[i...] == v
 *
 *   indices  any shape, int32 or int64; those outside [0, rows) add nothing
 *   dy       indices' shape and then a row's, a float type
 *   rows     of the table
 *   returns  [rows, ...]
 *
 * Over the batch, the sums of shards are added. It is linear: d(dy) = gather(g, indices).
 * Errors   INVALID_ARGUMENT  dtypes, dy does not begin with the indices' shape, negative rows
 * Numbers  accumulates in f32 for f16, bf16, in order of the examples
 * Source   TensorFlow's gradient of tf.gather, made dense */
#ifdef SX_ATTRS
/* gather_grad: rows of the table whose gradient it makes */
typedef struct sx_gather_grad_attrs {
    int64_t rows;
} sx_gather_grad_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def gather_grad_attrs[] = {SX_ATTR(sx_gather_grad_attrs, rows, SX_ATTR_INT)};

static sx_status gather_grad_infer(sx_infer_context *c)
{
    const sx_gather_grad_attrs *attrs = c->attrs;
    const sx_type *indices = &c->inputs[0], *dy = &c->inputs[1];
    SX_TRY(sx_require_index("indices", indices));
    SX_TRY(sx_require_float("dy", dy));
    sx_type head = *dy, table = {.dtype = dy->dtype, .rank = 1, .dims = {attrs->rows}};
    head.rank = SX_MIN(dy->rank, indices->rank);
    if (attrs->rows < 0 || !sx_same_dims(&head, indices) ||
        dy->rank - indices->rank >= SX_MAX_RANK) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "dy is %s for indices %s and %lld rows; expected its first dimensions to "
                        "be those of the indices",
                        SX_TEXT(dy), SX_TEXT(indices), (long long)attrs->rows);
    }
    for (int i = indices->rank; i < dy->rank; i++) {
        table.dims[table.rank++] = dy->dims[i];
    }
    if (sx_type_has_batch(&table)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "dy %s has the batch in a dimension that the indices lack", SX_TEXT(dy));
    }
    c->outputs[0] = table;
    return SX_OK;
}

static void gather_grad_grad(sx_grad *g)
{
    if (g->needed[1]) {
        g->dx[1] = sx_build_op(g->b, gather, NULL, g->dy[0], g->x[0]);
    }
}

static sx_status gather_grad_host(const sx_kernel_call *c)
{
    const sx_type *table = &c->out[0].type;
    double *to = c->out[0].f;
    int64_t width = sx_dims_product(table, 1, table->rank);
    int64_t n = sx_type_elems(&c->in[1].type);
    sx_host_fill(c, 0, 0);
    for (int64_t i = 0; i < n; i++) {
        int64_t row = c->in[0].i[i / width];
        if (row >= 0 && row < table->dims[0]) {
            to[row * width + i % width] += c->in[1].f[i];
        }
    }
    return SX_OK;
}

#define ROWS(rows_) (&(const sx_gather_grad_attrs){.rows = (rows_)})
static const sx_op_sample gather_grad_samples[] = {
    {.name = "embedding",
     .inputs = {SX_SAMPLE_I32(6, SX_BATCH, 4), SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 4, 3)},
     .n_inputs = 2,
     .attrs = ROWS(6)},
    {.name = "some_outside",
     .inputs = {SX_SAMPLE_I32(9, SX_BATCH), SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH)},
     .n_inputs = 2,
     .attrs = ROWS(4)},
    {.name = "batch_inside",
     .inputs = {SX_SAMPLE_I32(6, 2, -2), SX_SAMPLE_F32(SX_FILL_NORMAL, 2, -2, 3)},
     .n_inputs = 2,
     .attrs = ROWS(6)},
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
