/* all_gather: puts the replicas' parts of a value together along an axis, on each replica.
 *
 *   x          any type but string; the replicas' differ along `axis` at most
 *   axis       of x
 *   replicas   how many there are
 *   size       the parts' sizes along the axis, together
 *   returns    x's type, `size` along the axis
 *
 * Inserted by sx_pass_spmd(). On one replica x itself.
 *
 * Errors   INVALID_ARGUMENT   a string, no such axis, a size smaller than x's
 * Numbers  exact
 * Source   StableHLO all_gather */
#ifdef SX_ATTRS
/* all_gather, all_slice */
typedef struct sx_all_gather_attrs {
    int64_t axis, replicas;
    int64_t size; /* of the result along the axis */
} sx_all_gather_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def all_gather_attrs[] = {
    SX_ATTR(sx_all_gather_attrs, axis, SX_ATTR_INT),
    SX_ATTR(sx_all_gather_attrs, replicas, SX_ATTR_INT),
    SX_ATTR(sx_all_gather_attrs, size, SX_ATTR_INT),
};

static sx_status all_gather_infer(sx_infer_context *c)
{
    const sx_all_gather_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0];
    if (sx_dtype_bytes(x->dtype) == 0 || attrs->axis < 0 || attrs->axis >= x->rank ||
        attrs->replicas < 1 || attrs->size < x->dims[attrs->axis]) {
        return sx_error(
            SX_INVALID_ARGUMENT, "cannot put %s of %lld replicas together to %lld along axis %lld",
            SX_TEXT(x), (long long)attrs->replicas, (long long)attrs->size, (long long)attrs->axis);
    }
    c->outputs[0] = *x;
    c->outputs[0].dims[attrs->axis] = attrs->size;
    return SX_OK;
}

static sx_status all_gather_host(const sx_kernel_call *c)
{
    const sx_all_gather_attrs *attrs = c->attrs;
    SX_TRY(sx_require_one_replica(attrs->replicas));
    return sx_host_copy(c);
}

static const sx_op_sample all_gather_samples[] = {
    {.name = "alone",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 3)},
     .n_inputs = 1,
     .attrs = &(const sx_all_gather_attrs){.axis = 1, .replicas = 1, .size = 3}},
};

const sx_op_def sx_op_all_gather = {
    SX_OP_NAMED(all_gather),
    .n_in = 1,
    .n_out = 1,
    .bf16 = 0x1,
    .flags = SX_OP_NO_GRAD | SX_OP_NO_TF | SX_OP_BY_REPLICA,
    .moved = 0x1,
    SX_OP_ATTRS(sx_all_gather_attrs, all_gather_attrs),
    .infer = all_gather_infer,
    .host = all_gather_host,
    SX_OP_SAMPLES(all_gather_samples),
};
