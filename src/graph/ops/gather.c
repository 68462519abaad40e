/* gather: rows of a table by index:  y[i..., j...] = table[index[i...], j...]
 *
 *   dtable = gather_grad(indices, dy)
 *
 *   table    [V, ...], any type, without the batch
 *   indices  any shape, int32 or int64; one outside [0, V) gives zeros
 *   returns  indices' shape and then the table's without its first dimension
 *
 * Errors   INVALID_ARGUMENT  dtypes, a scalar table, the batch in the table, a rank above 8
 *          OUT_OF_RANGE      an index outside a table of strings
 * Numbers  exact
 * Source   TensorFlow tf.gather along axis 0 (which refuses indices outside on the CPU, and gives
 * zeros on the GPU) */
#ifdef SX_PUBLIC
/* Rows of table [V, ...] by index. */
sx_value sx_gather(sx_builder *b, sx_value table, sx_value indices);
#endif

#include "graph/ops/common.h"

static sx_status gather_infer(sx_infer_context *c)
{
    const sx_type *table = &c->inputs[0], *indices = &c->inputs[1];
    SX_TRY(sx_require_index("indices", indices));
    if (table->rank < 1 || !sx_type_is_static(table) ||
        indices->rank + table->rank - 1 > SX_MAX_RANK) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "table is %s and indices are %s; expected a table [V,...] without the "
                        "batch, and a result of at most %d dimensions",
                        SX_TEXT(table), SX_TEXT(indices), SX_MAX_RANK);
    }
    sx_type y = *indices;
    y.dtype = table->dtype;
    for (int i = 1; i < table->rank; i++) {
        y.dims[y.rank++] = table->dims[i];
    }
    c->outputs[0] = y;
    return SX_OK;
}

static void gather_gradient(sx_grad *g)
{
    if (g->needed[0]) {
        sx_gather_grad_attrs attrs = {.rows = sx_type_of_value(g->b, g->x[0]).dims[0]};
        g->dx[0] = sx_build_op(g->b, gather_grad, &attrs, g->x[1], g->dy[0]);
    }
}

static sx_status gather_host(const sx_kernel_call *c)
{
    const sx_type *table = &c->in[0].type;
    int64_t width = sx_dims_product(table, 1, table->rank), n = sx_type_elems(&c->in[1].type);
    sx_host_fill(c, 0, 0);
    for (int64_t i = 0; i < n; i++) {
        int64_t row = c->in[1].i[i];
        if (row >= 0 && row < table->dims[0]) {
            sx_host_move(c, i * width, 0, row * width, width);
        } else if (table->dtype == SX_STRING) {
            return sx_error(SX_OUT_OF_RANGE, "index %lld is out of range for %lld strings",
                            (long long)row, (long long)table->dims[0]);
        }
    }
    return SX_OK;
}

static void gather_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_value axis = sx_tf_const_i32(w, "axis", 0);
    op->out[0] = sx_tf_add(w, "GatherV2", NULL, sx_tf_in(op->in[0], op->in[1], axis),
                           sx_tf_attrs(sx_tf_attr_type("Tparams", (int)op->in_types[0].dtype),
                                       sx_tf_attr_type("Tindices", (int)op->in_types[1].dtype),
                                       sx_tf_attr_type("Taxis", SX_I32)));
}

static sx_status gather_from_tf(const sx_tf_node *n, void *out)
{
    const sx_tensor *axis;
    (void)out;
    SX_TRY(sx_tf_read_value(n, 2, &axis));
    if (sx_type_elems(&axis->type) != 1 || sx_tf_read_int(n, "batch_dims", 0) != 0 ||
        sx_host_load_element(axis->type.dtype, axis->data) != 0) {
        return sx_error(SX_UNIMPLEMENTED, "axis or batch_dims is not 0");
    }
    return SX_OK;
}

static const sx_op_sample gather_samples[] = {
    {.name = "embedding",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 6, 3), SX_SAMPLE_I32(6, SX_BATCH, 4)},
     .n_inputs = 2},
    {.name = "vector",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 9), SX_SAMPLE_I32(9, SX_BATCH)},
     .n_inputs = 2},
    {.name = "one_row",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 2, 3), SX_SAMPLE_I32(4, 1)},
     .n_inputs = 2},
    {.name = "batch_inside",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 6, 3), SX_SAMPLE_I32(6, 2, -2)},
     .n_inputs = 2},
    {.name = "empty_table",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 0, 3), SX_SAMPLE_I32(6, SX_BATCH)},
     .n_inputs = 2},
};

sx_value sx_gather_at(sx_builder *b, sx_value table, sx_value indices, const char *file, int line)
{
    return sx_build_at(b, &sx_op_gather, NULL, (const sx_value[]){table, indices}, 2, file, line);
}

/* Of the table only the rows that are taken. */
static double gather_bytes(const sx_type *in, const sx_type *out)
{
    return (double)sx_type_bytes(&in[1]) + 2 * (double)sx_type_bytes(&out[0]);
}

const sx_op_def sx_op_gather = {
    SX_OP_NAMED(gather),
    .n_in = 2,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x1,
    .moved = 0x1,
    .infer = gather_infer,
    .grad = gather_gradient,
    .host = gather_host,
    .bytes = gather_bytes,
    .to_tf = gather_to_tf,
    SX_FROM_TF({.op = "GatherV2", .operands = {{2, ""}}, .attrs = gather_from_tf}),
    SX_OP_SAMPLES(gather_samples),
};
