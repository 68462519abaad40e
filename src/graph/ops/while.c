/* while: repeats a region that updates a state while a condition region is true.
 *
 *   state..., x...   the first operands are the state, as many as the body has results; the others
 *                    are passed to both regions unchanged
 *   condition        region: (state..., x...) -> bool scalar
 *   body             region: (state..., x...) -> state...
 *   trips            maximum number of iterations; 0 = no known bound
 *   returns          the state for which the condition is false
 *
 * Errors   INVALID_ARGUMENT   regions that take other types, a body that changes the state's types,
 *                             no state
 *          OUT_OF_RANGE       (running) more than `trips` iterations
 *          CANCELLED, DEADLINE_EXCEEDED   (running) checked before every iteration
 * Numbers  those of the regions
 * Source   TensorFlow While; StableHLO while */
#include "base/memory.h"
#include "graph/ops/regions.h"

static const sx_attr_def while_attrs[] = {
    SX_ATTR(sx_while_attrs, condition, SX_ATTR_BODY),
    SX_ATTR(sx_while_attrs, body, SX_ATTR_BODY),
    SX_ATTR(sx_while_attrs, trips, SX_ATTR_INT),
};

static sx_status while_infer(sx_infer_context *c)
{
    const sx_while_attrs *attrs = c->attrs;
    SX_TRY(sx_require_region_args("condition", attrs->condition, c->inputs, c->n_inputs));
    SX_TRY(sx_require_region_args("body", attrs->body, c->inputs, c->n_inputs));
    const int n = attrs->body->n_results;
    if (n < 1 || n > c->n_inputs || n > SX_MAX_OUTPUTS || attrs->trips < 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "region body has %d results for %d operands, and trips is %lld; expected 1 "
                        "to %d results, at most as many as operands, and a count",
                        n, c->n_inputs, (long long)attrs->trips, SX_MAX_OUTPUTS);
    }
    if (attrs->condition->n_results != 1) {
        return sx_error(SX_INVALID_ARGUMENT, "region condition has %d results, expected 1",
                        attrs->condition->n_results);
    }
    SX_TRY(sx_require_scalar("the result of region condition",
                             sx_graph_type(attrs->condition, attrs->condition->results[0].value),
                             SX_BOOL));
    for (int i = 0; i < n; i++) {
        const sx_type *y = sx_graph_type(attrs->body, attrs->body->results[i].value);
        if (!sx_type_equal(y, &c->inputs[i])) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "region body returns %s for value %d, which is %s; the state of a loop "
                            "must keep its type",
                            SX_TEXT(y), i, SX_TEXT(&c->inputs[i]));
        }
        c->outputs[i] = *y;
    }
    c->n_outputs = n;
    return SX_OK;
}

static sx_status while_host(const sx_kernel_call *c)
{
    const sx_while_attrs *attrs = c->attrs;
    sx_host_tensor *args = sx_arena_array(c->arena, c->n_in + c->n_out, sx_host_tensor);
    uint8_t again = 0;
    const sx_host_tensor holds = {.type = {.dtype = SX_BOOL}, .b = &again};
    if (args == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    sx_host_tensor *next = args + c->n_in;
    for (int i = 0; i < c->n_in; i++) {
        args[i] = c->in[i];
    }
    for (int i = 0; i < c->n_out; i++) {
        sx_region_copy(c, &c->in[i], &c->out[i]);
        args[i] = next[i] = c->out[i];
        next[i].data = sx_arena_alloc(c->arena, sx_interpret_bytes(c, &next[i].type) + 1, 1);
        if (next[i].data == NULL) {
            return sx_budget_error(c->arena->budget);
        }
    }
    for (int64_t trip = 0;; trip++) {
        SX_TRY(sx_cancel_check(c->cancel), "trip %lld", (long long)trip);
        SX_TRY(sx_interpret(c, attrs->condition, args, &holds), "condition");
        if (!again) {
            return SX_OK;
        }
        if (attrs->trips > 0 && trip == attrs->trips) {
            return sx_error(SX_OUT_OF_RANGE, "the condition is still true after %lld iterations",
                            (long long)attrs->trips);
        }
        SX_TRY(sx_interpret(c, attrs->body, args, next), "trip %lld", (long long)trip);
        for (int i = 0; i < c->n_out; i++) {
            sx_region_copy(c, &next[i], &args[i]);
        }
    }
}

static void while_to_stablehlo(sx_hlo_writer *w, const sx_hlo_op *op)
{
    const sx_while_attrs *attrs = op->attrs;
    const int n = op->n_in;
    sx_hlo *args = sx_alloc((size_t)n, sizeof(*args)), test;
    if (args == NULL) {
        sx_hlo_fail(w, sx_no_memory("lowering a loop"));
        return;
    }
    sx_hlo first = sx_hlo_begin(w, "while", op->in, n, op->in_types, n);
    sx_hlo_region(w, op->in_types, n, args);
    sx_hlo_graph(w, attrs->condition, args, &test);
    sx_hlo_region_end(w, &test, 1);
    sx_hlo_region(w, op->in_types, n, args);
    sx_hlo_graph(w, attrs->body, args, op->out); /* the other operands stay in args */
    for (int i = 0; i < op->n_out; i++) {
        args[i] = op->out[i];
    }
    sx_hlo_region_end(w, args, n);
    sx_hlo_end(w);
    for (int i = 0; i < op->n_out; i++) {
        op->out[i] = sx_hlo_result(first, i);
    }
    sx_free(args);
}

/* (x, limit): while x < limit, x = x + x */
static sx_node less_nodes[] = {SX_BODY_PARAMETER(1, "x", SX_F32, 0, {0}),
                               SX_BODY_PARAMETER(2, "limit", SX_F32, 0, {0}),
                               SX_BODY_NODE(3, sx_op_less, NULL, 2, {1}, {2})};
static sx_value_info less_values[] = {
    {.node = 0}, {{.dtype = SX_F32}, 0, 0}, {{.dtype = SX_F32}, 1, 0}, {{.dtype = SX_BOOL}, 2, 0}};
static sx_node twice_nodes[] = {SX_BODY_PARAMETER(1, "x", SX_F32, 0, {0}),
                                SX_BODY_PARAMETER(2, "limit", SX_F32, 0, {0}),
                                SX_BODY_NODE(3, sx_op_add, NULL, 2, {1}, {1})};
static sx_value_info twice_values[] = {
    {.node = 0}, {{.dtype = SX_F32}, 0, 0}, {{.dtype = SX_F32}, 1, 0}, {{.dtype = SX_F32}, 2, 0}};
static sx_arg scalars[] = {{.kind = SX_ARG_INPUT, .name = "x", .value = {1}},
                           {.kind = SX_ARG_INPUT, .name = "limit", .value = {2}}};
static sx_result third[] = {{"y", {3}, SX_RESULT_IS_OUTPUT}};
static const sx_graph less = SX_BODY(less_nodes, less_values, scalars, third);
static const sx_graph twice = SX_BODY(twice_nodes, twice_values, scalars, third);

static const sx_op_sample while_samples[] = {
    {.name = "doubling",
     .inputs = {SX_SAMPLE_SCALAR(SX_F32, SX_FILL_POSITIVE), SX_SAMPLE_SCALAR(SX_F32, SX_FILL_FAR)},
     .n_inputs = 2,
     .attrs = &(const sx_while_attrs){.condition = &less, .body = &twice, .trips = 20}},
};

const sx_op_def sx_op_while = {
    SX_OP_NAMED(while),
    .n_in = SX_VARIADIC,
    .n_out = SX_VARIADIC,
    .flags = SX_OP_NO_GRAD | SX_OP_NO_TF | SX_OP_COUPLES_BATCH,
    SX_OP_ATTRS(sx_while_attrs, while_attrs),
    .moved = SX_MOVES_ALL,
    .infer = while_infer,
    .host = while_host,
    .to_stablehlo = while_to_stablehlo,
    SX_OP_SAMPLES(while_samples),
};
