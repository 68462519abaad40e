/* take_row: element i along axis 0.
 *
 *   x        any type, rank 1 or more, not empty along axis 0 unless checked
 *   i        int32 scalar; outside the axis it means the nearest element
 *   checked  i outside the axis is the run's error, but on devices that have none (pjrt)
 *   returns  x's type without axis 0
 *
 * Gradient dx = zeros with dy as element i
 * Errors   INVALID_ARGUMENT  x, i; (running, checked) i
 * Numbers  exact
 * Source   StableHLO dynamic_slice; checked: TensorFlow TensorListGetItem */
#include "graph/ops/regions.h"

static const sx_attr_def take_row_attrs[] = {SX_ATTR(sx_row_attrs, checked, SX_ATTR_BOOL)};

static sx_status take_row_infer(sx_infer_context *c)
{
    const sx_type *x = &c->inputs[0];
    SX_TRY(sx_require_scalar("i", &c->inputs[1], SX_I32));
    if (sx_carrier_of(x->dtype) == SX_CARRIER_NONE || x->rank < 1 ||
        x->dims[0] < sx_least_rows(c->attrs)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "x is %s, expected a first axis of known, positive length", SX_TEXT(x));
    }
    c->outputs[0] = sx_type_make(x->dtype, x->rank - 1, x->dims + 1);
    return SX_OK;
}

static void take_row_grad(sx_grad *g)
{
    const sx_type type = sx_type_of_value(g->b, g->x[0]);
    if (g->needed[0]) {
        sx_value zeros = sx_region_zeros(g->b, &type);
        g->dx[0] = type.rank > 0 && type.dims[0] == 0
                       ? zeros
                       : sx_build_op(g->b, put_row, NULL, zeros, g->dy[0], g->x[1]);
    }
}

static sx_status take_row_host(const sx_kernel_call *c)
{
    const int64_t n = sx_type_elems(&c->out[0].type);
    int64_t i = 0;
    SX_TRY(sx_host_row_index(c, 1, &i));
    sx_host_move(c, 0, 0, i * n, n);
    return SX_OK;
}

static void take_row_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_tf_value i = sx_tf_row_index(w, op, 1);
    op->out[0] = sx_tf_add(
        w, "GatherV2", NULL, sx_tf_in(op->in[0], i, sx_tf_const_i32(w, "axis", 0)),
        sx_tf_attrs(sx_tf_attr_type("Tparams", (int)op->in_types[0].dtype),
                    sx_tf_attr_type("Tindices", SX_I32), sx_tf_attr_type("Taxis", SX_I32)));
}

static const sx_op_sample take_row_samples[] = {
    {.name = "matrix",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 3),
                {.type = {.dtype = SX_I32}, .fill = SX_FILL_INDEX, .limit = 4}},
     .n_inputs = 2},
    {.name = "vector",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 5),
                {.type = {.dtype = SX_I32}, .fill = SX_FILL_INDEX, .limit = 5}},
     .n_inputs = 2},
    {.name = "beside_the_batch",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, SX_BATCH, 3),
                {.type = {.dtype = SX_I32}, .fill = SX_FILL_INDEX, .limit = 4}},
     .n_inputs = 2},
    {.name = "checked",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 3),
                {.type = {.dtype = SX_I32}, .fill = SX_FILL_INDEX, .limit = 4}},
     .n_inputs = 2,
     .attrs = &(const sx_row_attrs){.checked = true}},
};

static double take_row_bytes(const sx_type *in, const sx_type *out)
{
    (void)in;
    return 2 * (double)sx_type_bytes(&out[0]);
}

const sx_op_def sx_op_take_row = {
    SX_OP_NAMED(take_row),
    .n_in = 2,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES, /* axis 0 is not the batch: its length is known */
    .bf16 = 0x1,
    .flags = SX_OP_EXACT,
    .moved = 0x1,
    SX_OP_ATTRS(sx_row_attrs, take_row_attrs),
    .infer = take_row_infer,
    .grad = take_row_grad,
    .host = take_row_host,
    .to_tf = take_row_to_tf,
    .bytes = take_row_bytes,
    SX_OP_SAMPLES(take_row_samples),
};
