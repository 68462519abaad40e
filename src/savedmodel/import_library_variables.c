/* Imports the nodes of variables, asserts and prints: what has an order. */
#include "savedmodel/import_library_ops.h"

#include <stdlib.h>
#include <string.h>

#include <sextant/complex.h>

#include "base/checked.h"

/* ---- Variables ---- */

/* "4 6 0,2:-": the whole variable's shape, then start and length of each axis; '-' = all of it.
 * False: the text is empty, or not that. */
static bool read_part(const char *text, const sx_type *whole, sx_slice_attrs *out)
{
    char *end = NULL;
    for (int d = 0; text != NULL && d < whole->rank; d++) {
        if (strtoll(text, &end, 10) != whole->dims[d] || end == text || *end != ' ') {
            return false;
        }
        text = end + 1;
    }
    *out = (sx_slice_attrs){.begin = {.n = whole->rank}, .size = {.n = whole->rank}};
    for (int d = 0; text != NULL && d < whole->rank; d++) {
        out->size.v[d] = whole->dims[d];
        if (*text == '-') {
            end = (char *)(uintptr_t)text + 1;
        } else {
            out->begin.v[d] = strtoll(text, &end, 10);
            if (end == text || *end != ',') {
                return false;
            }
            text = end + 1;
            out->size.v[d] = strtoll(text, &end, 10);
            if (end == text) {
                return false;
            }
        }
        if (out->begin.v[d] < 0 || out->size.v[d] < 0 ||
            out->begin.v[d] > whole->dims[d] - out->size.v[d] ||
            *end != (d + 1 < whole->rank ? ':' : '\0')) {
            return false;
        }
        text = end + 1;
    }
    return text != NULL && whole->rank > 0;
}

/* ---- Variables that a table keeps ----
 *
 * A device has variables of one shape, of numbers, that have a value when the model is loaded. What
 * is none of these is the state of the loaded model (graph/ops/kept_variable.h). */

/* Whether the variable's node declares all of its dimensions. */
static bool declares_shape(const Tensorflow__NodeDef *node)
{
    const Tensorflow__AttrValue *shape = sx_tf_node_attr(node, "shape");
    bool known = shape != NULL && shape->value_case == TENSORFLOW__ATTR_VALUE__VALUE_SHAPE &&
                 shape->shape != NULL && !shape->shape->unknown_rank;
    for (size_t d = 0; known && d < shape->shape->n_dim; d++) {
        known = shape->shape->dim[d]->size >= 0;
    }
    return known;
}

static sx_status import_kept(sx_tf_op_node *x)
{
    sx_arena *arena = &x->im->arena;
    const Tensorflow__AttrValue *shape = sx_tf_node_attr(x->n->node, "shape");
    const sx_dtype dtype = sx_tf_read_dtype(&x->tf.head, "dtype", SX_DTYPE_NONE);
    const bool ref = strcmp(x->n->node->op, "VarHandleOp") != 0;
    sx_kept_variable_attrs *variable = sx_arena_new(arena, sx_kept_variable_attrs);
    sx_tf_table *table = sx_arena_new(arena, sx_tf_table);
    if (variable == NULL || table == NULL) {
        return sx_import_memory();
    }
    if (sx_carrier_of(dtype) == SX_CARRIER_NONE) {
        return sx_tf_unsupported("variables of %s that are assigned another shape, or have no "
                                 "value in the checkpoint, are not supported",
                                 sx_dtype_name(dtype));
    }
    sx_type type;
    const bool ranked = shape != NULL && shape->value_case == TENSORFLOW__ATTR_VALUE__VALUE_SHAPE &&
                        sx_tf_type(dtype, shape->shape, &type);
    type = ranked ? type : sx_tf_unknown_shape(dtype);
    variable->base = (sx_table_attrs){.table = sx_import_kept_name(x->im->model, x->n->node, arena),
                                      .kind = SX_TABLE_MUTABLE,
                                      .keys = SX_I64,
                                      .values = SX_STRING};
    variable->dtype = dtype;
    variable->any_rank = !ranked;
    variable->dims.n = SX_MAX(type.rank, 0);
    for (int d = 0; d < type.rank; d++) {
        const int64_t size = shape->shape->dim[d]->size;
        variable->dims.v[d] = SX_MAX(size, -1);
        type.dims[d] = size < 0 ? SX_UNKNOWN_DIM : size;
    }
    *table = (sx_tf_table){.attrs = variable->base, .variable = variable};
    x->n->out[0] =
        (sx_tf_thing){.kind = ref ? SX_TF_REF : SX_TF_TABLE, .table = table, .variable = type};
    return variable->base.table != NULL ? SX_OK : sx_import_memory();
}

/* A variable of strings that nothing assigns, as its value. */
static sx_status import_strings(sx_tf_op_node *x, const char *key)
{
    sx_tensor saved;
    sx_value y = SX_NO_VALUE;
    const bool ref = strcmp(x->n->node->op, "VarHandleOp") != 0;
    SX_TRY(
        sx_bundle_read_strings(sx_saved_model_variables(x->im->model), key, &x->im->arena, &saved));
    SX_TRY(sx_tf_charge_constant(x, sx_host_bytes(&saved.type)));
    SX_TRY(sx_tf_constant(x, saved.type, saved.data, &y));
    x->n->out[0] = (sx_tf_thing){.kind = ref ? SX_TF_VALUE : SX_TF_READ, .value = y};
    return SX_OK;
}

/* ---- Handles ---- */

/* DATA_LOSS: the node declares another dtype or shape than its variable, or part of one, has in the
 * checkpoint. */
static sx_status check_declaration(const sx_tf_op_node *x, const sx_type *type)
{
    const Tensorflow__AttrValue *dtype = sx_tf_node_attr(x->n->node, "dtype");
    const Tensorflow__AttrValue *shape = sx_tf_node_attr(x->n->node, "shape");
    const bool typed = dtype != NULL && dtype->value_case == TENSORFLOW__ATTR_VALUE__VALUE_TYPE;
    const bool shaped = shape != NULL && shape->value_case == TENSORFLOW__ATTR_VALUE__VALUE_SHAPE &&
                        shape->shape != NULL && !shape->shape->unknown_rank;
    bool same = !typed || (sx_dtype)dtype->type == type->dtype;
    same = same && (!shaped || shape->shape->n_dim == (size_t)type->rank);
    for (int d = 0; d < type->rank && shaped && same; d++) {
        const int64_t size = shape->shape->dim[d]->size;
        same = size < 0 || size == type->dims[d];
    }
    sx_buf declared;
    sx_buf_init(&declared, 0);
    for (size_t d = 0; d < (shaped && !same ? shape->shape->n_dim : 0); d++) {
        sx_buf_printf(&declared, "%s%lld", d == 0 ? "" : ",",
                      (long long)shape->shape->dim[d]->size);
    }
    sx_status status =
        same ? SX_OK
             : sx_error(SX_DATA_LOSS,
                        "the graph declares the variable as %s[%.200s], the checkpoint has %s",
                        typed ? sx_dtype_name((sx_dtype)dtype->type) : "", sx_buf_text(&declared),
                        SX_TEXT(type));
    sx_buf_deinit(&declared);
    return status;
}

/* ---- Variables of TensorFlow 1 ----
 *
 * They are read where they are used. So is what Identity gives of one, by which most nodes read it:
 * a tensor that shares the variable's memory. Assign, AssignAdd, ApplyAdam and their kin change
 * that memory in place, so that who reads the tensor after them sees the new value. */

sx_status sx_tf_settle(sx_library_importer *im, sx_tf_body *body, sx_tf_thing *t)
{
    const sx_tf_op_node x = {.im = im, .body = body, .b = body->b};
    if (t->kind == SX_TF_REF && t->shared) {
        sx_value y = SX_NO_VALUE;
        SX_TRY(sx_tf_read_handle(&x, t, &y));
        *t = (sx_tf_thing){.kind = SX_TF_VALUE, .value = y};
    }
    return SX_OK;
}

/* VarHandleOp; VariableV2, Variable, which are read where they are used */
static sx_status import_handle(sx_tf_op_node *x)
{
    const char *key = NULL;
    const bool ref = strcmp(x->n->node->op, "VarHandleOp") != 0;
    sx_type type;
    sx_slice_attrs part;
    const unsigned changes = sx_tf_changes_of(x->im, x->n->node);
    if (changes != 0 && !sx_import_variable_is_saved(x->im->model, x->n->node)) {
        return import_kept(x);
    }
    SX_TRY(sx_import_variable(x->im->model, x->n->node, &key, &type));
    const bool cut =
        read_part(sx_saved_model_variable_part(x->im->model, x->n->node->name), &type, &part);
    SX_TRY(check_declaration(
        x, cut ? &(sx_type[]){sx_type_make(type.dtype, type.rank, part.size.v)}[0] : &type));
    if (sx_dtype_is_complex(type.dtype)) {
        return sx_tf_import_complex_variable(x, key, &type);
    }
    if (type.dtype == SX_STRING && changes == 0) {
        return import_strings(x, key);
    }
    if (type.dtype == SX_STRING ||
        ((changes & SX_TF_REPLACED) != 0 && !declares_shape(x->n->node))) {
        return import_kept(x);
    }
    if (sx_library_find_variable(x->im->library, key) == NULL) {
        SX_TRY(sx_library_add_variable(x->im->library,
                                       &(sx_variable_spec){.name = key, .type = type}));
    }
    const sx_value y =
        sx_build(x->b, &sx_op_variable_handle, &(sx_variable_handle_attrs){key}, NULL, 0);
    x->n->out[0] =
        (sx_tf_thing){.kind = ref ? SX_TF_REF : SX_TF_HANDLE, .value = y, .variable = type};
    if (cut) {
        /* the checkpoint has the whole variable: a part is a slice of it, which nothing assigns */
        sx_value whole = SX_NO_VALUE;
        SX_TRY(sx_tf_read_handle(x, &x->n->out[0], &whole));
        SX_TF_BUILD(x, &whole, slice, &part, whole);
        x->n->out[0] = (sx_tf_thing){.kind = ref ? SX_TF_VALUE : SX_TF_READ, .value = whole};
    }
    return SX_OK;
}

sx_status sx_tf_require_handle(const sx_tf_op_node *x, int i, const sx_tf_thing **out)
{
    *out = i < x->n->n_in ? &x->n->in[i] : NULL;
    return *out != NULL && ((*out)->kind == SX_TF_HANDLE || (*out)->kind == SX_TF_REF ||
                            (*out)->kind == SX_TF_READ ||
                            ((*out)->kind == SX_TF_TABLE && (*out)->table->variable != NULL))
               ? SX_OK
               : sx_tf_unsupported("its resource is not a variable of the graph");
}

sx_status sx_tf_read_handle(const sx_tf_op_node *x, const sx_tf_thing *handle, sx_value *out)
{
    if (handle->kind == SX_TF_READ) {
        *out = handle->value;
        return SX_OK;
    }
    if (handle->table != NULL) {
        int n_out = 0;
        return sx_tf_add_node(x, &sx_op_kept_variable_read, handle->table->variable, NULL, 0, NULL,
                              0, out, &n_out);
    }
    *out = sx_tf_build_as(x, &sx_op_read_variable, NULL, &handle->value, 1, NULL, 0,
                          &handle->variable);
    return SX_OK;
}

static sx_status import_read(sx_tf_op_node *x)
{
    const sx_tf_thing *handle = NULL;
    sx_value y = SX_NO_VALUE;
    SX_TRY(sx_tf_require_handle(x, 0, &handle));
    SX_TRY(sx_tf_read_handle(x, handle, &y));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* The shape of a variable's value. */
static sx_status import_variable_shape(sx_tf_op_node *x)
{
    const sx_tf_thing *handle = NULL;
    const sx_cast_attrs attrs = {sx_tf_read_dtype(&x->tf.head, "out_type", SX_I32)};
    sx_value y = SX_NO_VALUE;
    SX_TRY(sx_tf_require_handle(x, 0, &handle));
    SX_TRY(sx_tf_read_handle(x, handle, &y));
    SX_TF_BUILD(x, &y, shape, &attrs, y);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* Whether a variable has a value: those on a device have. */
static sx_status import_is_initialized(sx_tf_op_node *x)
{
    const sx_tf_table *table = x->n->n_in > 0 ? x->n->in[0].table : NULL;
    sx_value y = SX_NO_VALUE;
    int n_out = 0;
    SX_TRY(table != NULL && table->variable != NULL
               ? sx_tf_add_node(x, &sx_op_kept_variable_has_value, table->variable, NULL, 0, NULL,
                                0, &y, &n_out)
               : sx_tf_number(x, SX_BOOL, 1, &y));
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* Rows of a variable. */
static sx_status import_gather(sx_tf_op_node *x)
{
    const sx_tf_thing *handle = NULL;
    sx_value table = SX_NO_VALUE, indices = SX_NO_VALUE, y = SX_NO_VALUE;
    sx_gather_attrs attrs = {.batch_dims = sx_tf_read_int(&x->tf.head, "batch_dims", 0)};
    SX_TRY(sx_tf_require_handle(x, 0, &handle));
    SX_TRY(sx_tf_operand(x, 1, &indices));
    if (attrs.batch_dims < 0) {
        return sx_tf_unsupported("batch_dims is negative");
    }
    attrs.axis = attrs.batch_dims;
    SX_TRY(sx_tf_read_handle(x, handle, &table));
    SX_TF_BUILD(x, &y, gather, &attrs, table, indices);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* Assign checks the shape unless it says that it does not, AssignVariableOp if it says that it
 * does; other operators change elements. */
static sx_status assign_kept(const sx_tf_op_node *x, const sx_kept_variable_attrs *variable,
                             sx_value value)
{
    const char *op = x->n->node->op;
    const bool replaces = strcmp(op, "AssignVariableOp") == 0 || strcmp(op, "Assign") == 0;
    const Tensorflow__AttrValue *a = sx_tf_node_attr(x->n->node, "validate_shape");
    const bool says = a != NULL && a->value_case == TENSORFLOW__ATTR_VALUE__VALUE_B;
    sx_kept_variable_attrs attrs = *variable;
    sx_value y = SX_NO_VALUE;
    int n_out = 0;
    attrs.same_shape = !replaces || (says ? a->b : strcmp(op, "Assign") == 0);
    return sx_tf_add_node(x, &sx_op_kept_variable_assign, &attrs, &value, 1, NULL, 0, &y, &n_out);
}

sx_status sx_tf_assign(const sx_tf_op_node *x, const sx_tf_thing *handle, sx_value value)
{
    if (x->im->trials > 0) {
        return SX_OK;
    }
    if (handle->kind == SX_TF_READ) {
        return sx_tf_unsupported("it assigns a part of a variable, or one that a branch or a loop "
                                 "was to only read");
    }
    if (handle->table != NULL) {
        return assign_kept(x, handle->table->variable, value);
    }
    (void)sx_tf_build_as(x, &sx_op_assign_variable, NULL, (sx_value[]){handle->value, value}, 2,
                         NULL, 0, &handle->variable);
    return SX_OK;
}

/* AssignVariableOp, AssignAddVariableOp, AssignSubVariableOp; Assign, AssignAdd, AssignSub, which
 * give the variable */
static sx_status import_assign(sx_tf_op_node *x)
{
    const sx_tf_thing *handle = NULL;
    sx_value value = SX_NO_VALUE, old = SX_NO_VALUE;
    const char *op = x->n->node->op;
    SX_TRY(sx_tf_require_handle(x, 0, &handle));
    SX_TRY(sx_tf_operand(x, 1, &value));
    const bool adds = strncmp(op, "AssignAdd", strlen("AssignAdd")) == 0;
    if (adds || strncmp(op, "AssignSub", strlen("AssignSub")) == 0) {
        SX_TRY(sx_tf_read_handle(x, handle, &old));
        const sx_value both[] = {old, value};
        SX_TRY(sx_tf_build(x, adds ? &sx_op_add : &sx_op_sub, NULL, &value, 2, both));
    }
    return sx_tf_assign(x, handle, value);
}

int sx_tf_assigned_inputs(const char *tf_op)
{
    static const char *const begins[] = {"Assign", "Scatter", "ResourceScatter",
                                         "ResourceStridedSliceAssign", "StridedSliceAssign"};
    bool assigns = false;
    for (size_t i = 0; i < SX_COUNT(begins); i++) {
        assigns = assigns || strncmp(tf_op, begins[i], strlen(begins[i])) == 0;
    }
    /* scattering into zeros, and into a tensor */
    return strcmp(tf_op, "ScatterNd") == 0 || strcmp(tf_op, "ScatterNdNonAliasingAdd") == 0 ? 0
           : assigns                                                                        ? 1
                     : sx_tf_optimizer_variables(tf_op);
}

/* ResourceScatterAdd(variable, indices, updates) and its kin, ResourceScatterNdAdd; ScatterAdd,
 * ..., which give the variable. Rows are slices of one index. */
static sx_status import_scatter(sx_tf_op_node *x)
{
    static const struct {
        const char *name;
        int32_t how;
    } of[] = {{"Update", SX_SCATTER_UPDATE}, {"Add", SX_SCATTER_ADD}, {"Sub", SX_SCATTER_SUB},
              {"Mul", SX_SCATTER_MUL},       {"Div", SX_SCATTER_MUL}, {"Min", SX_SCATTER_MIN},
              {"Max", SX_SCATTER_MAX}};
    const char *op = x->n->node->op;
    const bool slices = strstr(op, "ScatterNd") != NULL;
    const sx_tf_thing *handle = NULL;
    sx_value indices = SX_NO_VALUE, updates = SX_NO_VALUE, value = SX_NO_VALUE;
    size_t k = 0;
    while (k + 1 < SX_COUNT(of) && strcmp(op + strlen(op) - strlen(of[k].name), of[k].name) != 0) {
        k++;
    }
    const sx_tensor_scatter_attrs attrs = {.how = of[k].how};
    SX_TRY(sx_tf_require_handle(x, 0, &handle));
    SX_TRY(sx_tf_operand(x, 1, &indices));
    SX_TRY(sx_tf_operand(x, 2, &updates));
    SX_TRY(sx_tf_read_handle(x, handle, &value));
    if (strcmp(of[k].name, "Div") ==
        0) { /* by each of them: a product with what they are below 1 */
        if (!sx_dtype_is_float(x->tf.head.types[2].dtype)) {
            return sx_tf_unsupported("of %s, expected floats",
                                     sx_dtype_name(x->tf.head.types[2].dtype));
        }
        SX_TF_BUILD(x, &updates, reciprocal, NULL, updates);
    }
    if (!slices && x->tf.head.types[2].rank == 0) { /* one number for all of the rows' elements */
        const int rank = handle->variable.rank;
        if (rank == SX_UNKNOWN_RANK) {
            return sx_tf_unsupported("one number for all elements of a variable of unknown rank");
        }
        const sx_slice_attrs rest = {.begin = {1, {1}}, .size = {1, {rank - 1}}};
        sx_value shapes[2];
        SX_TF_BUILD(x, &shapes[0], shape, (&(sx_cast_attrs){SX_I64}), indices);
        if (rank > 1) {
            SX_TF_BUILD(x, &shapes[1], shape, (&(sx_cast_attrs){SX_I64}), value);
            SX_TF_BUILD(x, &shapes[1], slice, &rest, shapes[1]);
            SX_TF_BUILD(x, &shapes[0], concat, (&(sx_axis_attrs){0}), shapes[0], shapes[1]);
        }
        SX_TRY(
            sx_tf_build_open(x, &sx_op_broadcast_to, NULL, updates, "shape", shapes[0], &updates));
    }
    if (!slices) {
        SX_TRY(sx_tf_expand(x, indices, -1, &indices));
    }
    SX_TF_BUILD(x, &value, tensor_scatter, &attrs, value, indices, updates);
    return sx_tf_assign(x, handle, value);
}

/* Slices of a variable. */
static sx_status import_gather_nd(sx_tf_op_node *x)
{
    static const sx_gather_nd_attrs attrs = {.skip_negative = false};
    const sx_tf_thing *handle = NULL;
    sx_value table = SX_NO_VALUE, indices = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(sx_tf_require_handle(x, 0, &handle));
    SX_TRY(sx_tf_operand(x, 1, &indices));
    SX_TRY(sx_tf_read_handle(x, handle, &table));
    SX_TF_BUILD(x, &y, gather_nd, &attrs, table, indices);
    sx_tf_set(x, 0, y);
    return SX_OK;
}

/* Assert(condition, data...) */
static sx_status import_assert(sx_tf_op_node *x)
{
    sx_value *in = sx_arena_array(&x->im->arena, x->n->n_in + 1, sx_value), y = SX_NO_VALUE;
    if (x->im->trials > 0) {
        return SX_OK;
    }
    if (in == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < x->n->n_in; i++) {
        SX_TRY(sx_tf_operand(x, i, &in[i]));
    }
    return sx_tf_build(x, &sx_op_assert, NULL, &y, x->n->n_in, in);
}

/* CheckNumerics(value), V2: gives the value, which must be finite. */
static sx_status import_check_numerics(sx_tf_op_node *x)
{
    const Tensorflow__AttrValue *message = sx_tf_node_attr(x->n->node, "message");
    const bool has_text = message != NULL && message->value_case == TENSORFLOW__ATTR_VALUE__VALUE_S;
    sx_value v = SX_NO_VALUE, finite = SX_NO_VALUE;
    SX_TRY(sx_tf_operand(x, 0, &v));
    sx_tf_set(x, 0, v);
    if (x->im->trials > 0) {
        return SX_OK;
    }
    const sx_assert_attrs attrs = {
        .message = sx_arena_printf(&x->im->arena, "%.*s : Tensor had NaN or infinite values",
                                   has_text ? (int)SX_MIN(message->s.len, 1000) : 0,
                                   has_text ? (const char *)message->s.data : "")};
    SX_TF_BUILD(x, &finite, all_finite, NULL, v);
    return sx_tf_build(x, &sx_op_assert, &attrs, &finite, 1, (const sx_value[]){finite});
}

static sx_status import_timestamp(sx_tf_op_node *x)
{
    sx_value y = SX_NO_VALUE;
    SX_TRY(sx_tf_build(x, &sx_op_timestamp, NULL, &y, 0, NULL));
    sx_tf_set(x, 0, y);
    return SX_OK;
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
    if (x->im->trials > 0) {
        x->n->out[0] = x->n->n_in > 0 ? x->n->in[0] : x->n->out[0];
        return SX_OK;
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
    {"VariableV2", import_handle, NULL},
    {"Variable", import_handle, NULL},
    {"Assign", import_assign, NULL},
    {"AssignAdd", import_assign, NULL},
    {"AssignSub", import_assign, NULL},
    {"ReadVariableOp", import_read, NULL},
    {"VariableShape", import_variable_shape, NULL},
    {"VarIsInitializedOp", import_is_initialized, NULL},
    {"IsVariableInitialized", import_is_initialized, NULL},
    {"ResourceGather", import_gather, NULL},
    {"AssignVariableOp", import_assign, NULL},
    {"AssignAddVariableOp", import_assign, NULL},
    {"AssignSubVariableOp", import_assign, NULL},
    {"ResourceScatterUpdate", import_scatter, NULL},
    {"ResourceScatterAdd", import_scatter, NULL},
    {"ResourceScatterSub", import_scatter, NULL},
    {"ResourceScatterMul", import_scatter, NULL},
    {"ResourceScatterDiv", import_scatter, NULL},
    {"ResourceScatterMin", import_scatter, NULL},
    {"ResourceScatterMax", import_scatter, NULL},
    {"ScatterUpdate", import_scatter, NULL},
    {"ScatterAdd", import_scatter, NULL},
    {"ScatterSub", import_scatter, NULL},
    {"ScatterMul", import_scatter, NULL},
    {"ScatterDiv", import_scatter, NULL},
    {"ScatterMin", import_scatter, NULL},
    {"ScatterMax", import_scatter, NULL},
    {"ResourceScatterNdUpdate", import_scatter, NULL},
    {"ResourceScatterNdAdd", import_scatter, NULL},
    {"ResourceScatterNdSub", import_scatter, NULL},
    {"ResourceScatterNdMin", import_scatter, NULL},
    {"ResourceScatterNdMax", import_scatter, NULL},
    {"ScatterNdUpdate", import_scatter, NULL},
    {"ScatterNdAdd", import_scatter, NULL},
    {"ScatterNdSub", import_scatter, NULL},
    {"ScatterNdMin", import_scatter, NULL},
    {"ScatterNdMax", import_scatter, NULL},
    {"ResourceGatherNd", import_gather_nd, NULL},
    {"Assert", import_assert, NULL},
    {"Timestamp", import_timestamp, NULL},
    {"CheckNumerics", import_check_numerics, NULL},
    {"CheckNumericsV2", import_check_numerics, NULL},
    {"Print", import_print, NULL},
    {"PrintV2", import_print, NULL},
    {NULL, NULL, NULL},
};
