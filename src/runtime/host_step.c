/* See host_step.h. */
#include "runtime/host_step.h"

#include "backends/cpu/typed/typed.h"
#include "base/memory.h"
#include "graph/attr_operands.h"
#include "graph/builder.h"

sx_status sx_host_step_run(const sx_step *step, int64_t batch, const sx_tensor *in, sx_tensor *out,
                           const sx_host_context *context)
{
    const sx_node *n = step->node;
    sx_arena *arena = context->arena;
    sx_type *types = sx_arena_array(arena, n->n_inputs + SX_MAX_OUTPUTS, sx_type);
    void *attrs = sx_arena_memdup(arena, n->attrs, n->op->attrs_bytes);
    if (types == NULL || attrs == NULL) {
        return sx_budget_error(arena->budget);
    }
    for (int i = 0; i < n->n_inputs; i++) {
        types[i] = in[i].type;
    }
    sx_attrs_put_batch(n->op, attrs, batch); /* which may be 0 */
    for (int i = 0; i < n->n_attr_operands; i++) {
        const sx_tensor *known = &in[n->n_inputs + i];
        bool resolved = false;
        SX_TRY(sx_attr_from_operand(n->op, n->attr_operands[i].row, attrs, types, n->n_inputs,
                                    &(sx_known_operand){.value = known, .type = &known->type},
                                    &resolved));
    }
    int n_out = n->n_outputs;
    sx_type *out_types = types + n->n_inputs;
    const sx_typed_kernel *typed = sx_typed_find(n->op, attrs, in);
    sx_typed_call call = {
        .attrs = attrs, .in = in, .out = out, .n_in = n->n_inputs, .context = context};
    if (n->op->host_types != NULL && typed != NULL) {
        SX_TRY(sx_typed_types(typed, n->op, &call, out_types, n_out));
    } else if (n->op->host_types != NULL) {
        SX_TRY(sx_host_types(n->op, attrs, in, n->n_inputs, out_types, n_out, context));
    } else {
        SX_TRY(sx_infer_types(n->op, attrs, types, n->n_inputs, out_types, &n_out));
    }
    for (int i = 0; i < n->n_outputs; i++) {
        const int64_t bytes = sx_host_bytes(&out_types[i]);
        if (out[i].data != NULL && !sx_type_equal(&out[i].type, &out_types[i])) {
            char has[SX_TYPE_TEXT], is[SX_TYPE_TEXT];
            return sx_error(SX_INTERNAL, "output %d is %s, but there is room for %s", i,
                            sx_type_format(&out_types[i], is, sizeof(is)),
                            sx_type_format(&out[i].type, has, sizeof(has)));
        }
        out[i].type = out_types[i];
        if (out[i].data == NULL) {
            out[i].data = bytes < 0 ? NULL : sx_arena_alloc(arena, (size_t)bytes + 1, 1);
        }
        if (out[i].data == NULL) {
            return sx_budget_error(arena->budget);
        }
    }
    if (typed != NULL) {
        return typed->run(&call);
    }
    const int64_t bytes = sx_host_scratch_bytes(n->op, types, n->n_inputs, out_types, n->n_outputs);
    void *scratch = bytes < 0 ? NULL : sx_arena_alloc(arena, (size_t)bytes, 1);
    if (scratch == NULL) {
        return sx_budget_error(arena->budget);
    }
    return sx_host_run_within(n->op, attrs, in, n->n_inputs, out, n->n_outputs, scratch, context);
}

sx_status sx_host_step_check(const sx_step *step, const sx_tensor *in,
                             const sx_host_context *context, size_t *out_bytes)
{
    return sx_host_check(step->node->op, step->node->attrs, in, step->node->n_inputs, context,
                         out_bytes);
}

sx_status sx_host_step_run_checked(const sx_step *step, int64_t batch, const sx_tensor *in,
                                   sx_tensor *out, const sx_host_context *context)
{
    size_t bytes = 0;
    sx_budget *budget = context->arena->budget;
    SX_TRY(sx_host_step_check(step, in, context, &bytes));
    if (!sx_budget_charge(budget, bytes)) {
        return sx_no_memory("to run %s, which takes %zu bytes", step->node->op->name, bytes);
    }
    sx_status status = sx_host_step_run(step, batch, in, out, context);
    sx_budget_release(budget, bytes);
    return status;
}
