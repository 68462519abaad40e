/* A node of ours by its operator's `to_tf`, attributes that are operands included
 * (export_body_internal.h). */
#include <string.h>

#include "savedmodel/export_body_internal.h"

/* A writer in front of another. `to_tf` of a node some of whose attributes are operands writes
 * constants in their place; these are kept back until a node takes them. */
typedef struct operand_writer {
    sx_tf_writer base;
    sx_tf_writer *to;
    const sx_export_body *s;
    const sx_node *node;
    const sx_tf_form *form;
    struct kept {
        const char *name;
        sx_tensor value;
        sx_tf_value written; /* node -1: not yet */
    } * kept;
    int n_kept, n_replaced;
    bool failed; /* the other writer has the error */
} operand_writer;

enum { MOST_KEPT = 32, FIRST_KEPT = -2 };

static sx_tf_value keep_constant(sx_tf_writer *w, const char *name, const sx_tensor *value)
{
    operand_writer *o = (operand_writer *)w;
    sx_arena *arena = &o->s->e->arena;
    const int64_t bytes = sx_type_bytes(&value->type);
    if (o->n_kept == MOST_KEPT || bytes < 0) {
        return sx_tf_const(o->to, name, value);
    }
    struct kept *k = &o->kept[o->n_kept];
    *k = (struct kept){.name = name != NULL ? sx_arena_strdup(arena, name) : NULL,
                       .value = {value->type, sx_arena_memdup(arena, value->data, (size_t)bytes)},
                       .written = {-1, 0}};
    if ((name != NULL && k->name == NULL) || k->value.data == NULL) {
        sx_tf_fail(o->to, sx_export_no_memory());
    }
    return (sx_tf_value){FIRST_KEPT - o->n_kept++, 0};
}

/* The operand that is input `k` of `n` of the form's node, or NULL. */
static const sx_attr_operand *operand_at(const operand_writer *o, int k, int n)
{
    for (int i = 0; i < SX_TF_FORM_OPERANDS && o->form->operands[i].attr != NULL; i++) {
        const int input = o->form->operands[i].input;
        if ((input < 0 ? n - 1 : input) != k) {
            continue;
        }
        for (int a = 0; a < o->node->n_attr_operands; a++) {
            const sx_attr_operand *operand = &o->node->attr_operands[a];
            if (strcmp(o->node->op->attrs[operand->row].name, o->form->operands[i].attr) == 0) {
                return operand;
            }
        }
    }
    return NULL;
}

static sx_tf_value write_with_operands(sx_tf_writer *w, const char *op, const char *name,
                                       sx_tf_values in, sx_tf_attr_list attrs)
{
    operand_writer *o = (operand_writer *)w;
    sx_tf_value *items = sx_arena_array(&o->s->e->arena, in.count + 1, sx_tf_value);
    if (items == NULL) {
        o->failed = true;
        sx_tf_fail(o->to, sx_export_no_memory());
        return (sx_tf_value){-1, 0};
    }
    const bool is_form = strcmp(op, o->form->op) == 0;
    for (int i = 0; i < in.count; i++) {
        struct kept *k =
            in.items[i].node <= FIRST_KEPT ? &o->kept[FIRST_KEPT - in.items[i].node] : NULL;
        const sx_attr_operand *operand = is_form ? operand_at(o, i, in.count) : NULL;
        if (operand != NULL) {
            const sx_dtype dtype = sx_graph_type(o->s->graph, operand->value)->dtype;
            items[i] = sx_tf_cast(o->to, o->s->values[operand->value.id], dtype,
                                  k != NULL ? k->value.type.dtype : dtype);
            o->n_replaced++;
        } else if (k != NULL) {
            if (k->written.node < 0) {
                k->written = sx_tf_const(o->to, k->name, &k->value);
            }
            items[i] = k->written;
        } else {
            items[i] = in.items[i];
        }
    }
    return sx_tf_add(o->to, op, name, (sx_tf_values){items, in.count}, attrs);
}

static sx_tf_writer *begin_function(sx_tf_writer *w, const char *name, int n, const int *types)
{
    return sx_tf_function_begin(((operand_writer *)w)->to, name, n, types);
}

static const char *end_function(sx_tf_writer *w, sx_tf_values results, const int *types)
{
    return sx_tf_function_end(((operand_writer *)w)->to, results, types);
}

static void pass_control(sx_tf_writer *w, sx_tf_value node, sx_tf_values after)
{
    sx_tf_control(((operand_writer *)w)->to, node, after);
}

static void push_scope(sx_tf_writer *w, const char *name)
{
    sx_tf_scope_push(((operand_writer *)w)->to, name);
}

static void pop_scope(sx_tf_writer *w)
{
    sx_tf_scope_pop(((operand_writer *)w)->to);
}

static void pass_failure(sx_tf_writer *w, sx_status status)
{
    sx_tf_fail(((operand_writer *)w)->to, status);
}

static sx_tf_value pass_vocabulary(sx_tf_writer *w, const sx_tensor *words, int64_t first_id)
{
    return sx_tf_vocabulary(((operand_writer *)w)->to, words, first_id);
}

static const sx_tf_writer_class operand_writer_class = {.node = write_with_operands,
                                                        .constant = keep_constant,
                                                        .function_begin = begin_function,
                                                        .function_end = end_function,
                                                        .control = pass_control,
                                                        .scope_push = push_scope,
                                                        .scope_pop = pop_scope,
                                                        .fail = pass_failure,
                                                        .vocabulary = pass_vocabulary};

/* The form whose inputs are all attributes of the node that are operands; NULL if there is none. */
const sx_tf_form *sx_export_form(const sx_node *node)
{
    for (const sx_tf_form *form = node->op->from_tf; form != NULL && form->op != NULL; form++) {
        int found = 0;
        for (int i = 0; i < SX_TF_FORM_OPERANDS && form->operands[i].attr != NULL; i++) {
            for (int a = 0; a < node->n_attr_operands; a++) {
                found += strcmp(node->op->attrs[node->attr_operands[a].row].name,
                                form->operands[i].attr) == 0;
            }
        }
        if (found == node->n_attr_operands) {
            return form;
        }
    }
    return NULL;
}

/* By the operator's `to_tf`. */
sx_status sx_export_operator(sx_export_body *s, const sx_node *node)
{
    sx_arena *arena = &s->e->arena;
    const int n_in = node->n_inputs, n_out = node->n_outputs;
    sx_tf_value *in = sx_arena_array(arena, n_in + 1, sx_tf_value);
    sx_type *in_types = sx_arena_array(arena, n_in + 1, sx_type);
    sx_type *out_types = sx_arena_array(arena, n_out + 1, sx_type);
    if (in == NULL || in_types == NULL || out_types == NULL) {
        return sx_export_no_memory();
    }
    for (int i = 0; i < n_in; i++) {
        in[i] = s->values[node->inputs[i].id];
        in_types[i] = *sx_graph_type(s->graph, node->inputs[i]);
    }
    for (int i = 0; i < n_out; i++) {
        out_types[i] = *sx_graph_type(s->graph, sx_node_output(node, i));
    }
    const sx_tf_op op = {.attrs = node->attrs,
                         .name = node->name,
                         .in = in,
                         .out = &s->values[node->first_output.id],
                         .in_types = in_types,
                         .out_types = out_types,
                         .n_in = n_in,
                         .n_out = n_out};
    if (node->n_attr_operands == 0) {
        node->op->to_tf(s->w, &op);
        return SX_OK;
    }
    struct kept kept[MOST_KEPT];
    operand_writer o = {.base = {&operand_writer_class},
                        .to = s->w,
                        .s = s,
                        .node = node,
                        .form = sx_export_form(node),
                        .kept = kept};
    for (int i = 0; i < n_out; i++) { /* what the attribute would say of the batch is computed */
        out_types[i] = sx_export_any_shape(&out_types[i]);
    }
    node->op->to_tf(&o.base, &op);
    for (int i = 0; i < n_out; i++) { /* an output that is a constant */
        sx_tf_value *y = &s->values[node->first_output.id + (uint32_t)i];
        if (y->node <= FIRST_KEPT) {
            *y = sx_tf_const(s->w, NULL, &kept[FIRST_KEPT - y->node].value);
        }
    }
    return o.failed || o.n_replaced == node->n_attr_operands
               ? SX_OK
               : sx_error(SX_UNIMPLEMENTED,
                          "%s \"%.100s\" with these computed attributes cannot "
                          "be exported to TensorFlow",
                          node->op->name, node->name);
}
