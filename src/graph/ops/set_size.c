/* set_size: how many different values each group of a sparse tensor has.
 *
 *   indices, values, shape   a sparse tensor of integers or strings, rank 2 or more
 *   validate_indices         they must be in order
 *   returns   int32 [the dimensions but the last]
 *
 * Errors   INVALID_ARGUMENT    dtypes, ranks; (running) indices that are not in order
 *          RESOURCE_EXHAUSTED  (running) too many groups
 * Source   TensorFlow SetSize */
#include "graph/ops/sets.h"

typedef struct sx_set_size_attrs {
    bool validate_indices;
} sx_set_size_attrs;

static const sx_attr_def set_size_attrs[] = {
    SX_ATTR_TF(sx_set_size_attrs, validate_indices, SX_ATTR_BOOL, .tf_number = 1)};

static sx_status set_size_infer(sx_infer_context *c)
{
    int64_t rank;
    SX_TRY(sx_infer_sets(c, 0, true, SX_DTYPE_NONE, &rank));
    c->outputs[0] = sx_unknown_shape(SX_I32);
    if (rank >= 0) {
        c->outputs[0].rank = (int)rank - 1;
        for (int d = 0; d + 1 < rank; d++) {
            c->outputs[0].dims[d] = SX_UNKNOWN_DIM;
        }
    }
    return SX_OK;
}

static sx_status set_size_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_set_size_attrs *a = c->attrs;
    sx_sets sets;
    SX_TRY(sx_read_sets(c, 0, true, a->validate_indices, &sets));
    out_types[0] = sx_type_make(SX_I32, (int)sets.rank - 1, sets.dims);
    return sx_require_made("the sizes", &out_types[0]);
}

static sx_status set_size_host(const sx_kernel_call *c)
{
    const sx_set_size_attrs *a = c->attrs;
    sx_sets sets;
    SX_TRY(sx_read_sets(c, 0, true, a->validate_indices, &sets));
    sx_host_fill(c, 0, 0);
    for (int64_t k = 0; k < sets.n; k++) {
        c->out[0].i[sets.members[k].group]++;
    }
    return SX_OK;
}

const sx_op_def sx_op_set_size = {
    SX_OP_NAMED(set_size),
    .n_in = 3,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_set_size_attrs, set_size_attrs),
    .infer = set_size_infer,
    .host = set_size_host,
    .host_types = set_size_host_types,
    SX_FROM_TF({.op = "SetSize"}),
};
