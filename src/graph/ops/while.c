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
 *          RESOURCE_EXHAUSTED (running) more iterations than the run may make
 *
 * Gradient: one loop keeps the state of each iteration, another runs back over them; without
 * `trips` the first keeps that of every s-th iteration, at most 64, and the second computes those
 * between again.
 *
 * Numbers  those of the regions
 * Source   TensorFlow While; StableHLO while */
#ifdef SX_ATTRS
typedef struct sx_while_attrs {
    const sx_graph *condition, *body;
    int64_t trips; /* at most so many; 0 = no bound is known */
} sx_while_attrs;
#endif

#include <string.h>

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

enum { MOST_LOOP_VALUES = 3 * SX_MAX_OUTPUTS };

/* A loop of these regions, which it destroys; no value if one is NULL, after an error. */
static sx_value build_loop(sx_builder *b, sx_graph *condition, sx_graph *body, int64_t trips,
                           const sx_value *operands, int n)
{
    sx_value first = SX_NO_VALUE;
    if (condition != NULL && body != NULL) {
        first = sx_build(b, &sx_op_while,
                         &(sx_while_attrs){.condition = condition, .body = body, .trips = trips},
                         operands, n);
    }
    sx_graph_destroy(condition);
    sx_graph_destroy(body);
    return first;
}

/* ---- Loops without a bound: checkpoints ----
 *
 * The state is kept at trips 0, s, 2s, ... where s is the least power of two for which SLOTS rows
 * are enough. A trip's place is (slot, offset), trip = slot * s + offset. Row SLOTS takes the
 * states that are not kept. */
enum { SLOTS = 64 };

static sx_value i32(sx_builder *b, int32_t value)
{
    return sx_scalar(b, SX_I32, value);
}

/* How often the loop runs: while condition(state):  i = i + 1; state = body(state) */
static sx_value count_trips(sx_grad *g)
{
    const sx_while_attrs *attrs = g->attrs;
    const int n_x = g->n_inputs;
    sx_value operands[MOST_LOOP_VALUES], args[MOST_LOOP_VALUES], results[MOST_LOOP_VALUES];
    sx_type types[MOST_LOOP_VALUES];
    operands[0] = i32(g->b, 0);
    types[0] = sx_scalar_type(SX_I32);
    for (int i = 0; i < n_x; i++) {
        operands[1 + i] = g->x[i];
        types[1 + i] = sx_type_of_value(g->b, g->x[i]);
    }
    sx_builder *b = sx_region_begin(g, types, 1 + n_x, args);
    if (b == NULL) {
        return SX_NO_VALUE;
    }
    sx_region_inline(b, attrs->condition, args + 1, results);
    sx_graph *condition = sx_region_end(g, b, results, 1), *body = NULL;
    b = sx_region_begin(g, types, 1 + n_x, args);
    if (b != NULL) {
        results[0] = sx_build_op(b, add, NULL, args[0], i32(b, 1));
        sx_region_inline(b, attrs->body, args + 1, results + 1);
        body = sx_region_end(g, b, results, 1 + g->n_outputs);
    }
    return build_loop(g->b, condition, body, 0, operands, 1 + n_x);
}

/* while s * SLOTS < trips:  s = s + s */
static sx_value choose_stride(sx_grad *g, sx_value trips)
{
    const sx_type types[2] = {sx_scalar_type(SX_I32), sx_scalar_type(SX_I32)};
    const sx_value operands[2] = {i32(g->b, 1), trips};
    sx_value args[2], result;
    sx_builder *b = sx_region_begin(g, types, 2, args);
    if (b == NULL) {
        return SX_NO_VALUE;
    }
    result = sx_build_op(b, mul, NULL, args[0], i32(b, SLOTS));
    result = sx_build_op(b, less, NULL, result, args[1]);
    sx_graph *condition = sx_region_end(g, b, &result, 1), *body = NULL;
    b = sx_region_begin(g, types, 2, args);
    if (b != NULL) {
        result = sx_build_op(b, add, NULL, args[0], args[0]);
        body = sx_region_end(g, b, &result, 1);
    }
    return build_loop(g->b, condition, body, 0, operands, 2);
}

/* The state `offset` trips after that of xs, which it replaces:
 *
 *   (j, state..., x..., offset)   while j < offset:  j = j + 1; state = body(state) */
static void compute_again(sx_grad *g, sx_builder *b, sx_value *xs, sx_value offset)
{
    const sx_while_attrs *attrs = g->attrs;
    const int n_x = g->n_inputs, n = n_x + 2;
    sx_value operands[MOST_LOOP_VALUES], args[MOST_LOOP_VALUES], results[MOST_LOOP_VALUES];
    sx_type types[MOST_LOOP_VALUES];
    operands[0] = i32(b, 0);
    operands[n - 1] = offset;
    types[0] = types[n - 1] = sx_scalar_type(SX_I32);
    for (int i = 0; i < n_x; i++) {
        operands[1 + i] = xs[i];
        types[1 + i] = sx_type_of_value(b, xs[i]);
    }
    sx_builder *inner = sx_builder_failed(b) ? NULL : sx_region_begin(g, types, n, args);
    if (inner == NULL) {
        return;
    }
    results[0] = sx_build_op(inner, less, NULL, args[0], args[n - 1]);
    sx_graph *condition = sx_region_end(g, inner, results, 1), *body = NULL;
    inner = sx_region_begin(g, types, n, args);
    if (inner != NULL) {
        results[0] = sx_build_op(inner, add, NULL, args[0], i32(inner, 1));
        sx_region_inline(inner, attrs->body, args + 1, results + 1);
        body = sx_region_end(g, inner, results, 1 + g->n_outputs);
    }
    const sx_value first = build_loop(b, condition, body, 0, operands, n);
    for (int i = 0; i < g->n_outputs; i++) {
        xs[i] = sx_output_of(first, 1 + i);
    }
}

/* ---- The gradient: two loops ---- */

/* What precedes the state in both loops: the trip; without a bound its offset and slot, too. */
enum { TRIP, OFFSET, SLOT };

static int n_counters(const sx_grad *g)
{
    return ((const sx_while_attrs *)g->attrs)->trips > 0 ? 1 : 3;
}

/* Runs forward again and keeps the state before each trip in [trips, …] buffers:
 *
 *   (i, state..., kept..., x...)   while condition(state):  kept[i] = state; state = body(state)
 *
 * or, without a bound, (i, offset, slot, state..., kept..., x..., stride). */
static sx_value build_forward(sx_grad *g, sx_value stride)
{
    const sx_while_attrs *attrs = g->attrs;
    const int n_state = g->n_outputs, n_x = g->n_inputs, head = n_counters(g);
    sx_value operands[MOST_LOOP_VALUES], args[MOST_LOOP_VALUES], results[MOST_LOOP_VALUES],
        xs[MOST_LOOP_VALUES];
    sx_type types[MOST_LOOP_VALUES];
    int n = 0;
    while (n < head) {
        operands[n++] = i32(g->b, 0);
    }
    for (int i = 0; i < n_state; i++) {
        operands[n++] = g->x[i];
    }
    for (int i = 0; i < n_state; i++) {
        sx_type type = sx_type_of_value(g->b, g->x[i]), kept = {.dtype = type.dtype};
        if (type.rank == SX_MAX_RANK) {
            sx_builder_fail(g->b, sx_error(SX_UNIMPLEMENTED, "a state of rank %d", type.rank));
            return SX_NO_VALUE;
        }
        kept.rank = type.rank + 1;
        kept.dims[0] = attrs->trips > 0 ? attrs->trips : SLOTS + 1;
        memcpy(kept.dims + 1, type.dims, (size_t)type.rank * sizeof(type.dims[0]));
        operands[n++] = sx_region_zeros(g->b, &kept);
    }
    for (int i = n_state; i < n_x; i++) {
        operands[n++] = g->x[i];
    }
    if (attrs->trips == 0) {
        operands[n++] = stride;
    }
    if (sx_builder_failed(g->b)) {
        return SX_NO_VALUE;
    }
    for (int i = 0; i < n; i++) {
        types[i] = sx_type_of_value(g->b, operands[i]);
    }

    sx_builder *b = sx_region_begin(g, types, n, args);
    if (b == NULL) {
        return SX_NO_VALUE;
    }
    for (int i = 0; i < n_x; i++) {
        xs[i] = i < n_state ? args[head + i] : args[head + n_state + i];
    }
    sx_region_inline(b, attrs->condition, xs, results);
    sx_graph *condition = sx_region_end(g, b, results, 1), *body = NULL;

    b = sx_region_begin(g, types, n, args);
    if (b != NULL) {
        sx_value row = args[TRIP];
        for (int i = 0; i < n_x; i++) {
            xs[i] = i < n_state ? args[head + i] : args[head + n_state + i];
        }
        results[TRIP] = sx_build_op(b, add, NULL, args[TRIP], i32(b, 1));
        if (attrs->trips == 0) {
            const sx_value zero = i32(b, 0), one = i32(b, 1);
            const sx_value next = sx_build_op(b, add, NULL, args[OFFSET], one);
            const sx_value wraps = sx_build_op(b, equal, NULL, next, args[n - 1]);
            const sx_value keeps = sx_build_op(b, equal, NULL, args[OFFSET], zero);
            row = sx_build_op(b, select, NULL, keeps, args[SLOT], i32(b, SLOTS));
            results[OFFSET] = sx_build_op(b, select, NULL, wraps, zero, next);
            results[SLOT] = sx_build_op(b, add, NULL, args[SLOT], one);
            results[SLOT] = sx_build_op(b, select, NULL, wraps, results[SLOT], args[SLOT]);
        }
        sx_region_inline(b, attrs->body, xs, results + head);
        for (int i = 0; i < n_state; i++) {
            results[head + n_state + i] =
                sx_build_op(b, put_row, NULL, args[head + n_state + i], xs[i], row);
        }
        body = sx_region_end(g, b, results, head + 2 * n_state);
    }
    return build_loop(g->b, condition, body, attrs->trips, operands, n);
}

/* Two loops: one runs forward again, the other back over the states that it kept:
 *
 *   (i, dstate..., dx..., kept..., x...)   while i > 0:  i = i - 1;  pulled back through
 *                                                                    body(kept[i])
 *
 * so that a trip of the second computes the body and its gradient. Without a bound, kept[slot] is
 * first brought forward by `offset` trips. */
static void while_grad(sx_grad *g)
{
    const sx_while_attrs *attrs = g->attrs;
    const int n_state = g->n_outputs, n_x = g->n_inputs, head = n_counters(g);
    sx_value operands[MOST_LOOP_VALUES], args[MOST_LOOP_VALUES], results[MOST_LOOP_VALUES],
        xs[MOST_LOOP_VALUES], dx[MOST_LOOP_VALUES], stride = SX_NO_VALUE;
    sx_type types[MOST_LOOP_VALUES];
    int at[MOST_LOOP_VALUES], n_float = 0, n_diff = 0; /* of the operands: those with a gradient,
                                                          state first */
    if (head + 2 * n_state + n_x >= MOST_LOOP_VALUES || head + 2 * n_state > SX_MAX_OUTPUTS ||
        n_x + head > SX_MAX_OUTPUTS) {
        sx_builder_fail(g->b, sx_error(SX_UNIMPLEMENTED,
                                       "the gradient of a while of %d values and %d operands",
                                       n_state, n_x));
        return;
    }
    for (int i = 0; i < n_x; i++) {
        /* All of a state's floats: one may depend on another. */
        if (i < n_state ? sx_dtype_is_float(sx_type_of_value(g->b, g->x[i]).dtype) : g->needed[i]) {
            at[n_diff++] = i;
            n_float += i < n_state;
        }
    }
    if (attrs->trips == 0) {
        stride = choose_stride(g, count_trips(g));
    }
    const sx_value forward = build_forward(g, stride);
    int n = 0;
    while (n < head) {
        operands[n] = sx_output_of(forward, n);
        n++;
    }
    for (int i = 0; i < n_diff && !sx_builder_failed(g->b); i++) {
        const sx_type type = sx_type_of_value(g->b, g->x[at[i]]);
        const bool given = at[i] < n_state && sx_value_is(g->dy[at[i]]);
        operands[n++] = given ? g->dy[at[i]] : sx_region_zeros(g->b, &type);
    }
    if (sx_builder_failed(g->b)) {
        return;
    }
    for (int i = 0; i < n_state; i++) {
        operands[n++] = sx_output_of(forward, head + n_state + i);
    }
    for (int i = n_state; i < n_x; i++) {
        operands[n++] = g->x[i];
    }
    if (attrs->trips == 0) {
        operands[n++] = stride;
    }
    for (int i = 0; i < n; i++) {
        types[i] = sx_type_of_value(g->b, operands[i]);
    }

    sx_builder *b = sx_region_begin(g, types, n, args);
    if (b == NULL) {
        return;
    }
    results[0] = sx_build_op(b, greater, NULL, args[TRIP], i32(b, 0));
    sx_graph *condition = sx_region_end(g, b, results, 1), *body = NULL;

    b = sx_region_begin(g, types, n, args);
    if (b != NULL) {
        sx_value y[SX_MAX_OUTPUTS], ys[SX_MAX_OUTPUTS], of[SX_MAX_OUTPUTS];
        const sx_value *kept = args + head + n_diff, *rest = kept + n_state;
        const sx_value one = i32(b, 1);
        sx_value row = results[TRIP] = sx_build_op(b, sub, NULL, args[TRIP], one);
        if (attrs->trips == 0) {
            const sx_value first = sx_build_op(b, equal, NULL, args[OFFSET], i32(b, 0));
            const sx_value last = sx_build_op(b, sub, NULL, args[n - 1], one);
            results[OFFSET] = sx_build_op(b, sub, NULL, args[OFFSET], one);
            results[OFFSET] = sx_build_op(b, select, NULL, first, last, results[OFFSET]);
            results[SLOT] = sx_build_op(b, sub, NULL, args[SLOT], one);
            results[SLOT] = sx_build_op(b, select, NULL, first, results[SLOT], args[SLOT]);
            row = results[SLOT];
        }
        for (int i = 0; i < n_x; i++) {
            xs[i] = i < n_state ? sx_build_op(b, take_row, NULL, kept[i], row) : rest[i - n_state];
        }
        if (attrs->trips == 0) {
            compute_again(g, b, xs, results[OFFSET]);
        }
        sx_region_inline(b, attrs->body, xs, y);
        for (int i = 0; i < n_float; i++) {
            ys[i] = y[at[i]];
        }
        for (int i = 0; i < n_diff; i++) {
            of[i] = xs[at[i]];
        }
        sx_pull_back(b, ys, args + head, n_float, of, n_diff, dx);
        for (int i = 0; i < n_diff && !sx_builder_failed(b); i++) {
            const sx_type type = sx_type_of_value(b, of[i]);
            results[head + i] = i >= n_float         ? sx_add_maybe(b, args[head + i], dx[i])
                                : sx_value_is(dx[i]) ? dx[i]
                                                     : sx_region_zeros(b, &type);
        }
        body = sx_region_end(g, b, results, head + n_diff);
    }
    const sx_value back = build_loop(g->b, condition, body, attrs->trips, operands, n);
    for (int i = 0; i < n_diff; i++) {
        if (g->needed[at[i]]) {
            g->dx[at[i]] = sx_output_of(back, head + i);
        }
    }
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
        next[i].data =
            sx_arena_alloc(c->arena, (size_t)sx_interpret_bytes(c, &next[i].type) + 1, 1);
        if (next[i].data == NULL) {
            return sx_budget_error(c->arena->budget);
        }
    }
    for (int64_t trip = 0;; trip++) {
        SX_TRY(sx_interpret(c, attrs->condition, args, &holds), "condition");
        if (!again) {
            return SX_OK;
        }
        if (attrs->trips > 0 && trip == attrs->trips) {
            return sx_error(SX_OUT_OF_RANGE, "the condition is still true after %lld iterations",
                            (long long)attrs->trips);
        }
        SX_TRY(sx_cancel_check_trip(c->cancel, trip), "trip %lld", (long long)trip);
        SX_TRY(sx_interpret(c, attrs->body, args, next), "trip %lld", (long long)trip);
        for (int i = 0; i < c->n_out; i++) {
            sx_region_copy(c, &next[i], &args[i]);
        }
    }
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

/* (x, h, limit, w): while x < limit, x = x + x and h = tanh(h w) */
static sx_node early_nodes[] = {
    SX_BODY_PARAMETER(1, "x", SX_F32, 0, {0}), SX_BODY_PARAMETER(2, "h", SX_F32, 1, {3}),
    SX_BODY_PARAMETER(3, "limit", SX_F32, 0, {0}), SX_BODY_PARAMETER(4, "w", SX_F32, 1, {3}),
    SX_BODY_NODE(5, sx_op_less, NULL, 2, {1}, {3})};
static sx_value_info early_values[] = {{.node = 0},
                                       {{.dtype = SX_F32}, 0, 0},
                                       {SX_TYPE_LITERAL_(SX_F32, 3), 1, 0},
                                       {{.dtype = SX_F32}, 2, 0},
                                       {SX_TYPE_LITERAL_(SX_F32, 3), 3, 0},
                                       {{.dtype = SX_BOOL}, 4, 0}};
static sx_arg early_args[] = {{.kind = SX_ARG_INPUT, .name = "x", .value = {1}},
                              {.kind = SX_ARG_INPUT, .name = "h", .value = {2}},
                              {.kind = SX_ARG_INPUT, .name = "limit", .value = {3}},
                              {.kind = SX_ARG_INPUT, .name = "w", .value = {4}}};
static sx_result early_results[] = {{"go", {5}, SX_RESULT_IS_OUTPUT}};
static const sx_graph early = SX_BODY(early_nodes, early_values, early_args, early_results);
static sx_node cell_nodes[] = {
    SX_BODY_PARAMETER(1, "x", SX_F32, 0, {0}),     SX_BODY_PARAMETER(2, "h", SX_F32, 1, {3}),
    SX_BODY_PARAMETER(3, "limit", SX_F32, 0, {0}), SX_BODY_PARAMETER(4, "w", SX_F32, 1, {3}),
    SX_BODY_NODE(5, sx_op_add, NULL, 2, {1}, {1}), SX_BODY_NODE(6, sx_op_mul, NULL, 2, {2}, {4}),
    SX_BODY_NODE(7, sx_op_tanh, NULL, 1, {6})};
static sx_value_info cell_values[] = {{.node = 0},
                                      {{.dtype = SX_F32}, 0, 0},
                                      {SX_TYPE_LITERAL_(SX_F32, 3), 1, 0},
                                      {{.dtype = SX_F32}, 2, 0},
                                      {SX_TYPE_LITERAL_(SX_F32, 3), 3, 0},
                                      {{.dtype = SX_F32}, 4, 0},
                                      {SX_TYPE_LITERAL_(SX_F32, 3), 5, 0},
                                      {SX_TYPE_LITERAL_(SX_F32, 3), 6, 0}};
static sx_result cell_results[] = {{"x", {5}, SX_RESULT_IS_OUTPUT},
                                   {"h", {7}, SX_RESULT_IS_OUTPUT}};
static const sx_graph cell = SX_BODY(cell_nodes, cell_values, early_args, cell_results);

static const sx_op_sample while_samples[] = {
    {.name = "recurrent",
     .inputs = {SX_SAMPLE_SCALAR(SX_F32, SX_FILL_POSITIVE), SX_SAMPLE_F32(SX_FILL_NORMAL, 3),
                SX_SAMPLE_SCALAR(SX_F32, SX_FILL_FAR), SX_SAMPLE_F32(SX_FILL_POSITIVE, 3)},
     .n_inputs = 4,
     .attrs = &(const sx_while_attrs){.condition = &early, .body = &cell, .trips = 20}},
    {.name = "without_a_bound",
     .inputs = {SX_SAMPLE_SCALAR(SX_F32, SX_FILL_POSITIVE), SX_SAMPLE_F32(SX_FILL_NORMAL, 3),
                SX_SAMPLE_SCALAR(SX_F32, SX_FILL_FAR), SX_SAMPLE_F32(SX_FILL_POSITIVE, 3)},
     .n_inputs = 4,
     .attrs = &(const sx_while_attrs){.condition = &early, .body = &cell}},
    {.name = "doubling",
     .inputs = {SX_SAMPLE_SCALAR(SX_F32, SX_FILL_POSITIVE), SX_SAMPLE_SCALAR(SX_F32, SX_FILL_FAR)},
     .n_inputs = 2,
     .attrs = &(const sx_while_attrs){.condition = &less, .body = &twice, .trips = 20}},
};

const sx_op_def sx_op_while = {
    SX_OP_NAMED(while),           .n_in = SX_VARIADIC,
    .n_out = SX_VARIADIC,         .batch_rule = SX_RULE_REGIONS,
    .flags = SX_OP_NO_TF,         SX_OP_ATTRS(sx_while_attrs, while_attrs),
    .moved = SX_MOVES_ALL,        .infer = while_infer,
    .grad = while_grad,           .host = while_host,
    SX_OP_SAMPLES(while_samples),
};
