/* broadcast_gradient_args: along which axes of a broadcast result a gradient is summed up to have
 * the shape of each operand.
 *
 *   s0, s1   int32 or int64 vectors, both of one dtype: the operands' shapes
 *   returns  r0, r1: vectors of that dtype, the axes where an operand has size 1 or no axis,
 *            ascending
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks; (running) shapes that are not broadcast to one
 * Source   TensorFlow BroadcastGradientArgs (core/util/bcast.h) */
#include "graph/ops/host_ops.h"

static sx_status broadcast_gradient_args_infer(sx_infer_context *c)
{
    SX_TRY(sx_require_integers("s0", &c->inputs[0], 1, "[rank]"));
    SX_TRY(sx_require_maybe("s1", &c->inputs[1], c->inputs[0].dtype, 1, "[rank]"));
    c->outputs[0] = c->outputs[1] = sx_type_of(c->inputs[0].dtype, SX_UNKNOWN_DIM);
    return SX_OK;
}

/* counts[2]: how many axes each operand has; they are written to out unless that is NULL. */
static sx_status find_axes(const sx_kernel_call *c, int64_t counts[2])
{
    const int64_t ranks[2] = {sx_type_elems(&c->in[0].type), sx_type_elems(&c->in[1].type)};
    const int64_t rank = SX_MAX(ranks[0], ranks[1]);
    bool equal = ranks[0] == ranks[1];
    for (int64_t d = 0; d < rank && equal; d++) {
        equal = c->in[0].i[d] == c->in[1].i[d];
    }
    counts[0] = counts[1] = 0;
    for (int64_t d = 0; d < rank && !equal; d++) {
        int64_t sizes[2];
        for (int i = 0; i < 2; i++) {
            const int64_t at = d - (rank - ranks[i]);
            sizes[i] = at >= 0 ? c->in[i].i[at] : 1;
        }
        if (sizes[0] != sizes[1] && sizes[0] != 1 && sizes[1] != 1) {
            return sx_error(SX_INVALID_ARGUMENT, "axis %lld has sizes %lld and %lld", (long long)d,
                            (long long)sizes[0], (long long)sizes[1]);
        }
        for (int i = 0; i < 2; i++) {
            if (sizes[i] != 1) {
                continue;
            }
            if (c->out != NULL) {
                c->out[i].i[counts[i]] = d;
            }
            counts[i]++;
        }
    }
    return SX_OK;
}

static sx_status broadcast_gradient_args_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    int64_t counts[2];
    SX_TRY(find_axes(c, counts));
    out_types[0] = sx_type_of(c->in[0].type.dtype, counts[0]);
    out_types[1] = sx_type_of(c->in[0].type.dtype, counts[1]);
    return SX_OK;
}

static sx_status broadcast_gradient_args_host(const sx_kernel_call *c)
{
    int64_t counts[2];
    return find_axes(c, counts);
}

static void broadcast_gradient_args_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_broadcast_gradient_args, "BroadcastGradientArgs",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[0].dtype)));
}

static const double wide[] = {2, 1, 3, 1}, narrow[] = {5, 1, 4};
static const sx_op_sample broadcast_gradient_args_samples[] = {
    {.name = "axes",
     .inputs = {SX_SAMPLE_LIST(SX_I32, wide, 4), SX_SAMPLE_LIST(SX_I32, narrow, 3)},
     .n_inputs = 2},
};

const sx_op_def sx_op_broadcast_gradient_args = {
    SX_OP_NAMED(broadcast_gradient_args),
    .n_in = 2,
    .n_out = 2,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    .infer = broadcast_gradient_args_infer,
    .host = broadcast_gradient_args_host,
    .host_types = broadcast_gradient_args_host_types,
    .to_tf = broadcast_gradient_args_to_tf,
    SX_FROM_TF({.op = "BroadcastGradientArgs"}),
    SX_OP_SAMPLES(broadcast_gradient_args_samples),
};
