/* reverse_sequence: the first elements of each example in reverse order:
 *
 *   y[.., i, .., k, ..] = x[.., i, .., k < lengths[i] ? lengths[i] - 1 - k : k, ..]
 *
 *   dx = reverse_sequence(dy, lengths)
 *
 *   x           any type but string, [.., B, .., S, ..]: B along batch_axis, S along seq_axis, in
 *               either order; S is not the batch N
 *   lengths     int32 or int64 [B]; below 0 it counts as 0, above S as S
 *   seq_axis    normalized
 *   batch_axis  normalized; another one
 *   returns     x's dtype and shape
 *
 * Errors   INVALID_ARGUMENT  the axes, lengths; N along seq_axis
 * Numbers  exact
 * Source   TensorFlow tf.reverse_sequence, which refuses lengths outside [0, S]: an imported model
 *          checks them */
#ifdef SX_PUBLIC
/* The first lengths[i] elements along seq_axis in reverse order, i being the place along
 * batch_axis: sx_reverse_sequence(b, x, lengths, 1, 0) of x [N,S,C] and lengths [N]. */
sx_value sx_reverse_sequence(sx_builder *b, sx_value x, sx_value lengths, int seq_axis,
                             int batch_axis);
#endif
#ifdef SX_ATTRS
typedef struct sx_reverse_sequence_attrs {
    int64_t seq_axis, batch_axis;
} sx_reverse_sequence_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def reverse_sequence_attrs[] = {
    SX_ATTR(sx_reverse_sequence_attrs, seq_axis, SX_ATTR_INT),
    SX_ATTR(sx_reverse_sequence_attrs, batch_axis, SX_ATTR_INT),
};

static sx_status reverse_sequence_infer(sx_infer_context *c)
{
    const sx_reverse_sequence_attrs *attrs = c->attrs;
    const sx_type *x = &c->inputs[0], *lengths = &c->inputs[1];
    const int64_t seq = attrs->seq_axis, batch = attrs->batch_axis;
    if (x->dtype == SX_STRING) {
        return sx_error(SX_INVALID_ARGUMENT, "x holds strings, expected numbers or bool");
    }
    if (seq < 0 || seq >= x->rank || batch < 0 || batch >= x->rank || seq == batch) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "seq_axis is %lld and batch_axis %lld, expected two different axes of x %s",
                        (long long)seq, (long long)batch, SX_TEXT(x));
    }
    if (sx_dim_is_batch(x->dims[seq])) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "seq_axis %lld of x %s is the batch, whose examples stay in their order",
                        (long long)seq, SX_TEXT(x));
    }
    SX_TRY(sx_require_index("lengths", lengths));
    SX_TRY(sx_require_vector("lengths", lengths, lengths->dtype, x->dims[batch]));
    c->outputs[0] = *x;
    return SX_OK;
}

static void reverse_sequence_grad(sx_grad *g)
{
    if (g->needed[0]) {
        g->dx[0] = sx_build_op(g->b, reverse_sequence, g->attrs, g->dy[0], g->x[1]);
    }
}

static sx_status reverse_sequence_host(const sx_kernel_call *c)
{
    const sx_reverse_sequence_attrs *attrs = c->attrs;
    const sx_type *x = &c->in[0].type;
    const int64_t size = x->dims[attrs->seq_axis], n = sx_type_elems(x);
    for (int64_t i = 0; i < n; i++) {
        int64_t at[SX_MAX_RANK];
        sx_unravel(x, i, at);
        const int64_t length = SX_MIN(c->in[1].i[at[attrs->batch_axis]], size);
        int64_t *k = &at[attrs->seq_axis];
        *k = *k < length ? length - 1 - *k : *k;
        sx_host_move(c, i, 0, sx_ravel(x, at), 1);
    }
    return SX_OK;
}

static void reverse_sequence_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_reverse_sequence_attrs *attrs = op->attrs;
    const sx_tf_attr list[] = {sx_tf_attr_type("T", (int)op->in_types[0].dtype),
                               sx_tf_attr_type("Tlen", (int)op->in_types[1].dtype),
                               sx_tf_attr_int("seq_dim", attrs->seq_axis),
                               sx_tf_attr_bool("_sextant_clamps", true), /* when it is read back */
                               sx_tf_attr_int("batch_dim", attrs->batch_axis)};
    op->out[0] = sx_tf_add(w, "ReverseSequence", NULL, sx_tf_in(op->in[0], op->in[1]),
                           (sx_tf_attr_list){list, attrs->batch_axis != 0 ? 5 : 4});
}

static sx_status reverse_sequence_from_tf(const sx_tf_node *n, void *out)
{
    *(sx_reverse_sequence_attrs *)out =
        (sx_reverse_sequence_attrs){.seq_axis = sx_tf_read_int(n, "seq_dim", -1),
                                    .batch_axis = sx_tf_read_int(n, "batch_dim", 0)};
    return SX_OK;
}

#define ALONG(seq, batch) \
    (&(const sx_reverse_sequence_attrs){.seq_axis = (seq), .batch_axis = (batch)})
static const double some_lengths[] = {3, 0, 5, 1, 5, 4, 2};
static const sx_op_sample reverse_sequence_samples[] = {
    {.name = "steps",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 7, 3), SX_SAMPLE_I32(8, SX_BATCH)},
     .n_inputs = 2,
     .attrs = ALONG(1, 0)},
    {.name = "time_major",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 7, SX_BATCH, 3), SX_SAMPLE_I32(8, SX_BATCH)},
     .n_inputs = 2,
     .attrs = ALONG(0, 1)},
    {.name = "scalars",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 2, 6), SX_SAMPLE_I32(7, SX_BATCH)},
     .n_inputs = 2,
     .attrs = ALONG(2, 0)},
    {.name = "beside_the_batch",
     .inputs = {SX_SAMPLE_I32(99, 2, 7, -2, 5), SX_SAMPLE_LIST(SX_I64, some_lengths, 7)},
     .n_inputs = 2,
     .attrs = ALONG(3, 1)},
    {.name = "no_steps",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 0, 3), SX_SAMPLE_I32(1, SX_BATCH)},
     .n_inputs = 2,
     .attrs = ALONG(1, 0)},
};

sx_value sx_reverse_sequence_at(sx_builder *b, sx_value x, sx_value lengths, int seq_axis,
                                int batch_axis, const char *file, int line)
{
    const int rank = sx_type_of_value(b, x).rank;
    const sx_reverse_sequence_attrs attrs = {.seq_axis = sx_normalize_axis(seq_axis, rank),
                                             .batch_axis = sx_normalize_axis(batch_axis, rank)};
    return sx_build_at(b, &sx_op_reverse_sequence, &attrs, (const sx_value[]){x, lengths}, 2, file,
                       line);
}

const sx_op_def sx_op_reverse_sequence = {
    SX_OP_NAMED(reverse_sequence),
    .n_in = 2,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x1,
    .flags = SX_OP_EXACT,
    SX_OP_ATTRS(sx_reverse_sequence_attrs, reverse_sequence_attrs),
    .moved = 0x1,
    .infer = reverse_sequence_infer,
    .grad = reverse_sequence_grad,
    .host = reverse_sequence_host,
    .to_tf = reverse_sequence_to_tf,
    SX_FROM_TF({.op = "ReverseSequence", .attrs = reverse_sequence_from_tf}),
    SX_OP_SAMPLES(reverse_sequence_samples),
};
