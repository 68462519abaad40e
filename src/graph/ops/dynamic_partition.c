/* dynamic_partition: the items of a value, sent to one of several outputs each.
 *
 *   data            any type [partitions' shape..., rest...]
 *   partitions      int32, each in [0, num_partitions): where the item goes
 *   num_partitions  how many outputs, 1 to 64
 *   returns         data's dtype [k_i, rest...] for each i, in the order of the items
 *
 * Errors   INVALID_ARGUMENT  shapes, dtypes; (running) a partition that there is not
 * Source   TensorFlow DynamicPartition */
#ifdef SX_ATTRS
typedef struct sx_dynamic_partition_attrs {
    int64_t num_partitions;
} sx_dynamic_partition_attrs;
#endif

#include "graph/ops/host_ops.h"

static const sx_attr_def dynamic_partition_attrs[] = {
    SX_ATTR_TF(sx_dynamic_partition_attrs, num_partitions, SX_ATTR_INT, .tf_number = 0)};

static sx_status dynamic_partition_infer(sx_infer_context *c)
{
    const sx_dynamic_partition_attrs *attrs = c->attrs;
    const sx_type *data = &c->inputs[0], *to = &c->inputs[1];
    SX_TRY(sx_require_dtype("partitions", to, SX_I32));
    if (attrs->num_partitions < 1 || attrs->num_partitions > SX_MAX_OUTPUTS) {
        return sx_error(SX_INVALID_ARGUMENT, "num_partitions is %lld, expected 1 to %d",
                        (long long)attrs->num_partitions, SX_MAX_OUTPUTS);
    }
    c->n_outputs = (int)attrs->num_partitions;
    for (int k = 0; k < c->n_outputs; k++) {
        SX_TRY(sx_infer_items("partitions", to, "data", data, SX_UNKNOWN_DIM, &c->outputs[k]));
    }
    return SX_OK;
}

static void dynamic_partition_gradient(sx_grad *g)
{
    sx_builder *b = g->b;
    const sx_type to = sx_type_of_value(b, g->x[1]), x = sx_type_of_value(b, g->x[0]);
    sx_type types[SX_MAX_OUTPUTS], rows = x;
    for (int k = 0; k < g->n_outputs; k++) {
        types[k] = sx_type_of(SX_I64, sx_type_of_value(b, g->y[k]).dims[0]);
    }
    /* the items as rows of one axis */
    rows.rank = x.rank - to.rank + 1;
    rows.dims[0] = sx_type_elems(&to);
    for (int d = 1; d < rows.rank; d++) {
        rows.dims[d] = x.dims[to.rank + d - 1];
    }
    const sx_value numbers = sx_reshape_dims(b, sx_numbers_to(b, rows.dims[0]), to.rank, to.dims);
    const sx_value places =
        sx_build_typed(b, &sx_op_dynamic_partition, g->attrs, (const sx_value[]){numbers, g->x[1]},
                       2, types, g->n_outputs);
    const sx_value like = sx_reshape_to(b, g->x[0], &rows);
    sx_value sum = SX_NO_VALUE;
    for (int k = 0; k < g->n_outputs; k++) {
        if (sx_value_is(g->dy[k])) {
            sum = sx_add_maybe(b, sum, sx_add_rows(b, like, sx_output_of(places, k), g->dy[k]));
        }
    }
    g->dx[0] = sx_reshape_to(b, sum, &x);
}

static sx_status dynamic_partition_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_dynamic_partition_attrs *attrs = c->attrs;
    const sx_type *data = &c->in[0].type, *to = &c->in[1].type;
    for (int k = 0; k < (int)attrs->num_partitions; k++) {
        SX_TRY(sx_infer_items("partitions", to, "data", data, 0, &out_types[k]));
    }
    for (int64_t i = 0, n = sx_type_elems(to); i < n; i++) {
        const int64_t k = c->in[1].i[i];
        if (k < 0 || k >= attrs->num_partitions) {
            return sx_error(SX_INVALID_ARGUMENT, "item %lld is of partition %lld of %lld",
                            (long long)i, (long long)k, (long long)attrs->num_partitions);
        }
        out_types[k].dims[0]++;
    }
    return SX_OK;
}

static sx_status dynamic_partition_host(const sx_kernel_call *c)
{
    const sx_type *data = &c->in[0].type, *to = &c->in[1].type;
    const size_t bytes =
        (size_t)sx_dims_product(data, to->rank, data->rank) * sx_carrier_bytes(data->dtype);
    int64_t filled[SX_MAX_OUTPUTS] = {0};
    for (int64_t i = 0, n = sx_type_elems(to); i < n; i++) {
        const int64_t k = c->in[1].i[i];
        if (bytes > 0) {
            memcpy((char *)c->out[k].data + (size_t)filled[k]++ * bytes,
                   (const char *)c->in[0].data + (size_t)i * bytes, bytes);
        }
    }
    return SX_OK;
}

static void dynamic_partition_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_dynamic_partition, "DynamicPartition",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const double to[] = {1, 0, 2, 1, 1};
static const sx_op_sample dynamic_partition_samples[] = {
    {.name = "rows",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 5, 2), SX_SAMPLE_LIST(SX_I32, to, 5)},
     .n_inputs = 2,
     .attrs = &(const sx_dynamic_partition_attrs){4}},
    {.name = "texts",
     .inputs = {SX_SAMPLE_TEXT(5), SX_SAMPLE_LIST(SX_I32, to, 5)},
     .n_inputs = 2,
     .attrs = &(const sx_dynamic_partition_attrs){3}},
};

const sx_op_def sx_op_dynamic_partition = {
    SX_OP_NAMED(dynamic_partition),
    .n_in = 2,
    .n_out = SX_VARIADIC,
    .flags = SX_OP_HOST,
    SX_OP_ATTRS(sx_dynamic_partition_attrs, dynamic_partition_attrs),
    .infer = dynamic_partition_infer,
    .grad = dynamic_partition_gradient,
    .host = dynamic_partition_host,
    .host_types = dynamic_partition_host_types,
    .to_tf = dynamic_partition_to_tf,
    SX_FROM_TF({.op = "DynamicPartition"}),
    SX_OP_SAMPLES(dynamic_partition_samples),
};
