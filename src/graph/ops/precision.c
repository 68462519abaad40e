/* See precision.h. */
#include "graph/ops/precision.h"

#include "graph/ops/attrs.h"
#include "graph/ops/common.h"

static sx_value cast_to(sx_builder *b, sx_value x, sx_dtype dtype)
{
    return sx_build_op(b, cast, (&(sx_cast_attrs){.dtype = dtype}), x);
}

static bool is_narrow(sx_dtype dtype)
{
    return dtype == SX_BF16 || dtype == SX_F16;
}

sx_value sx_narrow(sx_builder *b, sx_value x)
{
    bool casts = sx_precision_is_narrow(b) && sx_type_of_value(b, x).dtype == SX_F32;
    return casts ? cast_to(b, x, b->compute) : x;
}

sx_value sx_widen(sx_builder *b, sx_value x)
{
    return is_narrow(sx_type_of_value(b, x).dtype) ? cast_to(b, x, SX_F32) : x;
}

/* ---- Operands of both ---- */

typedef enum rule {
    AS_THEY_ARE = 0,
    WIDE,     /* float32 */
    ONE_DTYPE /* one of the two */
} rule;

static const rule rules[SX_OPID_COUNT] = {
    [SX_OPID_softmax] = WIDE,
    [SX_OPID_log_softmax] = WIDE,
    [SX_OPID_sparse_softmax_cross_entropy] = WIDE,
    [SX_OPID_softmax_cross_entropy] = WIDE,
    [SX_OPID_sigmoid_cross_entropy] = WIDE,
    [SX_OPID_add] = ONE_DTYPE,
    [SX_OPID_sub] = ONE_DTYPE,
    [SX_OPID_mul] = ONE_DTYPE,
    [SX_OPID_div] = ONE_DTYPE,
    [SX_OPID_pow] = ONE_DTYPE,
    [SX_OPID_maximum] = ONE_DTYPE,
    [SX_OPID_minimum] = ONE_DTYPE,
    [SX_OPID_equal] = ONE_DTYPE,
    [SX_OPID_less] = ONE_DTYPE,
    [SX_OPID_greater] = ONE_DTYPE,
    [SX_OPID_select] = ONE_DTYPE,
    [SX_OPID_bias_add] = ONE_DTYPE,
    [SX_OPID_concat] = ONE_DTYPE,
    [SX_OPID_matmul] = ONE_DTYPE,
    [SX_OPID_conv2d] = ONE_DTYPE,
};

/* A constant or a variable, whose precision does not determine that of a result. */
static bool follows(const sx_builder *b, sx_value x)
{
    const sx_node *n = sx_builder_maker(b, x);
    return n != NULL && (n->op->id == SX_OPID_constant || n->op->id == SX_OPID_parameter) &&
           !sx_type_has_batch(&b->graph->values[x.id].type);
}

static void widen_all(sx_builder *b, sx_value *inputs, int n)
{
    for (int i = 0; i < n; i++) {
        inputs[i] = sx_widen(b, inputs[i]);
    }
}

static void meet(sx_builder *b, sx_value *inputs, int n)
{
    bool any_narrow = false, wide_stays = false;
    for (int i = 0; i < n; i++) {
        sx_dtype dtype = sx_type_of_value(b, inputs[i]).dtype;
        any_narrow = any_narrow || dtype == b->compute;
        wide_stays = wide_stays || (dtype == SX_F32 && !follows(b, inputs[i]));
    }
    for (int i = 0; any_narrow && !wide_stays && i < n; i++) {
        inputs[i] = sx_narrow(b, inputs[i]);
    }
    if (any_narrow && wide_stays) {
        widen_all(b, inputs, n);
    }
}

void sx_meet_precision(sx_builder *b, const sx_op_def *op, sx_value *inputs, int n)
{
    if (rules[op->id] == WIDE) {
        widen_all(b, inputs, n);
    } else if (rules[op->id] == ONE_DTYPE) {
        meet(b, inputs, n);
    }
}

/* ---- Gradients ---- */

/* The same product with a float32 result; the narrow one is removed as dead. */
static sx_value product_again(sx_builder *b, const sx_node *n)
{
    if (n->op->id == SX_OPID_matmul) {
        sx_matmul_attrs attrs = *(const sx_matmul_attrs *)n->attrs;
        attrs.wide = true;
        return sx_build(b, n->op, &attrs, n->inputs, n->n_inputs);
    }
    sx_conv2d_attrs attrs = *(const sx_conv2d_attrs *)n->attrs;
    attrs.wide = true;
    return sx_build(b, n->op, &attrs, n->inputs, n->n_inputs);
}

/* The sum of narrow values, in float32. */
static sx_value sum_again(sx_builder *b, const sx_node *n)
{
    return sx_build(b, n->op, n->attrs, (const sx_value[]){sx_widen(b, n->inputs[0])}, 1);
}

sx_value sx_widen_gradient(sx_builder *b, sx_value dy)
{
    if (sx_builder_failed(b) || !is_narrow(sx_type_of_value(b, dy).dtype)) {
        return dy;
    }
    sx_node n = *sx_builder_maker(b, dy); /* a copy, because the array may be reallocated */
    switch (n.op->id) {
    case SX_OPID_matmul:
    case SX_OPID_conv2d_grad_filter:
        return product_again(b, &n);
    case SX_OPID_reduce_sum:
        return sum_again(b, &n);
    default:
        return sx_widen(b, dy);
    }
}
