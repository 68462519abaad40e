/* Operators with regions (if, while, map) in a trace: whether a device can run them as one node,
 * with static regions, or the host has to drive them. */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/ops/attrs.h"
#include "graph/specialize_trace.h"

sx_status sx_check_regions(const sx_node *n)
{
    const bool is_if = n->op == &sx_op_if, is_while = n->op == &sx_op_while;
    for (int row = 0, k = 0; row < n->op->n_attrs; row++) {
        if (n->op->attrs[row].kind != SX_ATTR_BODY || n->op == &sx_op_pull_back) {
            continue;
        }
        const sx_graph *body = sx_node_body(n, row);
        const bool gradients = (n->op->flags & SX_OP_FOR_GRADIENT) != 0; /* one per x at most */
        const int most = n->n_inputs - n->n_outputs;
        const int n_args = n->n_inputs - is_if, n_results = gradients
                                                                ? SX_MIN(body->n_results, most)
                                                            : is_while && k == 0 ? 1
                                                                                 : n->n_outputs;
        k++;
        if (body->n_args != n_args || body->n_results != n_results ||
            (is_while && n->n_outputs > n->n_inputs)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "region %s takes %d values and gives %d, expected %d and %d for a node "
                            "of %d inputs and %d outputs",
                            n->op->attrs[row].name, body->n_args, body->n_results, n_args,
                            n_results, n->n_inputs, n->n_outputs);
        }
    }
    return SX_OK;
}

/* The integer that a scalar of a loop's region is in every iteration: a constant, or an operand
 * that is known and that the body does not change. */
static bool loop_constant(const sx_specializer *s, const sx_node *n, const sx_graph *region,
                          sx_value v, const int *in, int64_t *out)
{
    const sx_graph *body = ((const sx_while_attrs *)n->attrs)->body;
    const sx_node *maker = sx_graph_maker(region, v);
    sx_trace_val x = {.known = NULL};
    sx_count count;
    if (maker->op == &sx_op_constant) {
        x.known = &((const sx_constant_attrs *)maker->attrs)->value;
        x.type = x.known->type;
    }
    for (int i = 0; i < region->n_args; i++) {
        const bool kept = i >= n->n_outputs || body->results[i].value.id == body->args[i].value.id;
        if (region->args[i].value.id == v.id && kept) {
            x = s->vals[in[i]];
        }
    }
    if (x.counts != NULL || sx_type_elems(&x.type) != 1 || !sx_read_count(&x, 0, &count)) {
        return false;
    }
    *out = count.k;
    return true;
}

/* A bound of the iterations of a loop whose condition is `test`: state i < limit, where the body
 * adds a step to state i, all known; or two such conditions that both have to hold. 0 = it is not
 * one, or counts far. */
static int64_t count_iterations(const sx_specializer *s, const sx_node *n, const sx_node *test,
                                const int *in)
{
    enum { MOST = 1 << 24 };
    const sx_while_attrs *a = n->attrs;
    int64_t limit, step, distance;
    sx_count begin;
    if (test->op == &sx_op_logical_and) {
        const sx_node *left = sx_graph_maker(a->condition, test->inputs[0]),
                      *right = sx_graph_maker(a->condition, test->inputs[1]);
        const int64_t x = left->op == &sx_op_less ? count_iterations(s, n, left, in) : 0,
                      y = right->op == &sx_op_less ? count_iterations(s, n, right, in) : 0;
        return x == 0 || (y > 0 && y < x) ? y : x;
    }
    for (int i = 0; i < n->n_outputs && test->op == &sx_op_less; i++) {
        const sx_node *next = sx_graph_maker(a->body, a->body->results[i].value);
        const uint32_t before = a->body->args[i].value.id;
        const sx_trace_val *x = &s->vals[in[i]];
        if (test->inputs[0].id != a->condition->args[i].value.id || next->op != &sx_op_add ||
            (next->inputs[0].id != before && next->inputs[1].id != before)) {
            continue;
        }
        const sx_value by = next->inputs[next->inputs[0].id == before ? 1 : 0];
        if (x->counts != NULL || sx_type_elems(&x->type) != 1 || !sx_read_count(x, 0, &begin) ||
            (x->type.dtype != SX_I32 && x->type.dtype != SX_I64) ||
            !loop_constant(s, n, a->condition, test->inputs[1], in, &limit) ||
            !loop_constant(s, n, a->body, by, in, &step)) {
            return 0;
        }
        /* the counter must not wrap before it reaches the limit */
        const bool counts = step >= 1 && step < MOST && limit <= INT32_MAX - step &&
                            sx_add_i64(limit, -begin.k, &distance) && distance / step < MOST;
        return !counts ? 0 : distance <= 0 ? 1 : (distance - 1) / step + 1;
    }
    return 0;
}

/* Makes a region a static graph; *out is NULL if a device cannot run it. The region's operands are
 * in[first ..]; their known values are valid from operand `whole` on. `map` passes elements of the
 * first `whole`. The graph is in the program's arena. */
static sx_status static_region(sx_specializer *s, const sx_node *n, int attr_row, const int *in,
                               int first, int n_in, int n_whole, sx_graph **out)
{
    const sx_graph *body = sx_node_body(n, attr_row);
    sx_specializer inner = {.out = s->out,
                            .arena = s->arena,
                            .binding = {.n_args = n_in,
                                        .knows_batch = s->binding.knows_batch,
                                        .batch = s->binding.batch,
                                        .differentiated = s->binding.differentiated},
                            .limits = s->limits,
                            .folded_bytes = s->folded_bytes,
                            .nodes = s->nodes,
                            .depth = s->depth,
                            .gradients = s->gradients,
                            .pure = s->pure};
    int *args = sx_arena_array(s->arena, n_in + 1, int);
    int *results = sx_arena_array(s->arena, body->n_results + 1, int);
    *out = NULL;
    if (args == NULL || results == NULL) {
        return sx_specialize_no_memory();
    }
    if (body->n_args != n_in) {
        return sx_error(SX_INVALID_ARGUMENT, "it expects %d values, got %d", body->n_args, n_in);
    }
    sx_status status = SX_OK;
    for (int i = 0; i < n_in && status == SX_OK; i++) {
        const sx_trace_val *v = &s->vals[in[first + i]];
        sx_trace_val arg = {.type = v->type, .row = SX_NO_ROW, .output = i};
        if (n->op == &sx_op_map && i < n_whole) {
            if (v->type.rank < 1) {
                status =
                    sx_error(SX_INVALID_ARGUMENT, "value %d is a scalar, which has no axis", i);
                break;
            }
            arg.type = sx_type_make(v->type.dtype, v->type.rank - 1, v->type.dims + 1);
        } else if (i + first >= n_whole) {
            arg.known = v->known;
            arg.counts = v->counts;
        }
        const sx_type *declared = sx_graph_type(body, body->args[i].value);
        status = sx_type_may_be(&arg.type, declared)
                     ? sx_new_val(&inner, &arg, &args[i])
                     : sx_contradicts("argument", i, &arg.type, declared);
    }
    if (status == SX_OK) {
        status = sx_walk_graph(&inner, body, args, "", results);
    }
    if (status == SX_OK) {
        /* a region of gradients is inlined; one in a gradient is looked at again where that is */
        const bool host = s->pure || (n->op->flags & SX_OP_FOR_GRADIENT) != 0;
        status = sx_emit_region(&inner, args, n_in, results, body->n_results, host, out);
    }
    s->folded_bytes = inner.folded_bytes;
    sx_free_trace(&inner);
    return status;
}

sx_status sx_make_regions_static(sx_specializer *s, const sx_node *n, void *attrs, const int *in,
                                 bool *out_static)
{
    const bool is_if = n->op == &sx_op_if, is_while = n->op == &sx_op_while;
    int whole = 0; /* index of the first operand whose known value is valid in the region */
    *out_static = true;
    for (int i = 0; i < n->n_inputs && *out_static; i++) {
        *out_static = sx_is_device_type(&s->vals[in[i]].type);
    }
    if (is_while) {
        const sx_while_attrs *a = n->attrs;
        const sx_node *test = sx_graph_maker(a->condition, a->condition->results[0].value);
        ((sx_while_attrs *)attrs)->trips =
            a->trips > 0 ? a->trips : count_iterations(s, n, test, in);
        whole = n->n_outputs;
    } else if (n->op == &sx_op_map) {
        const sx_map_attrs *a = n->attrs;
        if (a->mapped < 1 || a->mapped > n->n_inputs) {
            return sx_error(SX_INVALID_ARGUMENT, "%lld of %d operands are mapped",
                            (long long)a->mapped, n->n_inputs);
        }
        whole = (int)a->mapped;
    } else if ((n->op->flags & SX_OP_FOR_GRADIENT) != 0) {
        whole = n->n_outputs; /* the region gets their gradients */
    }
    for (int row = 0; row < n->op->n_attrs && *out_static; row++) {
        sx_graph *made = NULL;
        if (n->op->attrs[row].kind != SX_ATTR_BODY) {
            continue;
        }
        SX_TRY(static_region(s, n, row, in, is_if ? 1 : 0, n->n_inputs - is_if, whole, &made),
               "region %s", n->op->attrs[row].name);
        *out_static = made != NULL;
        memcpy((char *)attrs + n->op->attrs[row].offset, &made, sizeof(made));
    }
    return SX_OK;
}
