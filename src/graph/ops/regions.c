/* See regions.h. */
#include "graph/ops/regions.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

sx_status sx_require_region_args(const char *what, const sx_graph *body, const sx_type *types,
                                 int n)
{
    if (body == NULL) {
        return sx_error(SX_INVALID_ARGUMENT, "region %s is missing", what);
    }
    if (body->n_args != n) {
        return sx_error(SX_INVALID_ARGUMENT, "region %s has %d arguments, but %d values are passed",
                        what, body->n_args, n);
    }
    for (int i = 0; i < n; i++) {
        const sx_type *type = sx_graph_type(body, body->args[i].value);
        if (!sx_type_equal(type, &types[i])) {
            return sx_error(SX_INVALID_ARGUMENT, "region %s expects %s as argument %d, got %s",
                            what, SX_TEXT(type), i, SX_TEXT(&types[i]));
        }
    }
    return SX_OK;
}

void sx_region_copy(const sx_kernel_call *c, const sx_host_tensor *from, const sx_host_tensor *to)
{
    memcpy(to->data, from->data, (size_t)sx_interpret_bytes(c, &to->type));
}

sx_status sx_infer_first(sx_infer_context *c, int64_t results)
{
    const int64_t most = SX_MIN(c->n_inputs, SX_MAX_OUTPUTS);
    if (results < 1 || results > most) {
        return sx_error(SX_INVALID_ARGUMENT, "results is %lld, expected 1 to %lld for %d operands",
                        (long long)results, (long long)most, c->n_inputs);
    }
    c->n_outputs = (int)results;
    for (int i = 0; i < c->n_outputs; i++) {
        c->outputs[i] = c->inputs[i];
    }
    return SX_OK;
}

sx_status sx_host_first(const sx_kernel_call *c)
{
    for (int i = 0; i < c->n_out; i++) {
        sx_region_copy(c, &c->in[i], &c->out[i]);
    }
    return SX_OK;
}

sx_builder *sx_region_begin(sx_grad *g, const sx_type *types, int n, sx_value *out_args)
{
    sx_builder *region = NULL;
    sx_status status = sx_builder_create(&region);
    if (status != SX_OK) {
        sx_builder_fail(g->b, status);
        return NULL;
    }
    for (int i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof(name), "x%d", i);
        out_args[i] = sx_input(region, name, types[i]);
    }
    return region;
}

sx_graph *sx_region_end(sx_grad *g, sx_builder *region, const sx_value *results, int n)
{
    sx_graph *made = NULL;
    for (int i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof(name), "y%d", i);
        sx_output(region, name, results[i]);
    }
    sx_status status = sx_builder_finish(region, &made);
    sx_builder_destroy(region);
    if (status != SX_OK) {
        sx_builder_fail(g->b,
                        sx_status_annotate(status, __FILE__, __LINE__, "the gradient of a region"));
    }
    return made;
}

void sx_region_inline(sx_builder *b, const sx_graph *body, const sx_value *args, sx_value *results)
{
    sx_value *here = sx_arena_array(sx_builder_arena(b), body->n_values, sx_value);
    for (int i = 0; here != NULL && i < body->n_args; i++) {
        here[body->args[i].value.id] = args[i];
    }
    for (int k = 0; here != NULL && k < body->n_nodes && !sx_builder_failed(b); k++) {
        const sx_node *n = &body->nodes[k];
        sx_value *inputs = sx_arena_array(sx_builder_arena(b), n->n_inputs + 1, sx_value);
        if (n->op == &sx_op_parameter || inputs == NULL) {
            here = inputs != NULL ? here : NULL;
            continue;
        }
        for (int i = 0; i < n->n_inputs; i++) {
            inputs[i] = here[n->inputs[i].id];
        }
        sx_type types[SX_MAX_OUTPUTS];
        for (int i = 0; i < n->n_outputs; i++) {
            types[i] = *sx_graph_type(body, sx_node_output(n, i));
        }
        sx_value first = sx_build_node(b, &(sx_node_spec){.op = n->op,
                                                          .attrs = n->attrs,
                                                          .inputs = inputs,
                                                          .n_inputs = n->n_inputs,
                                                          .types = types,
                                                          .n_types = n->n_outputs,
                                                          .device = n->device,
                                                          .file = n->file,
                                                          .line = n->line});
        for (int i = 0; i < n->n_outputs; i++) {
            here[sx_node_output(n, i).id] = sx_output_of(first, i);
        }
    }
    if (here == NULL) {
        sx_builder_fail(b, sx_no_memory("for the gradient of a region"));
    }
    for (int i = 0; i < body->n_results; i++) {
        results[i] = here != NULL ? here[body->results[i].value.id] : SX_NO_VALUE;
    }
}

sx_value sx_region_zeros(sx_builder *b, const sx_type *type)
{
    sx_shape_attrs attrs = {.shape = sx_ints_of(type->rank, type->dims)};
    return sx_build_op(b, broadcast_to, &attrs, sx_scalar(b, type->dtype, 0));
}

sx_status sx_host_row_index(const sx_kernel_call *c, int input, int64_t *out)
{
    const int64_t i = c->in[input].i[0], rows = c->in[0].type.dims[0];
    if (((const sx_row_attrs *)c->attrs)->checked && (i < 0 || i >= rows)) {
        return sx_error(SX_INVALID_ARGUMENT, "element %lld of a list with %lld elements",
                        (long long)i, (long long)rows);
    }
    *out = SX_MIN(SX_MAX(i, 0), rows - 1);
    return SX_OK;
}

/* ---- TensorFlow ---- */

sx_tf_value sx_tf_row_count(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_type *x = &op->in_types[0];
    if (x->rank > 0 && x->dims[0] > 0) {
        return sx_tf_const_i32(w, "rows", (int32_t)x->dims[0]);
    }
    const sx_tf_value zero = sx_tf_const_i32(w, "zero", 0);
    const sx_tf_value shape = sx_tf_add(w, "Shape", NULL, sx_tf_in(op->in[0]),
                                        sx_tf_attrs(sx_tf_attr_type("T", (int)x->dtype)));
    return sx_tf_add(w, "GatherV2", "rows", sx_tf_in(shape, zero, zero),
                     sx_tf_attrs(sx_tf_attr_type("Tparams", SX_I32),
                                 sx_tf_attr_type("Tindices", SX_I32),
                                 sx_tf_attr_type("Taxis", SX_I32)));
}

sx_tf_value sx_tf_row_index(sx_tf_writer *w, const sx_tf_op *op, int input)
{
    const sx_tf_attr_list t = sx_tf_attrs(sx_tf_attr_type("T", SX_I32));
    if (((const sx_row_attrs *)op->attrs)->checked) { /* by one that fails outside */
        const sx_tf_value zero = sx_tf_const_i32(w, "start", 0);
        const sx_tf_value all = sx_tf_add(
            w, "Range", NULL,
            sx_tf_in(zero, sx_tf_row_count(w, op), sx_tf_const_i32(w, "delta", 1)), SX_TF_NO_ATTRS);
        return sx_tf_add(w, "GatherV2", NULL, sx_tf_in(all, op->in[input], zero),
                         sx_tf_attrs(sx_tf_attr_type("Tparams", SX_I32),
                                     sx_tf_attr_type("Tindices", SX_I32),
                                     sx_tf_attr_type("Taxis", SX_I32)));
    }
    const sx_tf_value last = sx_tf_add(
        w, "Sub", "last", sx_tf_in(sx_tf_row_count(w, op), sx_tf_const_i32(w, "one", 1)), t);
    const sx_tf_value from =
        sx_tf_add(w, "Maximum", NULL, sx_tf_in(op->in[input], sx_tf_const_i32(w, "first", 0)), t);
    return sx_tf_add(w, "Minimum", NULL, sx_tf_in(from, last), t);
}
