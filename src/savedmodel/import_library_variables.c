/* Imports the nodes of variables, asserts and prints: what has an order. */
#include "savedmodel/import_library_ops.h"

#include <string.h>

#include "base/checked.h"

/* ---- Variables ---- */

static sx_status import_handle(sx_tf_op_node *x)
{
    const char *key = NULL;
    sx_type type;
    SX_TRY(sx_import_variable(x->im->model, x->n->node, &key, &type));
    if (sx_library_find_variable(x->im->library, key) == NULL) {
        SX_TRY(sx_library_add_variable(x->im->library,
                                       &(sx_variable_spec){.name = key, .type = type}));
    }
    const sx_value y =
        sx_build(x->b, &sx_op_variable_handle, &(sx_variable_handle_attrs){key}, NULL, 0);
    x->n->out[0] = (sx_tf_thing){.kind = SX_TF_HANDLE, .value = y, .variable = type};
    return SX_OK;
}

static sx_status require_handle(const sx_tf_op_node *x, const sx_tf_thing **out)
{
    *out = x->n->n_in > 0 ? &x->n->in[0] : NULL;
    return *out != NULL && ((*out)->kind == SX_TF_HANDLE || (*out)->kind == SX_TF_READ)
               ? SX_OK
               : sx_tf_unsupported("its resource is not a variable of the graph");
}

sx_status sx_tf_read_handle(const sx_tf_op_node *x, const sx_tf_thing *handle, sx_value *out)
{
    if (handle->kind == SX_TF_READ) {
        *out = handle->value;
        return SX_OK;
    }
    *out = sx_build_node(x->b, &(sx_node_spec){.op = &sx_op_read_variable,
                                               .inputs = &handle->value,
                                               .n_inputs = 1,
                                               .types = &handle->variable,
                                               .n_types = 1,
                                               .device = "",
                                               .file = ""});
    return SX_OK;
}

static sx_status import_read(sx_tf_op_node *x)
{
    const sx_tf_thing *handle = NULL;
    sx_value y = SX_NO_VALUE;
    SX_TRY(require_handle(x, &handle));
    SX_TRY(sx_tf_read_handle(x, handle, &y));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* AssignVariableOp, AssignAddVariableOp, AssignSubVariableOp */
static sx_status import_assign(sx_tf_op_node *x)
{
    const sx_tf_thing *handle = NULL;
    sx_value value = SX_NO_VALUE, old = SX_NO_VALUE;
    const char *op = x->n->node->op;
    SX_TRY(require_handle(x, &handle));
    SX_TRY(sx_tf_operand(x, 1, &value));
    if (handle->kind == SX_TF_READ) {
        return sx_tf_unsupported("it assigns within a branch or a loop that was to only read");
    }
    if (strcmp(op, "AssignVariableOp") != 0) {
        SX_TRY(sx_tf_read_handle(x, handle, &old));
        const bool adds = strcmp(op, "AssignAddVariableOp") == 0;
        const sx_value both[] = {old, value};
        SX_TRY(sx_tf_build(x, adds ? &sx_op_add : &sx_op_sub, NULL, &value, 2, both));
    }
    (void)sx_build_node(x->b, &(sx_node_spec){.op = &sx_op_assign_variable,
                                              .inputs = (sx_value[]){handle->value, value},
                                              .n_inputs = 2,
                                              .types = &handle->variable,
                                              .n_types = 1,
                                              .device = "",
                                              .file = ""});
    return SX_OK;
}

/* Assert(condition, data...) */
static sx_status import_assert(sx_tf_op_node *x)
{
    sx_value *in = sx_arena_array(&x->im->arena, x->n->n_in + 1, sx_value), y = SX_NO_VALUE;
    if (in == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < x->n->n_in; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    return sx_tf_build(x, &sx_op_assert, NULL, &y, x->n->n_in, in);
}

/* Print(input, data...), which returns its input; PrintV2(text), which returns nothing. */
static sx_status import_print(sx_tf_op_node *x)
{
    const bool text = strcmp(x->n->node->op, "PrintV2") == 0;
    const Tensorflow__AttrValue *message = sx_tf_node_attr(x->n->node, "message");
    sx_value *in = sx_arena_array(&x->im->arena, x->n->n_in + 1, sx_value), y = SX_NO_VALUE;
    sx_print_attrs attrs = {.elements = SX_MAX(sx_tf_read_int(&x->tf.head, "summarize", 3), -1)};
    if (in == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < x->n->n_in; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    if (message != NULL && message->value_case == TENSORFLOW__ATTR_VALUE__VALUE_S) {
        attrs.message = sx_arena_printf(&x->im->arena, "%.*s", (int)SX_MIN(message->s.len, 1000),
                                        (const char *)message->s.data);
    }
    if (text) {
        in[x->n->n_in] = in[0]; /* the text is what is shown */
        return sx_tf_build(x, &sx_op_print, &attrs, &y, 2, in);
    }
    SX_TRY(sx_tf_build(x, &sx_op_print, &attrs, &y, x->n->n_in, in));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* ---- The table ---- */

const sx_tf_op_row sx_tf_variable_rows[] = {
    {"VarHandleOp", import_handle, NULL},
    {"ReadVariableOp", import_read, NULL},
    {"AssignVariableOp", import_assign, NULL},
    {"AssignAddVariableOp", import_assign, NULL},
    {"AssignSubVariableOp", import_assign, NULL},
    {"Assert", import_assert, NULL},
    {"Print", import_print, NULL},
    {"PrintV2", import_print, NULL},
    {NULL, NULL, NULL},
};
