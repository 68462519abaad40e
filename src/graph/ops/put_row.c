/* put_row: x with another element i along axis 0.
 *
 *   x        any type, rank 1 or more, not empty along axis 0 unless checked
 *   row      x's type without axis 0
 *   i        int32 scalar; outside the axis it means the nearest element
 *   checked  i outside the axis is the run's error, but on devices that have none (pjrt)
 *   returns  x's type
 *
 * Gradient dx = dy with zeros as element i; drow = element i of dy
 * Errors   INVALID_ARGUMENT  x, row, i; (running, checked) i
 * Numbers  exact
 * Source   StableHLO dynamic_update_slice; checked: TensorFlow TensorListSetItem */
#ifdef SX_ATTRS
/* take_row, put_row */
typedef struct sx_row_attrs {
    bool checked;
} sx_row_attrs;
#endif

#include "graph/ops/regions.h"

static const sx_attr_def put_row_attrs[] = {SX_ATTR(sx_row_attrs, checked, SX_ATTR_BOOL)};

static sx_status put_row_infer(sx_infer_context *c)
{
    const sx_type *x = &c->inputs[0];
    SX_TRY(sx_require_scalar("i", &c->inputs[2], SX_I32));
    if (sx_carrier_of(x->dtype) == SX_CARRIER_NONE || x->rank < 1 ||
        x->dims[0] < sx_least_rows(c->attrs)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "x is %s, expected a first axis of known, positive length", SX_TEXT(x));
    }
    const sx_type row = sx_type_make(x->dtype, x->rank - 1, x->dims + 1);
    SX_TRY(sx_require_equal("row", &c->inputs[1], "an element of x", &row));
    c->outputs[0] = *x;
    return SX_OK;
}

static void put_row_grad(sx_grad *g)
{
    const sx_type x = sx_type_of_value(g->b, g->x[0]), row = sx_type_of_value(g->b, g->x[1]);
    if (x.rank > 0 && x.dims[0] == 0) {
        return;
    }
    if (g->needed[0]) {
        sx_value zeros = sx_region_zeros(g->b, &row);
        g->dx[0] = sx_build_op(g->b, put_row, NULL, g->dy[0], zeros, g->x[2]);
    }
    if (g->needed[1]) {
        g->dx[1] = sx_build_op(g->b, take_row, NULL, g->dy[0], g->x[2]);
    }
}

static sx_status put_row_host(const sx_kernel_call *c)
{
    const int64_t n = sx_type_elems(&c->in[1].type), rows = c->in[0].type.dims[0];
    int64_t i = 0;
    SX_TRY(sx_host_row_index(c, 2, &i));
    sx_host_move(c, 0, 0, 0, rows * n);
    sx_host_move(c, i * n, 1, 0, n);
    return SX_OK;
}

/* The row, broadcast, where the number along axis 0 is i; else x. */
static void put_row_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_type *x = &op->in_types[0];
    const sx_tf_value i = sx_tf_row_index(w, op, 2);
    const sx_tf_value range =
        sx_tf_add(w, "Range", NULL,
                  sx_tf_in(sx_tf_const_i32(w, "start", 0), sx_tf_row_count(w, op),
                           sx_tf_const_i32(w, "delta", 1)),
                  SX_TF_NO_ATTRS);
    const sx_tf_value here =
        sx_tf_add(w, "Equal", NULL, sx_tf_in(range, i), sx_tf_attrs(sx_tf_attr_type("T", SX_I32)));
    sx_ints column = {.n = x->rank};
    for (int d = 0; d < x->rank; d++) {
        column.v[d] = d == 0 ? -1 : 1;
    }
    const sx_tf_value mask =
        sx_tf_add(w, "Reshape", NULL, sx_tf_in(here, sx_tf_ints(w, "column", &column)),
                  sx_tf_attrs(sx_tf_attr_type("T", SX_BOOL)));
    op->out[0] = sx_tf_add(w, "SelectV2", NULL, sx_tf_in(mask, op->in[1], op->in[0]),
                           sx_tf_attrs(sx_tf_attr_type("T", (int)x->dtype)));
}

static const sx_op_sample put_row_samples[] = {
    {.name = "matrix",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 3),
                SX_SAMPLE_F32(SX_FILL_NORMAL, 3),
                {.type = {.dtype = SX_I32}, .fill = SX_FILL_INDEX, .limit = 4}},
     .n_inputs = 3},
    {.name = "vector",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 5),
                SX_SAMPLE_SCALAR(SX_F32, SX_FILL_NORMAL),
                {.type = {.dtype = SX_I32}, .fill = SX_FILL_INDEX, .limit = 5}},
     .n_inputs = 3},
    {.name = "beside_the_batch",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, SX_BATCH, 3),
                SX_SAMPLE_F32(SX_FILL_NORMAL, SX_BATCH, 3),
                {.type = {.dtype = SX_I32}, .fill = SX_FILL_INDEX, .limit = 4}},
     .n_inputs = 3},
    {.name = "checked",
     .inputs = {SX_SAMPLE_F32(SX_FILL_NORMAL, 4, 3),
                SX_SAMPLE_F32(SX_FILL_NORMAL, 3),
                {.type = {.dtype = SX_I32}, .fill = SX_FILL_INDEX, .limit = 4}},
     .n_inputs = 3,
     .attrs = &(const sx_row_attrs){.checked = true}},
};

const sx_op_def sx_op_put_row = {
    SX_OP_NAMED(put_row),
    .n_in = 3,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES, /* axis 0 is not the batch: its length is known */
    .bf16 = 0x3,
    .flags = SX_OP_EXACT,
    .moved = 0x3,
    SX_OP_ATTRS(sx_row_attrs, put_row_attrs),
    .infer = put_row_infer,
    .grad = put_row_grad,
    .host = put_row_host,
    .to_tf = put_row_to_tf,
    SX_OP_SAMPLES(put_row_samples),
};
