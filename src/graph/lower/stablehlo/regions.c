/* Operators with regions: while and case of StableHLO, and a loop for map. */
#include "graph/lower/stablehlo/rows.h"

#include "base/memory.h"
#include "graph/ops/common.h"

/* A loop that runs at most once: its state is a flag, the operands and the results. */
static void lower_branch(sx_hlo_writer *w, const sx_hlo_op *op, const sx_graph *body, sx_hlo taken,
                         sx_hlo *results)
{
    enum { MOST = 2 * SX_MAX_OUTPUTS };
    const int n_x = op->n_in - 1, n = 1 + n_x + op->n_out;
    sx_hlo state[MOST], args[MOST];
    sx_type types[MOST];
    if (n > MOST) {
        sx_hlo_fail(w, sx_error(SX_UNIMPLEMENTED, "if \"%s\" has more than %d operands and results",
                                op->name, MOST - 1));
        return;
    }
    for (int i = 0; i < n; i++) {
        state[i] = i == 0 ? taken : i <= n_x ? op->in[i] : results[i - 1 - n_x];
        types[i] = sx_hlo_type(w, state[i]);
    }
    sx_hlo first = sx_hlo_begin(w, "while", state, n, types, n);
    sx_hlo_region(w, types, n, args);
    sx_hlo_region_end(w, &args[0], 1);
    sx_hlo_region(w, types, n, args);
    sx_hlo_graph(w, body, args + 1, args + 1 + n_x);
    args[0] = sx_hlo_scalar(w, SX_BOOL, 0);
    sx_hlo_region_end(w, args, n);
    sx_hlo_end(w);
    for (int i = 0; i < op->n_out; i++) {
        results[i] = sx_hlo_result(first, 1 + n_x + i);
    }
}

void sx_hlo_lower_if(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_if_attrs *attrs = op->attrs;
    for (int i = 0; i < op->n_out; i++) {
        op->out[i] = sx_hlo_splat(w, op->out_types[i], 0);
    }
    lower_branch(w, op, attrs->then_body, op->in[0], op->out);
    lower_branch(w, op, attrs->else_body, sx_hlo_unary(w, "not", op->in[0]), op->out);
}

/* The operands and, where there is a bound, a count of the iterations: no plugin can be
 * interrupted, so the loop ends at its bound whatever the condition says. */
void sx_hlo_lower_while(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_while_attrs *attrs = op->attrs;
    const int n = op->n_in, all = n + (attrs->trips > 0);
    sx_hlo *state = sx_alloc(2 * ((size_t)n + 1), sizeof(*state)), test;
    sx_type *types = sx_alloc((size_t)n + 1, sizeof(*types));
    if (state == NULL || types == NULL) {
        sx_hlo_fail(w, sx_no_memory("lowering a loop"));
        sx_free(state);
        sx_free(types);
        return;
    }
    sx_hlo *args = state + n + 1;
    for (int i = 0; i < all; i++) {
        state[i] = i < n ? op->in[i] : sx_hlo_scalar(w, SX_I64, 0);
        types[i] = sx_hlo_type(w, state[i]);
    }
    sx_hlo first = sx_hlo_begin(w, "while", state, all, types, all);
    sx_hlo_region(w, types, all, args);
    sx_hlo_graph(w, attrs->condition, args, &test);
    if (all > n) {
        sx_hlo most = sx_hlo_like(w, args[n], (double)attrs->trips);
        test = sx_hlo_binary(w, "and", test, sx_hlo_compare(w, "LT", args[n], most));
    }
    sx_hlo_region_end(w, &test, 1);
    sx_hlo_region(w, types, all, args);
    sx_hlo_graph(w, attrs->body, args, op->out); /* the other operands stay in args */
    for (int i = 0; i < op->n_out; i++) {
        args[i] = op->out[i];
    }
    if (all > n) {
        args[n] = sx_hlo_with(w, "add", args[n], 1);
    }
    sx_hlo_region_end(w, args, all);
    sx_hlo_end(w);
    for (int i = 0; i < op->n_out; i++) {
        op->out[i] = sx_hlo_result(first, i);
    }
    sx_free(state);
    sx_free(types);
}

/* A loop over (i, operands, results so far). */
void sx_hlo_lower_map(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_map_attrs *attrs = op->attrs;
    enum { MOST = 1 + 2 * SX_MAX_OUTPUTS };
    const int n = 1 + op->n_in + op->n_out;
    sx_hlo state[MOST], args[MOST], part[SX_MAX_OUTPUTS], made[SX_MAX_OUTPUTS];
    sx_type types[MOST];
    for (int i = 0; i < n; i++) {
        state[i] = i == 0          ? sx_hlo_scalar(w, SX_I64, 0)
                   : i <= op->n_in ? op->in[i - 1]
                                   : sx_hlo_splat(w, op->out_types[i - 1 - op->n_in], 0);
        types[i] = sx_hlo_type(w, state[i]);
    }
    sx_hlo first = sx_hlo_begin(w, "while", state, n, types, n);
    sx_hlo_region(w, types, n, args);
    sx_hlo more =
        sx_hlo_compare(w, "LT", args[0], sx_hlo_like(w, args[0], (double)op->in_types[0].dims[0]));
    sx_hlo_region_end(w, &more, 1);
    sx_hlo_region(w, types, n, args);
    for (int i = 0; i < op->n_in; i++) {
        part[i] = i < attrs->mapped ? sx_hlo_take_row(w, args[1 + i], args[0]) : args[1 + i];
    }
    sx_hlo_graph(w, attrs->body, part, made);
    for (int i = 0; i < op->n_out; i++) {
        sx_hlo *stack = &args[1 + op->n_in + i];
        *stack = sx_hlo_put_row(w, *stack, made[i], args[0]);
    }
    args[0] = sx_hlo_with(w, "add", args[0], 1);
    sx_hlo_region_end(w, args, n);
    sx_hlo_end(w);
    for (int i = 0; i < op->n_out; i++) {
        op->out[i] = sx_hlo_result(first, 1 + op->n_in + i);
    }
}
