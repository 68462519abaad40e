/* See import_common.h. */
#include "savedmodel/import_common.h"

#include <string.h>

#include "base/buffer.h"
#include "base/checked.h"
#include "base/memory.h"
#include "graph/op_def.h"
#include "proto/tensor_value.h"
#include "savedmodel/tf_graph.h"

sx_status sx_import_memory(void)
{
    return sx_no_memory("importing a model, or over its memory limit");
}

/* ---- Nodes ---- */

static bool read_strings(const sx_import_reader *r, const char *name,
                         const Tensorflow__AttrValue__ListValue *list, sx_tf_attr *out)
{
    sx_buf joined;
    sx_buf_init(&joined, 1 << 16);
    for (size_t i = 0; i < list->n_s; i++) {
        sx_buf_puts(&joined, i > 0 ? "," : "");
        sx_buf_append(&joined, list->s[i].data, list->s[i].len);
    }
    const char *text = sx_arena_strdup(r->arena, sx_buf_text(&joined));
    *out =
        (sx_tf_attr){.name = name, .kind = SX_TF_ATTR_STRINGS, .count = (int)list->n_s, .s = text};
    const bool whole = joined.failed == 0 && text != NULL;
    sx_buf_deinit(&joined);
    return whole;
}

static bool read_attr(const sx_tf_node *n, const char *name, sx_tf_attr *out)
{
    const sx_import_reader *r = (const sx_import_reader *)n;
    const Tensorflow__AttrValue *a = sx_tf_node_attr(r->node, name);
    switch (a == NULL ? TENSORFLOW__ATTR_VALUE__VALUE__NOT_SET : a->value_case) {
    case TENSORFLOW__ATTR_VALUE__VALUE_B:
        *out = sx_tf_attr_bool(name, a->b != 0);
        return true;
    case TENSORFLOW__ATTR_VALUE__VALUE_F:
        *out = sx_tf_attr_float(name, a->f);
        return true;
    case TENSORFLOW__ATTR_VALUE__VALUE_I:
        *out = sx_tf_attr_int(name, a->i);
        return true;
    case TENSORFLOW__ATTR_VALUE__VALUE_TYPE:
        *out = sx_tf_attr_type(name, (int)sx_tf_plain_dtype((int)a->type));
        return true;
    case TENSORFLOW__ATTR_VALUE__VALUE_S: {
        char *text = sx_arena_strndup(r->arena, (const char *)a->s.data, a->s.len);
        if (text == NULL) {
            sx_builder_fail(r->b, sx_import_memory());
        }
        *out = sx_tf_attr_string(name, text != NULL ? text : "");
        out->count = text != NULL ? (int)a->s.len : 0;
        return true;
    }
    case TENSORFLOW__ATTR_VALUE__VALUE_LIST:
        if (a->list == NULL) {
            return false;
        }
        if (a->list->n_f > 0) {
            *out = (sx_tf_attr){.name = name,
                                .kind = SX_TF_ATTR_FLOATS,
                                .count = (int)a->list->n_f,
                                .floats = a->list->f};
            return true;
        }
        if (a->list->n_s > 0) {
            return read_strings(r, name, a->list, out);
        }
        if (a->list->n_type > 0) {
            int *types = sx_arena_array(r->arena, a->list->n_type, int);
            for (size_t i = 0; types != NULL && i < a->list->n_type; i++) {
                types[i] = (int)sx_tf_plain_dtype((int)a->list->type[i]);
            }
            *out = sx_tf_attr_types(name, (int)a->list->n_type, types);
            return types != NULL;
        }
        if (a->list->n_shape > 0) {
            sx_type *shapes = sx_arena_array(r->arena, a->list->n_shape, sx_type);
            for (size_t i = 0; shapes != NULL && i < a->list->n_shape; i++) {
                if (!sx_tf_type(SX_F32, a->list->shape[i], &shapes[i])) {
                    shapes[i].rank = SX_UNKNOWN_RANK;
                }
            }
            *out = sx_tf_attr_shapes(name, (int)a->list->n_shape, shapes);
            return shapes != NULL;
        }
        *out = sx_tf_attr_ints(name, (int)a->list->n_i, a->list->i);
        return a->list->n_i > 0;
    default:
        return false;
    }
}

sx_import_reader sx_import_reader_of(const Tensorflow__NodeDef *node, sx_arena *arena,
                                     sx_builder *b)
{
    return (sx_import_reader){
        .head = {.attr = read_attr, .arena = arena}, .node = node, .arena = arena, .b = b};
}

bool sx_import_has_new_dtype(const Tensorflow__NodeDef *node, char text[SX_TF_DTYPE_TEXT])
{
    for (size_t i = 0; i < node->n_attr; i++) {
        const Tensorflow__AttrValue *a = node->attr[i]->value;
        const Tensorflow__AttrValue__ListValue *list =
            a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST ? a->list : NULL;
        if (a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_TYPE &&
            sx_tf_dtype_is_new((int)a->type)) {
            (void)sx_tf_dtype_text((int)a->type, text);
            return true;
        }
        for (size_t k = 0; list != NULL && k < list->n_type; k++) {
            if (sx_tf_dtype_is_new((int)list->type[k])) {
                (void)sx_tf_dtype_text((int)list->type[k], text);
                return true;
            }
        }
    }
    return false;
}

sx_status sx_import_ints(const sx_tensor *constant, int input, sx_ints *out)
{
    const sx_type *type = &constant->type;
    const int64_t count = sx_type_elems(type);
    if ((type->dtype != SX_I32 && type->dtype != SX_I64) || type->rank > 1 || count > SX_MAX_RANK) {
        return sx_error(SX_UNIMPLEMENTED, "input %d is not a list of at most %d integers", input,
                        SX_MAX_RANK);
    }
    *out = (sx_ints){.n = (int)count};
    for (int k = 0; k < out->n; k++) {
        out->v[k] = type->dtype == SX_I32 ? ((const int32_t *)constant->data)[k]
                                          : ((const int64_t *)constant->data)[k];
    }
    return SX_OK;
}

sx_status sx_import_const_value(const Tensorflow__NodeDef *node, sx_arena *arena, sx_tensor *out)
{
    const Tensorflow__AttrValue *value = sx_tf_node_attr(node, "value");
    if (value == NULL || value->value_case != TENSORFLOW__ATTR_VALUE__VALUE_TENSOR ||
        value->tensor == NULL) {
        return sx_error(SX_DATA_LOSS, "Const has no value");
    }
    const Tensorflow__AttrValue *dtype = sx_tf_node_attr(node, "dtype");
    if (dtype != NULL && dtype->value_case == TENSORFLOW__ATTR_VALUE__VALUE_TYPE &&
        dtype->type != value->tensor->dtype) {
        char declared[SX_TF_DTYPE_TEXT], has[SX_TF_DTYPE_TEXT];
        return sx_error(SX_DATA_LOSS, "attribute dtype is %s, the value is %s",
                        sx_tf_dtype_text((int)dtype->type, declared),
                        sx_tf_dtype_text((int)value->tensor->dtype, has));
    }
    return sx_tf_tensor_value(value->tensor, arena, out);
}

bool sx_import_variable_is_saved(const sx_saved_model *model, const Tensorflow__NodeDef *node)
{
    const char *key = sx_saved_model_variable_key(model, node->name);
    const sx_bundle *bundle = sx_saved_model_variables(model);
    return key != NULL && bundle != NULL && sx_bundle_find(bundle, key) != NULL;
}

const char *sx_import_kept_name(const sx_saved_model *model, const Tensorflow__NodeDef *node,
                                sx_arena *arena)
{
    const char *key = sx_import_variable_is_saved(model, node)
                          ? sx_saved_model_variable_key(model, node->name)
                          : sx_tf_table_name(node, arena);
    return key == NULL ? NULL : sx_arena_printf(arena, "variable \"%s\"", key);
}

sx_status sx_import_variable(const sx_saved_model *model, const Tensorflow__NodeDef *node,
                             const char **out_key, sx_type *out_type)
{
    const char *key = sx_saved_model_variable_key(model, node->name);
    const sx_bundle *bundle = sx_saved_model_variables(model);
    const sx_bundle_entry *e = key == NULL || bundle == NULL ? NULL : sx_bundle_find(bundle, key);
    if (e == NULL) {
        return sx_error(SX_DATA_LOSS, bundle == NULL
                                          ? "the model has no variables/variables.index, which "
                                            "lists the values of variables: copy its whole "
                                            "directory"
                                          : "the checkpoint has no value for this variable");
    }
    if (e->type.dtype == SX_DTYPE_NONE) {
        char text[SX_TF_DTYPE_TEXT];
        return sx_error(SX_UNIMPLEMENTED,
                        "the variable is %s in the checkpoint, or has more than %d dimensions, "
                        "which is not supported",
                        sx_tf_dtype_text(e->tf_dtype, text), SX_MAX_RANK);
    }
    *out_key = key;
    *out_type = e->type;
    return SX_OK;
}

/* ---- Functions ---- */

/* Output `index` of argument `arg` of an operator that parses Examples, whose arguments are lists
 * as long as its attributes say; -1 if it is no such operator, or has no such argument. */
static int parsed_output(const Tensorflow__NodeDef *node, sx_bytes arg, int index)
{
    static const char *const args[] = {"sparse_indices", "sparse_values", "sparse_shapes",
                                       "dense_values",   "ragged_values", "ragged_row_splits"};
    const char *const counts[] = {"sparse_types", "sparse_types",       "sparse_types",
                                  "Tdense",       "ragged_value_types", "ragged_value_types"};
    if (strncmp(node->op, "ParseExample", strlen("ParseExample")) != 0) {
        return -1;
    }
    for (size_t i = 0; i < SX_COUNT(args); i++) {
        if (sx_bytes_is(arg, args[i])) {
            return index;
        }
        const Tensorflow__AttrValue *a = sx_tf_node_attr(node, counts[i]);
        index += a != NULL && a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST && a->list != NULL
                     ? (int)SX_MIN(a->list->n_type, SX_MAX_OUTPUTS)
                     : 0;
    }
    return -1;
}

bool sx_import_is_call(const char *op)
{
    /* BatchFunction: a server's, which may run more rows at once */
    return strcmp(op, "PartitionedCall") == 0 || strcmp(op, "StatefulPartitionedCall") == 0 ||
           strcmp(op, "BatchFunction") == 0;
}

const char *sx_import_called(const Tensorflow__NodeDef *node, bool supported)
{
    const Tensorflow__AttrValue *f =
        sx_import_is_call(node->op) ? sx_tf_node_attr(node, "f") : NULL;
    if (f != NULL && f->value_case == TENSORFLOW__ATTR_VALUE__VALUE_FUNC && f->func != NULL) {
        return f->func->name;
    }
    return supported ? NULL : node->op;
}

/* Output `index` of argument `arg`, by the operator's definition; -1: it has no such argument. */
static int defined_output(const Tensorflow__OpDef *op, const Tensorflow__NodeDef *node,
                          sx_bytes arg, int index)
{
    for (size_t i = 0; i < op->n_output_arg; i++) {
        const Tensorflow__OpDef__ArgDef *a = op->output_arg[i];
        if (sx_bytes_is(arg, a->name)) {
            return index;
        }
        const bool is_list = a->type_list_attr[0] != '\0', is_many = a->number_attr[0] != '\0';
        const Tensorflow__AttrValue *count =
            is_list || is_many ? sx_tf_node_attr(node, is_list ? a->type_list_attr : a->number_attr)
                               : NULL;
        if (is_list && count != NULL && count->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST &&
            count->list != NULL) {
            index += (int)SX_MIN(count->list->n_type, SX_MAX_OUTPUTS);
        } else if (is_many && count != NULL &&
                   count->value_case == TENSORFLOW__ATTR_VALUE__VALUE_I) {
            index += (int)SX_MIN(SX_MAX(count->i, 0), SX_MAX_OUTPUTS);
        } else {
            index += !is_list && !is_many;
        }
    }
    return -1;
}

int sx_import_output_of(const Tensorflow__FunctionDef *function, const Tensorflow__OpDef *op,
                        const Tensorflow__NodeDef *node, const sx_tf_ref *ref)
{
    if (ref->arg == NULL) {
        return ref->output;
    }
    for (size_t i = 0; function != NULL && i < function->signature->n_output_arg; i++) {
        const char *name = function->signature->output_arg[i]->name;
        if (strlen(name) == ref->arg_bytes && memcmp(name, ref->arg, ref->arg_bytes) == 0) {
            return (int)i;
        }
    }
    if (function != NULL && strcmp(function->signature->name, node->op) == 0) {
        return -1; /* called by its name: it has these outputs only */
    }
    const sx_bytes arg = {ref->arg, ref->arg_bytes};
    if (op != NULL) {
        return defined_output(op, node, arg, ref->output);
    }
    const int parsed = parsed_output(node, arg, ref->output);
    return parsed >= 0 ? parsed : sx_tf_op_output(node->op, arg, ref->output);
}

sx_status sx_import_returned(const Tensorflow__FunctionDef *function, const char **out)
{
    const Tensorflow__OpDef *signature = function->signature;
    for (size_t i = 0; i < signature->n_output_arg; i++) {
        out[i] = NULL;
        for (size_t k = 0; k < function->n_ret && out[i] == NULL; k++) {
            const bool named = strcmp(function->ret[k]->key, signature->output_arg[i]->name) == 0;
            out[i] = named ? function->ret[k]->value : NULL;
        }
        if (out[i] == NULL) {
            return sx_error(SX_DATA_LOSS, "nothing is returned for output %zu, \"%.100s\"", i,
                            signature->output_arg[i]->name);
        }
    }
    return SX_OK;
}

int sx_import_find_arg(const Tensorflow__OpDef *signature, const sx_tf_ref *ref)
{
    for (size_t i = 0; signature != NULL && i < signature->n_input_arg; i++) {
        const char *name = signature->input_arg[i]->name;
        if (strlen(name) == ref->node_bytes && memcmp(name, ref->node, ref->node_bytes) == 0) {
            return (int)i;
        }
    }
    return -1;
}

/* ---- Nodes that cannot be imported ---- */

sx_status sx_import_refuse(sx_import_refusals *list, sx_arena *arena,
                           const Tensorflow__NodeDef *node, const char *function, const char *why)
{
    if (list->n < SX_IMPORT_MAX_REFUSALS) {
        const char *kept = sx_arena_strdup(arena, why);
        if (kept == NULL) {
            return sx_import_memory();
        }
        list->items[list->n].op = node->op;
        list->items[list->n].node = node->name;
        list->items[list->n].function = function;
        list->items[list->n].why = kept;
    }
    list->n++;
    return SX_OK;
}

sx_status sx_import_refusals_error(const sx_import_refusals *list)
{
    enum { MAX_SHOWN = 8 };     /* nodes of an operator */
    enum { MAX_REPEATED = 40 }; /* bytes of a reason that the one before had, too */
    const char *latest = "";
    bool told[SX_IMPORT_MAX_REFUSALS] = {false};
    const int kept = SX_MIN(list->n, SX_IMPORT_MAX_REFUSALS);
    int n_ops = 0;
    sx_buf text;
    sx_buf_init(&text, 1 << 16);
    for (int i = 0; i < kept; i++) {
        const char *op = list->items[i].op;
        int count = 0, shown = 0;
        if (told[i]) {
            continue;
        }
        for (int k = i; k < kept; k++) {
            const bool same = strcmp(list->items[k].op, op) == 0;
            told[k] = told[k] || same;
            count += same;
        }
        sx_buf_printf(&text, "%s%.100s (%d node%s: ", n_ops++ > 0 ? ", " : "", op, count,
                      count == 1 ? "" : "s");
        for (int k = i; k < kept && shown < MAX_SHOWN; k++) {
            if (strcmp(list->items[k].op, op) == 0) {
                const char *why = list->items[k].why, *function = list->items[k].function;
                sx_buf_printf(&text, "%s\"%.200s\"", shown++ > 0 ? ", " : "", list->items[k].node);
                if (function != NULL) {
                    sx_buf_printf(&text, " of function \"%.100s\"", function);
                }
                const bool again = strlen(why) > MAX_REPEATED && strcmp(why, latest) == 0;
                sx_buf_printf(&text, "%s%s", why[0] != '\0' ? ": " : "", again ? "likewise" : why);
                latest = why;
            }
        }
        sx_buf_puts(&text, count > shown ? ", ...)" : ")");
    }
    if (list->n > kept) {
        sx_buf_printf(&text, " and %d more nodes", list->n - kept);
    }
    sx_status status = sx_error(SX_UNIMPLEMENTED, "unsupported operator%s: %s",
                                n_ops == 1 ? "" : "s", sx_buf_text(&text));
    sx_buf_deinit(&text);
    return status;
}
