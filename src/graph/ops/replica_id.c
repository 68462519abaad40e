/* replica_id: the number of the replica that computes it, from 0.
 *
 *   returns  uint32 scalar
 *
 * Inserted by sx_pass_spmd(). A host kernel is replica 0.
 *
 * Numbers  exact
 * Source   StableHLO replica_id */
#include "graph/ops/common.h"

static sx_status replica_id_infer(sx_infer_context *c)
{
    c->outputs[0] = sx_scalar_type(SX_U32);
    return SX_OK;
}

static sx_status replica_id_host(const sx_kernel_call *c)
{
    c->out[0].i[0] = 0;
    return SX_OK;
}

static const sx_op_sample replica_id_samples[] = {{.name = "alone"}};

const sx_op_def sx_op_replica_id = {
    SX_OP_NAMED(replica_id),
    .n_in = 0,
    .n_out = 1,
    .flags = SX_OP_NO_GRAD | SX_OP_NO_TF | SX_OP_BY_REPLICA,
    .infer = replica_id_infer,
    .host = replica_id_host,
    SX_OP_SAMPLES(replica_id_samples),
};
