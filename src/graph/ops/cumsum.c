/* cumsum: y[k] = the sum of x[0] … x[k] along `axis`;  dx = the same of dy from the other end
 *
 *   x          any shape, any number
 *   axis       normalized, not the batch
 *   exclusive  x[k] itself is left out: y[0] is 0
 *   reverse    from the end: the sum of x[k] and what follows it
 *   returns    x's dtype and shape
 *
 * Errors   INVALID_ARGUMENT  x is not numeric, the axis is out of range or the batch
 * Numbers  integers wrap; the order in which devices add is theirs
 * Source   TensorFlow tf.cumsum */
#ifdef SX_PUBLIC
typedef struct sx_cumulative_args {
    size_t struct_size;
    int axis;       /* -1 = the last */
    bool exclusive; /* without the element itself */
    bool reverse;   /* from the end */
} sx_cumulative_args;

/* The sum of the elements up to each one along an axis. */
sx_value sx_cumsum(sx_builder *b, sx_value x, const sx_cumulative_args *args);
#endif
#ifdef SX_ATTRS
/* cumsum, cumprod */
typedef struct sx_cumulative_attrs {
    int64_t axis;
    bool exclusive, reverse;
} sx_cumulative_attrs;
#endif

#include "graph/ops/cumulative.h"

static void cumsum_grad(sx_grad *g)
{
    sx_cumulative_attrs back = *(const sx_cumulative_attrs *)g->attrs;
    back.reverse = !back.reverse;
    g->dx[0] = sx_build_op(g->b, cumsum, &back, g->dy[0]);
}

static sx_status cumsum_host(const sx_kernel_call *c)
{
    const sx_cumulative_attrs *attrs = c->attrs;
    const sx_host_tensor *x = &c->in[0], *y = &c->out[0];
    const sx_cumulative_lines l = sx_cumulative_lines_of(&x->type, attrs->axis);
#define CUMULATE(type, field)                                                                 \
    for (int64_t i = 0; i < l.lines; i++) {                                                   \
        type total = 0;                                                                       \
        for (int64_t k = 0; k < l.count; k++) {                                               \
            const int64_t at = sx_cumulative_at(&l, i, attrs->reverse ? l.count - 1 - k : k); \
            const type next = total + x->field[at];                                           \
            y->field[at] = attrs->exclusive ? total : next;                                   \
            total = next;                                                                     \
        }                                                                                     \
    }
    if (sx_carrier_of(x->type.dtype) == SX_CARRIER_F) {
        CUMULATE(double, f)
    } else { /* modulo 2^64: the same bits for signed numbers */
        CUMULATE(uint64_t, u)
    }
    return SX_OK;
}

static void cumsum_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_cumulative(w, op, "Cumsum");
}

static const sx_op_sample cumsum_samples[] = {
    SX_SAMPLES_CUMULATIVE(SX_FILL_NORMAL),
    {.name = "int32",
     .inputs = {SX_SAMPLE_I32(9, SX_BATCH, 9)},
     .n_inputs = 1,
     .attrs = SX_CUMULATIVE(1, .reverse = false)},
};

sx_value sx_cumsum_at(sx_builder *b, sx_value x, const sx_cumulative_args *args, const char *file,
                      int line)
{
    return sx_build_cumulative(b, &sx_op_cumsum, x, args, file, line);
}

const sx_op_def sx_op_cumsum = {
    SX_OP_NAMED(cumsum),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .bf16 = 0x1,
    .flags = SX_OP_SUM,
    SX_OP_ATTRS(sx_cumulative_attrs, sx_cumulative_rows),
    .infer = sx_infer_cumulative,
    .grad = cumsum_grad,
    .host = cumsum_host,
    .to_tf = cumsum_to_tf,
    SX_FROM_TF({.op = "Cumsum", .operands = {{1, "axis"}}, .attrs = sx_tf_read_cumulative}),
    SX_OP_SAMPLES(cumsum_samples),
};
