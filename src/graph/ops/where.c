/* where: the coordinates of the elements that are not zero, in order.
 *
 *   x        numbers or bool, rank 1 or more
 *   returns  int64 [k, rank of x]; k depends on the data
 *
 * Errors   INVALID_ARGUMENT  strings; (running) a scalar
 * Numbers  exact
 * Source   TensorFlow Where */
#include "graph/ops/common.h"

static sx_status where_infer(sx_infer_context *c)
{
    const sx_type *x = &c->inputs[0];
    if (sx_carrier_of(x->dtype) == SX_CARRIER_NONE || x->dtype == SX_STRING) {
        return sx_error(SX_INVALID_ARGUMENT, "x is %s, expected numbers or bool", SX_TEXT(x));
    }
    c->outputs[0] = sx_type_make(
        SX_I64, 2,
        (const int64_t[]){SX_UNKNOWN_DIM, x->rank >= 0 ? (int64_t)x->rank : SX_UNKNOWN_DIM});
    return SX_OK;
}

static sx_status where_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_type *x = &c->in[0].type;
    const int64_t n = sx_type_elems(x);
    int64_t count = 0;
    if (x->rank == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "x is a scalar, expected rank 1 or more");
    }
#define COUNT(type, field)               \
    for (int64_t k = 0; k < n; k++) {    \
        count += c->in[0].field[k] != 0; \
    }
    if (sx_carrier_of(x->dtype) == SX_CARRIER_B) {
        COUNT(uint8_t, b)
    } else {
        SX_HOST_BY_NUMBER(x->dtype, COUNT)
    }
    out_types[0] = sx_type_make(SX_I64, 2, (const int64_t[]){count, c->in[0].type.rank});
    return SX_OK;
}

static sx_status where_host(const sx_kernel_call *c)
{
    const sx_type *x = &c->in[0].type;
    const int64_t n = sx_type_elems(x);
    int64_t *row = c->out[0].i, at[SX_MAX_RANK] = {0};
#define LIST(type, field)                                                          \
    for (int64_t k = 0; k < n; k++) {                                              \
        if (c->in[0].field[k] != 0) {                                              \
            memcpy(row, at, (size_t)x->rank * sizeof(*at));                        \
            row += x->rank;                                                        \
        }                                                                          \
        for (int d = x->rank - 1; d >= 0 && ++at[d] == x->dims[d] && d > 0; d--) { \
            at[d] = 0;                                                             \
        }                                                                          \
    }
    if (sx_carrier_of(x->dtype) == SX_CARRIER_B) {
        LIST(uint8_t, b)
    } else {
        SX_HOST_BY_NUMBER(x->dtype, LIST)
    }
    return SX_OK;
}

static void where_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_plain(w, op, "Where");
}

const sx_op_def sx_op_where = {
    SX_OP_NAMED(where),   .n_in = 1,
    .n_out = 1,           .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    .infer = where_infer, .host_types = where_host_types,
    .host = where_host,   .to_tf = where_to_tf,
};
