/* Imports an operator of ours that TensorFlow only has as several nodes: the last of them has an
 * attribute, "_sextant_preprocess", that is a row of the operator's `from_tf` and says which
 * operator it is. The nodes before it, which other runtimes run, are not imported; the operands are
 * what is fed to them. */
#include "base/memory.h"
#include "graph/op_def.h"
#include "savedmodel/import_library_internal.h"

const struct sx_op_def *sx_tf_composed_op(const Tensorflow__NodeDef *node,
                                          const sx_tf_form **out_form)
{
    static const char prefix[] = "_sextant_";
    for (size_t i = 0; i < node->n_attr; i++) {
        const char *name = node->attr[i]->key;
        const sx_op_def *op =
            strncmp(name, prefix, sizeof(prefix) - 1) == 0 ? sx_op_find_tf(name, out_form) : NULL;
        if (op != NULL) {
            return op;
        }
    }
    return NULL;
}

/* The values that lead to a node, of those that are there already: inputs of the signature, or
 * arguments of the function. in[most]; *out_n may exceed it. */
static sx_status find_operands(const sx_tf_body *body, int node, sx_value *in, int most, int *out_n)
{
    int *stack = sx_alloc(body->n_nodes + 1, sizeof(*stack)), depth = 0;
    bool *seen = sx_alloc(body->n_nodes + 1, sizeof(*seen));
    *out_n = 0;
    if (stack == NULL || seen == NULL) {
        sx_free(stack);
        sx_free(seen);
        return sx_import_memory();
    }
    stack[depth++] = node;
    seen[node] = true;
    while (depth > 0) {
        const Tensorflow__NodeDef *at = body->nodes[stack[--depth]];
        for (size_t i = 0; i < at->n_input; i++) {
            sx_tf_ref ref;
            const bool parsed = sx_tf_ref_parse(at->input[i], &ref) && !ref.control;
            const int arg = parsed ? sx_tf_body_find_arg(body, &ref) : -1;
            const int from = parsed && arg < 0 ? sx_tf_body_find_node(body, &ref) : -1;
            sx_tf_thing one;
            int n_results;
            const sx_tf_thing *fed = arg >= 0    ? &body->args[arg]
                                     : from >= 0 ? sx_tf_body_results(body, from, &one, &n_results)
                                                 : NULL;
            if (fed != NULL && fed->kind == SX_TF_VALUE && fed->known == NULL) {
                bool known = false;
                for (int k = 0; k < *out_n && k < most; k++) {
                    known = known || in[k].id == fed->value.id;
                }
                if (!known && (*out_n)++ < most) {
                    in[*out_n - 1] = fed->value;
                }
            } else if (fed == NULL && from >= 0 && !seen[from]) {
                seen[from] = true;
                stack[depth++] = from;
            }
        }
    }
    sx_free(stack);
    sx_free(seen);
    return SX_OK;
}

sx_status sx_tf_import_composed(sx_library_importer *im, sx_tf_body *body, int node,
                                const sx_op_def *op, const sx_tf_form *form, sx_tf_import_node *n)
{
    enum { MOST_OPERANDS = 8 };
    sx_value in[MOST_OPERANDS];
    sx_type in_types[MOST_OPERANDS], types[SX_MAX_OUTPUTS] = {{.rank = 0}};
    int n_in = 0, n_types = op->n_out;
    bool known_ranks = true;
    sx_import_reader reader = sx_import_reader_of(n->node, &im->arena, body->b);
    void *attrs = sx_arena_alloc(&im->arena, op->attrs_bytes + 1, 1);
    if (attrs == NULL) {
        return sx_import_memory();
    }
    SX_TRY(form->attrs(&reader.head, attrs));
    SX_TRY(find_operands(body, node, in, MOST_OPERANDS, &n_in));
    if (n_in != op->n_in || n_in > MOST_OPERANDS) {
        return sx_error(SX_UNIMPLEMENTED, "%d inputs lead to it, but %s has %d", n_in, op->name,
                        op->n_in);
    }
    for (int i = 0; i < n_in; i++) {
        in_types[i] = sx_type_of_value(body->b, in[i]);
        known_ranks = known_ranks && in_types[i].rank != SX_UNKNOWN_RANK;
    }
    if (!known_ranks) { /* the types of the outputs depend on them */
        return sx_error(SX_UNIMPLEMENTED, "the rank of an input is unknown");
    }
    SX_TRY(sx_infer_types(op, attrs, in_types, n_in, types, &n_types));
    const sx_value first = sx_build_node(body->b, &(sx_node_spec){.op = op,
                                                                  .attrs = attrs,
                                                                  .inputs = in,
                                                                  .n_inputs = n_in,
                                                                  .types = types,
                                                                  .n_types = n_types,
                                                                  .device = "",
                                                                  .file = ""});
    for (int i = 0; i < n_types && i < n->n_out; i++) {
        n->out[i] = (sx_tf_thing){.kind = SX_TF_VALUE, .value = sx_output_of(first, i)};
    }
    return SX_OK;
}
