/* call: calls a function of the library. sx_specialize() replaces it with the function's body.
 *
 *   x...       the function's parameters
 *   function   its name
 *   gradient   0: the function. 1: its gradient function (x..., dy...) -> dx..., which takes the
 *              gradient of every float output after the parameters and gives that of every float
 *              parameter. k: the gradient function of the (k-1)-th
 *   variables  of the first gradient function, names separated by commas: after dx... it gives the
 *              gradient of each of these variables, which the function reads
 *   returns    its outputs, of declared types
 *
 * A gradient function is made when types are known, once for all calls with the same ones. It does
 * not repeat asserts and prints; other variables that the function reads are constants to it.
 *
 * Errors   INVALID_ARGUMENT  in a static graph; NOT_FOUND: no such function (sx_library_finish)
 *          UNIMPLEMENTED     (specializing) the gradient of a function with assignments, or with
 * loops whose values change their shapes Gradient a call of the next gradient function Source
 * TensorFlow PartitionedCall, SymbolicGradient */
#ifdef SX_ATTRS
typedef struct sx_call_attrs {
    const char *function; /* of the library */
    int64_t gradient;     /* 0: the function; k: its k-th gradient function */
    /* Of the first gradient function: names, separated by commas; NULL = none */
    const char *variables;
} sx_call_attrs;
#endif

#include <stdio.h>

#include <sextant/function.h>

#include "base/memory.h"
#include "graph/builder.h"
#include "graph/ops/common.h"

static const sx_attr_def call_attrs[] = {
    SX_ATTR(sx_call_attrs, function, SX_ATTR_STRING),
    SX_ATTR(sx_call_attrs, gradient, SX_ATTR_INT),
    SX_ATTR(sx_call_attrs, variables, SX_ATTR_STRING),
};

static sx_status call_infer(sx_infer_context *c)
{
    const sx_call_attrs *attrs = c->attrs;
    return sx_error(
        SX_INVALID_ARGUMENT,
        "the types of function \"%.100s\" are unknown here; declare those of the outputs",
        attrs->function != NULL ? attrs->function : "");
}

sx_value sx_zeros_like(sx_builder *b, sx_value y)
{
    const sx_type type = sx_type_of_value(b, y);
    const sx_type shape_type =
        sx_type_of(SX_I64, type.rank == SX_UNKNOWN_RANK ? SX_UNKNOWN_DIM : (int64_t)type.rank);
    const sx_value zero = sx_scalar(b, type.dtype, 0);
    char shape[40];
    const sx_value of = sx_function_node(b, "shape", "dtype=int64", &y, 1, NULL, 0, &shape_type, 1);
    snprintf(shape, sizeof(shape), "shape=%%%u", (unsigned)of.id);
    return sx_function_node(b, "broadcast_to", shape, &zero, 1, NULL, 0, &type, 1);
}

static void call_grad(sx_grad *g)
{
    const sx_call_attrs *attrs = g->attrs;
    sx_arena *arena = sx_builder_arena(g->b);
    sx_value *in = sx_arena_array(arena, g->n_inputs + g->n_outputs + 1, sx_value);
    sx_type *types = sx_arena_array(arena, g->n_inputs + 1, sx_type);
    int n_in = 0, n_out = 0;
    if (in == NULL || types == NULL) {
        sx_builder_fail(g->b, sx_no_memory("for gradients"));
        return;
    }
    for (int i = 0; i < g->n_inputs; i++) {
        const sx_type type = sx_type_of_value(g->b, g->x[i]);
        in[n_in++] = g->x[i];
        if (sx_dtype_is_float(type.dtype)) {
            types[n_out++] = type;
        }
    }
    for (int i = 0; i < g->n_outputs && !sx_builder_failed(g->b); i++) {
        if (sx_dtype_is_float(sx_type_of_value(g->b, g->y[i]).dtype)) {
            in[n_in++] = sx_value_is(g->dy[i]) ? g->dy[i] : sx_zeros_like(g->b, g->y[i]);
        }
    }
    if (n_out == 0) {
        return;
    }
    const sx_value first = sx_build_node(
        g->b, &(sx_node_spec){.op = &sx_op_call,
                              .attrs = &(sx_call_attrs){attrs->function, attrs->gradient + 1, NULL},
                              .inputs = in,
                              .n_inputs = n_in,
                              .types = types,
                              .n_types = n_out,
                              .device = g->b->device,
                              .file = g->b->file,
                              .line = g->b->line});
    for (int i = 0, k = 0; i < g->n_inputs && !sx_builder_failed(g->b); i++) {
        if (sx_dtype_is_float(sx_type_of_value(g->b, g->x[i]).dtype)) {
            g->dx[i] = sx_output_of(first, k++);
        }
    }
}

const sx_op_def sx_op_call = {
    SX_OP_NAMED(call),
    .n_in = SX_VARIADIC,
    .n_out = SX_VARIADIC,
    .flags = SX_OP_FUNCTION | SX_OP_NO_HOST | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_call_attrs, call_attrs),
    .infer = call_infer,
    .grad = call_grad,
};
