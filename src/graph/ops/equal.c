/* equal: z = x == y. No gradient.
 *
 *   x, y     one dtype, any number or string; the shapes broadcast as in NumPy: from the last
 *            dimension on, dimensions are equal or 1; the batch pairs only with the batch or 1
 *   returns  the broadcast shape, bool
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or are not supported, shapes do not broadcast
 * Numbers  exact; a comparison with NaN is false
 * Source   TensorFlow tf.equal */
#include <string.h>

#include "graph/elementwise.h"
#include "graph/ops/common.h"

static const sx_op_sample equal_samples[] = {
    SX_SAMPLES_ZIP(SX_FILL_DISTINCT, SX_FILL_DISTINCT),
    {.name = "labels",
     .inputs = {SX_SAMPLE_I32(3, SX_BATCH), SX_SAMPLE_I32(3, SX_BATCH)},
     .n_inputs = 2},
};

static sx_status equal_infer(sx_infer_context *c)
{
    const sx_type *x = &c->inputs[0], *y = &c->inputs[1];
    if (x->dtype != SX_STRING || y->dtype != SX_STRING) {
        return sx_infer_compare(c);
    }
    SX_TRY(sx_infer_broadcast(x, y, &c->outputs[0]));
    c->outputs[0].dtype = SX_BOOL;
    return SX_OK;
}

static sx_status equal_host(const sx_kernel_call *c)
{
    const sx_host_tensor *x = &c->in[0], *y = &c->in[1], *z = &c->out[0];
    if (x->type.dtype != SX_STRING) {
        return sx_row_host_equal(c);
    }
    for (int64_t k = 0, n = sx_type_elems(&z->type); k < n; k++) {
        const sx_bytes *a = &x->s[sx_broadcast_offset(&z->type, &x->type, k)],
                       *b = &y->s[sx_broadcast_offset(&z->type, &y->type, k)];
        z->b[k] = a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
    }
    return SX_OK;
}

SX_PUBLIC_ZIP(equal)

const sx_op_def sx_op_equal = {
    SX_OP_NAMED(equal),
    .n_in = 2,
    .n_out = 1,
    .bf16 = 0x3,
    .flags = SX_OP_ELEMENTWISE | SX_OP_NO_GRAD,
    .batch_rule = SX_RULE_EXAMPLES,
    .infer = equal_infer,
    .host = equal_host,
    .to_tf = sx_row_tf_equal,
    .from_tf = sx_row_forms_equal,
    SX_OP_SAMPLES(equal_samples),
};
