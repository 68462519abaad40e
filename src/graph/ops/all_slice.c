/* all_slice: this replica's part of a value that all replicas have; the opposite of all_gather.
 *
 *   x          any type but string, equal on all replicas
 *   axis       of x, cut into consecutive parts in the order of the replicas
 *   replicas   how many there are; 1 means that nothing is exchanged
 *   size       of this replica's part along the axis; the first replicas may have one more than the
 *              others
 *   returns    x's type, `size` along the axis
 *
 * Inserted by sx_pass_spmd(). On one replica x itself.
 *
 * Errors   INVALID_ARGUMENT   a string, no such axis, a size that is no part
 * Numbers  exact
 * Source   MLIR's mesh.all_slice; StableHLO dynamic_slice at replica_id times size */
#include "graph/ops/common.h"

static const sx_attr_def all_slice_attrs[] = {
    SX_ATTR(sx_all_gather_attrs, axis, SX_ATTR_INT),
    SX_ATTR(sx_all_gather_attrs, replicas, SX_ATTR_INT),
    SX_ATTR(sx_all_gather_attrs, size, SX_ATTR_INT),
};

static sx_status all_slice_infer(sx_infer_context *c)
{
    const sx_all_gather_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0];
    if (sx_dtype_bytes(x->dtype) == 0 || attrs->axis < 0 || attrs->axis >= x->rank ||
        attrs->replicas < 1 || attrs->size < 0 || attrs->size > x->dims[attrs->axis]) {
        return sx_error(
            SX_INVALID_ARGUMENT, "%s has no part of %lld along axis %lld for each of %lld replicas",
            SX_TEXT(x), (long long)attrs->size, (long long)attrs->axis, (long long)attrs->replicas);
    }
    c->outputs[0] = *x;
    c->outputs[0].dims[attrs->axis] = attrs->size;
    return SX_OK;
}

static sx_status all_slice_host(const sx_kernel_call *c)
{
    const sx_all_gather_attrs *attrs = c->attrs;
    SX_TRY(sx_require_one_replica(attrs->replicas));
    return sx_host_copy(c);
}

static const sx_op_sample all_slice_samples[] = {
    {.name = "alone",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 3)},
     .n_inputs = 1,
     .attrs = &(const sx_all_gather_attrs){.axis = 1, .replicas = 1, .size = 3}},
};

const sx_op_def sx_op_all_slice = {
    SX_OP_NAMED(all_slice),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_NO_GRAD | SX_OP_NO_TF | SX_OP_BY_REPLICA,
    .moved = 0x1,
    SX_OP_ATTRS(sx_all_gather_attrs, all_slice_attrs),
    .infer = all_slice_infer,
    .host = all_slice_host,
    SX_OP_SAMPLES(all_slice_samples),
};
