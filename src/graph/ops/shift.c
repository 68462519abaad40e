/* shift: z = x << y, or with `right` x >> y, of which copies of the sign fill the places that it
 * leaves if x is signed. y is limited to 0 .. bits of x - 1. No gradient.
 *
 *   x, y     one dtype, any integer; the shapes broadcast as in NumPy: from the last
 *            dimension on, dimensions are equal or 1; the batch pairs only with the batch or 1
 *   returns  the broadcast shape, the dtype of x
 *
 * Errors   INVALID_ARGUMENT  dtypes differ or are not supported, shapes do not broadcast
 * Numbers  exact, modulo 2^bits
 * Source   TensorFlow tf.bitwise.left_shift, tf.bitwise.right_shift */
#ifdef SX_PUBLIC
/* x << y, and x >> y, of integers; y is limited to 0 .. bits - 1. */
sx_value sx_shift_left(sx_builder *b, sx_value x, sx_value y);
sx_value sx_shift_right(sx_builder *b, sx_value x, sx_value y);
#endif
#ifdef SX_ATTRS
typedef struct sx_shift_attrs {
    bool right;
} sx_shift_attrs;
#endif

#include "graph/ops/common.h"

static const sx_attr_def shift_attrs[] = {SX_ATTR(sx_shift_attrs, right, SX_ATTR_BOOL)};

static sx_status shift_host(const sx_kernel_call *c)
{
    const bool right = ((const sx_shift_attrs *)c->attrs)->right;
    const sx_host_tensor *x = &c->in[0], *y = &c->in[1], *z = &c->out[0];
    const int64_t most = 8 * (int64_t)sx_dtype_bytes(z->type.dtype) - 1;
    const bool wide = sx_carrier_of(z->type.dtype) == SX_CARRIER_U; /* uint64 */
    for (int64_t i = 0, n = sx_type_elems(&z->type); i < n; i++) {
        const int64_t from = sx_broadcast_offset(&z->type, &x->type, i);
        const int64_t at = sx_broadcast_offset(&z->type, &y->type, i);
        const bool negative = !wide && y->i[at] < 0;
        const uint64_t by = negative ? 0 : SX_MIN(y->u[at], (uint64_t)most);
        if (!right) {
            z->u[i] = x->u[from] << by;
        } else if (wide) {
            z->u[i] = x->u[from] >> by;
        } else {
            z->i[i] = x->i[from] >> by;
        }
    }
    return SX_OK;
}

static void shift_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, ((const sx_shift_attrs *)op->attrs)->right ? "RightShift" : "LeftShift");
}

static sx_status to_the_right(const sx_tf_node *n, void *out)
{
    (void)n;
    ((sx_shift_attrs *)out)->right = true;
    return SX_OK;
}

static const double ends[] = {-2147483648.0, -1, 5, 2147483647, 77, 0, 1};
static const double counts[] = {0, 3, 31, 32, -1, 1000, 8};
#define RIGHT (&(const sx_shift_attrs){.right = true})
static const sx_op_sample shift_samples[] = {
    {.name = "left",
     .inputs = {SX_SAMPLE_I32(1 << 30, SX_BATCH, 7), SX_SAMPLE_I32(40, SX_BATCH, 7)},
     .n_inputs = 2},
    {.name = "row",
     .inputs = {SX_SAMPLE_I32(1 << 30, SX_BATCH, 7), SX_SAMPLE_I32(40, 7)},
     .n_inputs = 2,
     .attrs = RIGHT},
    {.name = "ends_left",
     .inputs = {SX_SAMPLE_LIST(SX_I32, ends, 7, 1), SX_SAMPLE_LIST(SX_I32, counts, 7)},
     .n_inputs = 2},
    {.name = "ends_right",
     .inputs = {SX_SAMPLE_LIST(SX_I32, ends, 7, 1), SX_SAMPLE_LIST(SX_I32, counts, 7)},
     .n_inputs = 2,
     .attrs = RIGHT},
    {.name = "bytes",
     .inputs = {{.type = SX_TYPE_LITERAL_(SX_U8, 3, 5), .fill = SX_FILL_INDEX, .limit = 256},
                {.type = SX_TYPE_LITERAL_(SX_U8, 3, 5), .fill = SX_FILL_INDEX, .limit = 10}},
     .n_inputs = 2,
     .attrs = RIGHT},
};

sx_value sx_shift_left_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line)
{
    return sx_build_at(b, &sx_op_shift, NULL, (const sx_value[]){x, y}, 2, file, line);
}

sx_value sx_shift_right_at(sx_builder *b, sx_value x, sx_value y, const char *file, int line)
{
    return sx_build_at(b, &sx_op_shift, RIGHT, (const sx_value[]){x, y}, 2, file, line);
}

const sx_op_def sx_op_shift = {
    SX_OP_NAMED(shift),
    .n_in = 2,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_ELEMENTWISE | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_shift_attrs, shift_attrs),
    .infer = sx_infer_zip_integer,
    .host = shift_host,
    .to_tf = shift_to_tf,
    SX_FROM_TF({.op = "LeftShift"}, {.op = "RightShift", .attrs = to_the_right}),
    SX_OP_SAMPLES(shift_samples),
};
