/* Imports the nodes of functions: see import_library.h. A node that is one of our operators is read
 * by that operator's `from_tf` (graph/lower/tf_reader.h); what it has as a tensor and we as an
 * attribute becomes an attribute where it is known, else an operand. Other nodes have rows at the
 * end of the file. */
#include <string.h>

#include "base/checked.h"
#include "graph/attr_operands.h"
#include "graph/host.h"
#include "graph/ops/common.h"
#include "savedmodel/export.h"
#include "savedmodel/import_library_internal.h"

#define unsupported(...) sx_error(SX_UNIMPLEMENTED, __VA_ARGS__)

/* One node, with what all rows need. */
typedef struct node {
    sx_import_reader tf;
    sx_library_importer *im;
    sx_tf_body *body;
    sx_builder *b;
    sx_tf_import_node *n;
    const struct row *row;
} node;

typedef sx_status import_fn(node *x);

typedef struct row {
    const char *tf_op;
    import_fn *import;
    const char *same_as; /* TensorFlow's other name of it, or NULL */
} row;

/* ---- Operands ---- */

/* Input i as a value; SX_NO_VALUE, and an error in *status, if it has none. */
static sx_status operand(const node *x, int i, sx_value *out)
{
    if (i >= x->n->n_in) {
        return sx_error(SX_DATA_LOSS, "input %d is missing", i);
    }
    const sx_tf_thing *in = &x->n->in[i];
    if (in->kind != SX_TF_VALUE) {
        return unsupported("input %d is a variable's handle", i);
    }
    *out = in->value;
    return SX_OK;
}

static void set(node *x, int output, sx_value value)
{
    x->n->out[output] = (sx_tf_thing){.kind = SX_TF_VALUE, .value = value};
}

/* The integers of a constant input of rank 0 or 1. */
static sx_status operand_ints(const node *x, int i, sx_ints *out)
{
    const sx_tensor *t = NULL;
    SX_TRY(sx_tf_read_value(&x->tf.head, i, &t));
    return sx_import_ints(t, i, out);
}

static sx_status require_rank(const node *x, int i)
{
    return x->tf.head.types[i].rank == SX_UNKNOWN_RANK
               ? unsupported("the rank of input %d is unknown", i)
               : SX_OK;
}

/* ---- Types ---- */

static bool is_known(const sx_type *t)
{
    bool known = t->rank != SX_UNKNOWN_RANK;
    for (int d = 0; d < t->rank; d++) {
        known = known && (t->dims[d] >= 0 || sx_dim_is_batch(t->dims[d]));
    }
    return known;
}

static sx_type unknown_shape(sx_dtype dtype)
{
    return (sx_type){.dtype = dtype, .rank = SX_UNKNOWN_RANK};
}

/* The dtype of an output when nothing is known of the shapes: an attribute, that of input 0, or
 * what the operator's row says. */
static sx_dtype output_dtype(const sx_op_def *op, const void *attrs, int output,
                             const sx_type *inputs, int n_inputs)
{
    static const struct {
        int op, output;
        sx_dtype dtype;
        int input; /* if dtype is NONE */
    } rows[] = {
        {SX_OPID_equal, 0, SX_BOOL, 0},    {SX_OPID_less, 0, SX_BOOL, 0},
        {SX_OPID_greater, 0, SX_BOOL, 0},  {SX_OPID_top_k, 1, SX_I32, 0},
        {SX_OPID_in_top_k, 0, SX_BOOL, 0}, {SX_OPID_select, 0, SX_DTYPE_NONE, 1},
        {SX_OPID_where, 0, SX_I64, 0},     {SX_OPID_all_finite, 0, SX_BOOL, 0},
    };
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        if (rows[i].op == op->id && rows[i].output == output) {
            return rows[i].dtype != SX_DTYPE_NONE ? rows[i].dtype
                   : rows[i].input < n_inputs     ? inputs[rows[i].input].dtype
                                                  : SX_DTYPE_NONE;
        }
    }
    for (int i = 0; i < op->n_attrs; i++) {
        if (op->attrs[i].kind == SX_ATTR_DTYPE) {
            return *(const sx_dtype *)(const void *)((const char *)attrs + op->attrs[i].offset);
        }
    }
    return n_inputs > 0 ? inputs[0].dtype : SX_DTYPE_NONE;
}

/* Infers as if each unknown dimension (and, if `batch`, N) had size `size`. */
static sx_status probe(const sx_op_def *op, const void *attrs, const sx_type *in, int n_in,
                       int64_t size, bool batch, sx_arena *arena, sx_type *out, int *out_n)
{
    sx_type *types = sx_arena_memdup(arena, in, ((size_t)n_in + 1) * sizeof(*in));
    if (types == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < n_in; i++) {
        for (int d = 0; d < types[i].rank; d++) {
            const bool unknown = types[i].dims[d] < 0 && !sx_dim_is_batch(types[i].dims[d]);
            types[i].dims[d] = unknown ? size : types[i].dims[d];
        }
        types[i] = batch ? sx_type_with_batch(types[i], size) : types[i];
    }
    return sx_infer_types(op, attrs, types, n_in, out, out_n);
}

/* The types that a node's outputs are declared with: inferred where the inputs' types are known,
 * else as much as two guesses of what is unknown have in common. `open`: attributes are operands.
 */
static sx_status declare(const node *x, const sx_op_def *op, const void *attrs, bool open,
                         const sx_type *in, int n_in, sx_type out[SX_MAX_OUTPUTS], int *out_n)
{
    enum { ODD = 7919 }; /* a size that divides by nothing */
    sx_type other[SX_MAX_OUTPUTS];
    bool all = !open, ranks = !open;
    int n_other = 0;
    for (int i = 0; i < n_in; i++) {
        all = all && is_known(&in[i]);
        ranks = ranks && in[i].rank != SX_UNKNOWN_RANK;
    }
    *out_n = op->n_out == SX_VARIADIC ? 1 : op->n_out;
    for (int i = 0; i < *out_n; i++) {
        out[i] = unknown_shape(output_dtype(op, attrs, i, in, n_in));
    }
    if (!ranks) {
        return SX_OK;
    }
    sx_status status = all ? sx_infer_types(op, attrs, in, n_in, out, out_n)
                           : probe(op, attrs, in, n_in, 1, false, &x->im->arena, out, out_n);
    if (status == SX_OK && all) {
        return SX_OK;
    }
    sx_status odd = probe(op, attrs, in, n_in, ODD, true, &x->im->arena, other, &n_other);
    if (status != SX_OK && odd != SX_OK && all) { /* wrong for every batch */
        sx_status_free(odd);
        sx_status refused = unsupported("%s", sx_status_message(status));
        sx_status_free(status);
        return refused;
    }
    if (status != SX_OK && odd == SX_OK) { /* it takes no 1 there: another guess beside it */
        sx_status_free(status);
        status = probe(op, attrs, in, n_in, ODD + 12, true, &x->im->arena, out, out_n);
    }
    const bool both = status == SX_OK && odd == SX_OK && n_other == *out_n;
    const bool some = status == SX_OK;
    sx_status_free(status);
    sx_status_free(odd);
    *out_n = some ? *out_n : op->n_out == SX_VARIADIC ? 1 : op->n_out;
    for (int i = 0; i < *out_n; i++) {
        if (!some || (both && other[i].rank != out[i].rank)) {
            out[i] = unknown_shape(output_dtype(op, attrs, i, in, n_in));
        }
        for (int d = 0; d < out[i].rank; d++) {
            const bool same = both && other[i].dims[d] == out[i].dims[d];
            out[i].dims[d] = same ? out[i].dims[d] : SX_UNKNOWN_DIM;
        }
    }
    return SX_OK;
}

/* ---- Building ---- */

/* Adds a node whose types are declared; returns its first output. */
static sx_status add_node(const node *x, const sx_op_def *op, const void *attrs, const sx_value *in,
                          int n_in, const sx_attr_operand *operands, int n_operands,
                          sx_value *out_first, int *out_n)
{
    sx_type types[SX_MAX_OUTPUTS], *in_types = sx_arena_array(&x->im->arena, n_in + 1, sx_type);
    if (in_types == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < n_in; i++) {
        in_types[i] = sx_type_of_value(x->b, in[i]);
    }
    void *zero = attrs != NULL ? NULL : sx_arena_alloc(&x->im->arena, op->attrs_bytes + 1, 1);
    attrs = attrs != NULL ? attrs : zero;
    if (attrs == NULL) {
        return sx_import_memory();
    }
    SX_TRY(declare(x, op, attrs, n_operands > 0, in_types, n_in, types, out_n));
    for (int i = 0; i < n_operands; i++) { /* a shape of known length says at least the rank */
        const sx_type shape = sx_type_of_value(x->b, operands[i].value);
        if (op->attrs[operands[i].row].kind == SX_ATTR_SHAPE && op != &sx_op_slice &&
            shape.rank == 1 && shape.dims[0] >= 0 && shape.dims[0] <= SX_MAX_RANK) {
            types[0].rank = (int)shape.dims[0];
            for (int d = 0; d < types[0].rank; d++) {
                types[0].dims[d] = SX_UNKNOWN_DIM;
            }
        }
    }
    *out_first = sx_build_node(x->b, &(sx_node_spec){.op = op,
                                                     .attrs = attrs,
                                                     .inputs = in,
                                                     .n_inputs = n_in,
                                                     .attr_operands = operands,
                                                     .n_attr_operands = n_operands,
                                                     .types = types,
                                                     .n_types = *out_n,
                                                     .device = "",
                                                     .file = ""});
    return SX_OK;
}

/* A node of one output: *y = op(in...) {attrs}. */
static sx_status build(const node *x, const sx_op_def *op, const void *attrs, sx_value *y, int n_in,
                       const sx_value *in)
{
    int n = 0;
    return add_node(x, op, attrs, in, n_in, NULL, 0, y, &n);
}
#define BUILD(x, y, op_name, attrs, ...)                                      \
    SX_TRY(build((x), &sx_op_##op_name, (attrs), (y),                         \
                 (int)(sizeof((sx_value[]){__VA_ARGS__}) / sizeof(sx_value)), \
                 (const sx_value[]){__VA_ARGS__}))

static sx_status constant(const node *x, sx_type type, const void *data, sx_value *out)
{
    const sx_constant_attrs attrs = {.value = {type, (void *)(uintptr_t)data}};
    return build(x, &sx_op_constant, &attrs, out, 0, NULL);
}

static sx_status scalar(const node *x, sx_dtype dtype, double value, sx_value *out)
{
    uint64_t bytes = 0;
    sx_host_store_element(dtype, value, &bytes);
    return constant(x, sx_scalar_type(dtype), &bytes, out);
}

static sx_status int64s(const node *x, const sx_ints *list, sx_value *out)
{
    return constant(x, sx_type_of(SX_I64, list->n), list->v, out);
}

static int attr_row(const sx_op_def *op, const char *name)
{
    int k = 0;
    while (k < op->n_attrs && strcmp(op->attrs[k].name, name) != 0) {
        k++;
    }
    return k;
}

/* op(v) with attribute `name` an operand. */
static sx_status build_open(const node *x, const sx_op_def *op, const void *attrs, sx_value v,
                            const char *name, sx_value operand_value, sx_value *out)
{
    int n = 0;
    const sx_attr_operand open = {attr_row(op, name), operand_value};
    return add_node(x, op, attrs, &v, 1, &open, 1, out, &n);
}

/* v with dimension k that of `from[k]`, or 1 where that is -1; the elements stay. */
static sx_status reshape_dims(const node *x, sx_value v, const sx_ints *from, sx_value *out)
{
    const sx_type type = sx_type_of_value(x->b, v);
    sx_shape_attrs attrs = {.shape = {.n = from->n}};
    int n_unknown = 0;
    for (int k = 0; k < from->n; k++) {
        attrs.shape.v[k] = from->v[k] < 0 ? 1 : type.dims[from->v[k]];
        n_unknown += attrs.shape.v[k] < 0 && !sx_dim_is_batch(attrs.shape.v[k]);
    }
    if (n_unknown == 0) {
        return build(x, &sx_op_reshape, &attrs, out, 1, &v);
    }
    /* a row of the shape, followed by a 1, for each dimension */
    static const int64_t one_data[1] = {1};
    sx_value shape = SX_NO_VALUE, one = SX_NO_VALUE, at = SX_NO_VALUE, dims = SX_NO_VALUE;
    sx_ints places = *from;
    for (int k = 0; k < places.n; k++) {
        places.v[k] = places.v[k] < 0 ? type.rank : places.v[k];
    }
    BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
    SX_TRY(constant(x, sx_type_of(SX_I64, 1), one_data, &one));
    BUILD(x, &dims, concat, (&(sx_axis_attrs){0}), shape, one);
    SX_TRY(int64s(x, &places, &at));
    BUILD(x, &shape, gather, NULL, dims, at);
    return build_open(x, &sx_op_reshape, NULL, v, "shape", shape, out);
}

/* ---- One to one ---- */

static sx_status import_one(node *x)
{
    const char *tf_op = x->row->same_as != NULL ? x->row->same_as : x->n->node->op;
    const sx_tf_form *form = NULL;
    const sx_op_def *op = sx_op_find_tf(tf_op, &form);
    sx_tf_open_attr open[SX_TF_FORM_OPERANDS];
    sx_attr_operand operands[SX_TF_FORM_OPERANDS];
    int n_in = 0, n_open = 0, n_out = 0;
    int *from = sx_arena_array(&x->im->arena, x->n->n_in + 1, int);
    sx_value *in = sx_arena_array(&x->im->arena, x->n->n_in + 1, sx_value);
    void *attrs = sx_arena_alloc(&x->im->arena, op->attrs_bytes + 1, 1);
    if (from == NULL || in == NULL || attrs == NULL) {
        return sx_import_memory();
    }
    SX_TRY(sx_tf_read_open_node(op, form, &x->tf.head, attrs, from, &n_in, open, &n_open));
    for (int i = 0; i < n_in; i++) {
        SX_TRY(operand(x, from[i], &in[i]));
    }
    for (int i = 0; i < n_open; i++) {
        const sx_attr_kind kind = op->attrs[open[i].row].kind;
        const sx_type *type = &x->tf.head.types[open[i].input];
        char text[SX_TYPE_TEXT];
        if (kind == SX_ATTR_FLOAT || kind == SX_ATTR_BOOL) { /* never part of what is bound */
            return unsupported("input %d is not a constant", open[i].input);
        }
        if (!sx_dtype_is_integer(type->dtype) || type->rank > 1) {
            return unsupported("input %d is %s, expected a list of integers", open[i].input,
                               sx_type_format(type, text, sizeof(text)));
        }
        operands[i].row = open[i].row;
        SX_TRY(operand(x, open[i].input, &operands[i].value));
    }
    sx_value y = SX_NO_VALUE;
    SX_TRY(add_node(x, op, attrs, in, n_in, operands, n_open, &y, &n_out));
    for (int i = 0; i < n_out && i < x->n->n_out; i++) {
        set(x, i, sx_output_of(y, i));
    }
    return SX_OK;
}

/* ---- The program around ---- */

static sx_status import_const(node *x)
{
    sx_tensor *t = sx_arena_new(&x->im->arena, sx_tensor);
    if (t == NULL) {
        return sx_import_memory();
    }
    SX_TRY(sx_import_const_value(x->n->node, &x->im->arena, t));
    x->im->constant_bytes += SX_MAX(sx_host_bytes(&t->type), 0);
    if (x->im->constant_bytes > x->im->limits.constant_bytes) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "more than %lld bytes of constants",
                        (long long)x->im->limits.constant_bytes);
    }
    sx_value y = SX_NO_VALUE;
    SX_TRY(constant(x, t->type, t->data, &y));
    set(x, 0, y);
    x->n->out[0].known = t;
    return SX_OK;
}

/* The signature does not feed it. */
static sx_status import_placeholder(node *x)
{
    (void)x;
    return sx_error(
        SX_DATA_LOSS,
        "an output depends on this placeholder, which is not an input of the signature");
}

static sx_status import_identity(node *x)
{
    if (sx_tf_node_attr(x->n->node, SX_PREPROCESS_ATTRIBUTE) != NULL) {
        return unsupported("it decodes images");
    }
    for (int i = 0; i < x->n->n_in && i < x->n->n_out; i++) {
        x->n->out[i] = x->n->in[i];
    }
    return SX_OK;
}

static sx_status import_nothing(node *x)
{
    (void)x;
    return SX_OK;
}

/* ---- Variables ---- */

static sx_status import_handle(node *x)
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

static sx_status require_handle(const node *x, const sx_tf_thing **out)
{
    *out = x->n->n_in > 0 ? &x->n->in[0] : NULL;
    return *out != NULL && ((*out)->kind == SX_TF_HANDLE || (*out)->kind == SX_TF_READ)
               ? SX_OK
               : unsupported("its resource is not a variable of the graph");
}

static sx_status read_handle(const node *x, const sx_tf_thing *handle, sx_value *out)
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

static sx_status import_read(node *x)
{
    const sx_tf_thing *handle = NULL;
    sx_value y = SX_NO_VALUE;
    SX_TRY(require_handle(x, &handle));
    SX_TRY(read_handle(x, handle, &y));
    set(x, 0, y);
    return SX_OK;
}

/* AssignVariableOp, AssignAddVariableOp, AssignSubVariableOp */
static sx_status import_assign(node *x)
{
    const sx_tf_thing *handle = NULL;
    sx_value value = SX_NO_VALUE, old = SX_NO_VALUE;
    const char *op = x->n->node->op;
    SX_TRY(require_handle(x, &handle));
    SX_TRY(operand(x, 1, &value));
    if (handle->kind == SX_TF_READ) {
        return unsupported("it assigns within a branch or a loop that was to only read");
    }
    if (strcmp(op, "AssignVariableOp") != 0) {
        SX_TRY(read_handle(x, handle, &old));
        const bool adds = strcmp(op, "AssignAddVariableOp") == 0;
        const sx_value both[] = {old, value};
        SX_TRY(build(x, adds ? &sx_op_add : &sx_op_sub, NULL, &value, 2, both));
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
static sx_status import_assert(node *x)
{
    sx_value *in = sx_arena_array(&x->im->arena, x->n->n_in + 1, sx_value), y = SX_NO_VALUE;
    if (in == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < x->n->n_in; i++) {
        SX_TRY(operand(x, i, &in[i]));
    }
    return build(x, &sx_op_assert, NULL, &y, x->n->n_in, in);
}

/* ---- Control flow ---- */

/* The arguments of branches or bodies that do not assign variables: values in place of handles. */
static sx_status only_read(node *x, const char *const *attrs, int first, sx_tf_thing **out)
{
    bool assigns = false;
    for (int i = 0; i < 2; i++) {
        const Tensorflow__FunctionDef *function = NULL;
        bool some = false;
        SX_TRY(sx_tf_import_function_of(x->im, x->n->node, attrs[i], &function));
        SX_TRY(sx_tf_import_assigns(x->im, function, &some));
        assigns = assigns || some;
    }
    sx_tf_thing *args =
        sx_arena_memdup(&x->im->arena, x->n->in, ((size_t)x->n->n_in + 1) * sizeof(*args));
    if (args == NULL) {
        return sx_import_memory();
    }
    for (int i = first; i < x->n->n_in && !assigns; i++) {
        if (args[i].kind == SX_TF_HANDLE) {
            SX_TRY(read_handle(x, &args[i], &args[i].value));
            args[i].kind = SX_TF_READ;
        }
    }
    *out = args + first;
    return SX_OK;
}

static sx_type declared_type(const node *x, const sx_tf_thing *arg)
{
    return arg->kind == SX_TF_HANDLE ? sx_scalar_type(SX_RESOURCE)
                                     : sx_type_of_value(x->b, arg->value);
}

/* What both types have in common. */
static sx_type join(sx_type a, const sx_type *b)
{
    if (a.rank != b->rank) {
        return unknown_shape(a.dtype);
    }
    for (int d = 0; d < a.rank; d++) {
        a.dims[d] = a.dims[d] == b->dims[d] ? a.dims[d] : SX_UNKNOWN_DIM;
    }
    return a;
}

/* A region that holds a function's body over arguments of these types. Parameter k of the region is
 * argument order[k], and its first n_ends results are results order[k], order NULL: as they are;
 * kept[i], unless NULL, says whether result i is argument i. On success the caller destroys
 * *out_graph, which is NULL if a node of it was refused. */
static sx_status make_region(node *x, const char *attr, const sx_tf_thing *args,
                             const sx_type *types, int n, const int *order, int n_ends,
                             sx_tf_thing *results, sx_type *result_types, int n_results, bool *kept,
                             sx_graph **out_graph)
{
    const Tensorflow__FunctionDef *function = NULL;
    sx_builder *b = NULL;
    SX_TRY(sx_tf_import_function_of(x->im, x->n->node, attr, &function));
    const Tensorflow__OpDef *signature = function->signature;
    sx_tf_thing *inner = sx_arena_memdup(&x->im->arena, args, ((size_t)n + 1) * sizeof(*inner));
    if (inner == NULL) {
        return sx_import_memory();
    }
    if (signature->n_output_arg != (size_t)n_results || signature->n_input_arg != (size_t)n) {
        return sx_error(SX_DATA_LOSS,
                        "function \"%.100s\" has %zu arguments and %zu results, expected %d and %d",
                        signature->name, signature->n_input_arg, signature->n_output_arg, n,
                        n_results);
    }
    SX_TRY(sx_builder_create_function(&b));
    const int refused = x->im->refused.n;
    for (int k = 0; k < n; k++) {
        const int i = order != NULL ? order[k] : k;
        inner[i].known = NULL;
        inner[i].value = sx_input(b, signature->input_arg[i]->name, types[i]);
    }
    sx_status status = sx_tf_import_body(x->im, function, b, inner, n, results);
    bool whole = x->im->refused.n == refused;
    for (int i = 0; i < n_results && status == SX_OK && whole; i++) {
        whole = results[i].kind != SX_TF_REFUSED;
    }
    for (int i = 0; i < n_results && status == SX_OK && whole; i++) {
        result_types[i] = results[i].kind == SX_TF_HANDLE ? sx_scalar_type(SX_RESOURCE)
                                                          : sx_type_of_value(b, results[i].value);
        if (kept != NULL) {
            kept[i] = results[i].value.id == inner[i].value.id;
        }
    }
    for (int k = 0; k < n_ends && status == SX_OK && whole; k++) {
        const int i = order != NULL && n_results == n ? order[k] : k;
        sx_output(b, signature->output_arg[i]->name, results[i].value);
    }
    if (status == SX_OK && whole) {
        status = sx_builder_finish(b, out_graph);
    }
    sx_builder_destroy(b);
    return sx_status_annotate(status, __FILE__, __LINE__, "%s \"%.100s\"", attr, signature->name);
}

static void refuse_outputs(node *x)
{
    for (int i = 0; i < x->n->n_out; i++) {
        x->n->out[i] = (sx_tf_thing){.kind = SX_TF_REFUSED};
    }
}

/* Room for the outputs, and how many there are. */
static sx_status make_room(node *x, const char *attr, int *out_n)
{
    const Tensorflow__FunctionDef *function = NULL;
    SX_TRY(sx_tf_import_function_of(x->im, x->n->node, attr, &function));
    const size_t n = function->signature->n_output_arg;
    if (n == 0 || n > SX_MAX_OUTPUTS) {
        return unsupported("it has %zu outputs; 1 to %d are supported", n, SX_MAX_OUTPUTS);
    }
    if ((size_t)x->n->n_out < n + 1) {
        x->n->n_out = (int)n + 1;
        x->n->out = sx_arena_array(&x->im->arena, n + 1, sx_tf_thing);
    }
    *out_n = (int)n;
    return x->n->out == NULL ? sx_import_memory() : SX_OK;
}

/* A condition that is a number is true if it is not 0. */
static sx_status to_bool(const node *x, sx_value v, sx_value *out)
{
    const sx_dtype dtype = sx_type_of_value(x->b, v).dtype;
    sx_value zero = SX_NO_VALUE, equal = SX_NO_VALUE;
    *out = v;
    if (dtype == SX_BOOL) {
        return SX_OK;
    }
    if (dtype == SX_STRING || dtype == SX_RESOURCE) {
        return unsupported("the condition is a %s", sx_dtype_name(dtype));
    }
    SX_TRY(scalar(x, dtype, 0, &zero));
    BUILD(x, &equal, equal, NULL, v, zero);
    BUILD(x, out, logical_not, NULL, equal);
    return SX_OK;
}

static sx_status import_if(node *x)
{
    static const char *const attrs[] = {"then_branch", "else_branch"};
    const int n = x->n->n_in - 1;
    int n_out = 0;
    sx_graph *regions[2] = {NULL, NULL};
    sx_type types[2][SX_MAX_OUTPUTS];
    sx_tf_thing results[2][SX_MAX_OUTPUTS] = {{{.kind = SX_TF_NOTHING}}}, *args = NULL;
    if (n < 0) {
        return sx_error(SX_DATA_LOSS, "the condition is missing");
    }
    SX_TRY(make_room(x, "then_branch", &n_out));
    SX_TRY(only_read(x, attrs, 1, &args));
    sx_value *in = sx_arena_array(&x->im->arena, n + 2, sx_value), condition = SX_NO_VALUE;
    sx_type *in_types = sx_arena_array(&x->im->arena, n + 1, sx_type);
    if (in == NULL || in_types == NULL) {
        return sx_import_memory();
    }
    SX_TRY(operand(x, 0, &condition));
    SX_TRY(to_bool(x, condition, &in[0]));
    for (int i = 0; i < n; i++) {
        in[1 + i] = args[i].value;
        in_types[i] = declared_type(x, &args[i]);
    }
    sx_status status = SX_OK;
    for (int i = 0; i < 2 && status == SX_OK; i++) {
        status = make_region(x, attrs[i], args, in_types, n, NULL, n_out, results[i], types[i],
                             n_out, NULL, &regions[i]);
    }
    const bool whole = status == SX_OK && regions[0] != NULL && regions[1] != NULL;
    for (int i = 0; i < n_out && whole && status == SX_OK; i++) {
        const sx_type *other = &types[1][i];
        types[0][i] = join(types[0][i], other);
        if (results[0][i].kind != SX_TF_VALUE || results[1][i].kind != SX_TF_VALUE) {
            status = unsupported("output %d is a variable's handle", i);
        } else if (types[0][i].dtype != other->dtype) {
            status = sx_error(SX_DATA_LOSS, "output %d is %s in one branch and %s in the other", i,
                              sx_dtype_name(types[0][i].dtype), sx_dtype_name(other->dtype));
        }
    }
    if (whole && status == SX_OK) {
        const sx_value y =
            sx_build_node(x->b, &(sx_node_spec){.op = &sx_op_if,
                                                .attrs = &(sx_if_attrs){regions[0], regions[1]},
                                                .inputs = in,
                                                .n_inputs = n + 1,
                                                .types = types[0],
                                                .n_types = n_out,
                                                .device = "",
                                                .file = ""});
        for (int i = 0; i < n_out; i++) {
            set(x, i, sx_output_of(y, i));
        }
    } else if (status == SX_OK) {
        refuse_outputs(x);
    }
    sx_graph_destroy(regions[0]);
    sx_graph_destroy(regions[1]);
    return status;
}

/* The state of TensorFlow's loop is all of its inputs; those that the body returns as they are
 * become operands of ours that do not change, after the others. */
static sx_status import_while(node *x)
{
    static const char *const attrs[] = {"cond", "body"};
    enum { ATTEMPTS = 4 };
    const int n = x->n->n_in;
    int n_out = 0, order[SX_MAX_OUTPUTS] = {0}, n_state = n;
    bool kept[SX_MAX_OUTPUTS] = {false}, holds = false;
    sx_graph *condition = NULL, *body = NULL;
    sx_type types[SX_MAX_OUTPUTS], made[SX_MAX_OUTPUTS], flag = {.dtype = SX_DTYPE_NONE};
    sx_tf_thing results[SX_MAX_OUTPUTS] = {{.kind = SX_TF_NOTHING}}, test = {.kind = SX_TF_NOTHING},
                *args = NULL;
    SX_TRY(make_room(x, "body", &n_out));
    if (n_out != n) {
        return sx_error(SX_DATA_LOSS, "the loop has %d inputs, its body gives %d", n, n_out);
    }
    SX_TRY(only_read(x, attrs, 0, &args));
    for (int i = 0; i < n; i++) {
        types[i] = declared_type(x, &args[i]);
        order[i] = i;
    }
    /* Until the types hold for every iteration, and what does not change comes last. */
    sx_status status = SX_OK;
    for (int attempt = 0; attempt < ATTEMPTS && !holds && status == SX_OK; attempt++) {
        sx_graph_destroy(body);
        body = NULL;
        status =
            make_region(x, "body", args, types, n, order, n_state, results, made, n, kept, &body);
        if (status != SX_OK || body == NULL) {
            break;
        }
        holds = true;
        for (int i = 0; i < n && status == SX_OK; i++) {
            const sx_type both = join(types[i], &made[i]);
            if (made[i].dtype != types[i].dtype) {
                status = sx_error(SX_DATA_LOSS, "state %d is %s, the body gives %s", i,
                                  sx_dtype_name(types[i].dtype), sx_dtype_name(made[i].dtype));
            }
            if (!sx_type_equal(&both, &types[i])) {
                types[i] = attempt < ATTEMPTS - 2 ? both : unknown_shape(types[i].dtype);
                holds = false;
            }
        }
        int k = 0, changing = 0;
        for (int pass = 0; pass < 2; pass++) {
            for (int i = 0; i < n; i++) {
                if (kept[i] == (pass == 1)) {
                    holds = holds && order[k] == i;
                    order[k++] = i;
                }
            }
            changing = pass == 0 ? k : changing;
        }
        holds = holds && n_state == changing;
        n_state = changing;
    }
    if (status == SX_OK && body != NULL && !holds) {
        status = unsupported("the types of the loop's state do not settle");
    }
    if (status == SX_OK && body != NULL && n_state == 0) {
        status = unsupported("its body changes nothing");
    }
    if (status == SX_OK) { /* also of a body that was refused: to name all nodes */
        status =
            make_region(x, "cond", args, types, n, order, 1, &test, &flag, 1, NULL, &condition);
    }
    if (status == SX_OK && condition != NULL && flag.dtype != SX_BOOL) {
        status = unsupported("the condition is a %s", sx_dtype_name(flag.dtype));
    }
    if (status == SX_OK && (condition == NULL || body == NULL)) {
        refuse_outputs(x);
    } else if (status == SX_OK) {
        sx_value in[SX_MAX_OUTPUTS];
        sx_type state[SX_MAX_OUTPUTS];
        for (int i = 0; i < n; i++) {
            in[i] = args[order[i]].value;
            state[i] = types[order[i]];
        }
        const sx_value y =
            sx_build_node(x->b, &(sx_node_spec){.op = &sx_op_while,
                                                .attrs = &(sx_while_attrs){condition, body, 0},
                                                .inputs = in,
                                                .n_inputs = n,
                                                .types = state,
                                                .n_types = n_state,
                                                .device = "",
                                                .file = ""});
        for (int i = 0; i < n; i++) {
            x->n->out[order[i]] = x->n->in[order[i]];
            if (i < n_state) {
                set(x, order[i], sx_output_of(y, i));
            }
        }
    }
    sx_graph_destroy(condition);
    sx_graph_destroy(body);
    return status;
}

/* ---- Shapes ---- */

static sx_status import_shape(node *x)
{
    sx_value v = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(operand(x, 0, &v));
    BUILD(x, &y, shape, (&(sx_cast_attrs){sx_tf_read_dtype(&x->tf.head, "out_type", SX_I32)}), v);
    set(x, 0, y);
    return SX_OK;
}

static sx_status import_rank(node *x)
{
    sx_value y = SX_NO_VALUE;
    SX_TRY(require_rank(x, 0));
    SX_TRY(scalar(x, SX_I32, x->tf.head.types[0].rank, &y));
    set(x, 0, y);
    return SX_OK;
}

/* The number of elements: the product of the shape's elements. */
static sx_status import_size(node *x)
{
    sx_value v = SX_NO_VALUE, y = SX_NO_VALUE;
    const sx_dtype dtype = sx_tf_read_dtype(&x->tf.head, "out_type", SX_I32);
    SX_TRY(operand(x, 0, &v));
    SX_TRY(require_rank(x, 0));
    SX_TRY(scalar(x, dtype, 1, &y));
    for (int d = 0; d < x->tf.head.types[0].rank; d++) {
        sx_value shape = SX_NO_VALUE, dim = SX_NO_VALUE;
        const sx_slice_attrs at = {.begin = {1, {d}}, .size = {1, {1}}};
        BUILD(x, &shape, shape, (&(sx_cast_attrs){dtype}), v);
        BUILD(x, &dim, slice, &at, shape);
        BUILD(x, &dim, reshape, (&(sx_shape_attrs){{0}}), dim);
        BUILD(x, &y, mul, NULL, y, dim);
    }
    set(x, 0, y);
    return SX_OK;
}

/* x[begin:end] with stride 1, and axes that are dropped or added. */
static sx_status import_strided_slice(node *x)
{
    sx_value v = SX_NO_VALUE, y = SX_NO_VALUE;
    sx_ints begin = {0}, end = {0}, strides = {0}, kept = {0};
    const int64_t begins = sx_tf_read_int(&x->tf.head, "begin_mask", 0),
                  ends = sx_tf_read_int(&x->tf.head, "end_mask", 0),
                  shrinks = sx_tf_read_int(&x->tf.head, "shrink_axis_mask", 0),
                  adds = sx_tf_read_int(&x->tf.head, "new_axis_mask", 0),
                  dots = sx_tf_read_int(&x->tf.head, "ellipsis_mask", 0);
    SX_TRY(operand(x, 0, &v));
    SX_TRY(require_rank(x, 0));
    SX_TRY(operand_ints(x, 1, &begin));
    SX_TRY(operand_ints(x, 2, &end));
    SX_TRY(operand_ints(x, 3, &strides));
    const sx_type *type = &x->tf.head.types[0];
    sx_slice_attrs attrs = {.begin = {.n = type->rank}, .size = {.n = type->rank}};
    bool cuts = false, whole = true; /* whether the sizes are known */
    int n_axes = 0;                  /* that the indices name */
    for (int i = 0; i < begin.n; i++) {
        n_axes += (adds >> i & 1) == 0 && (dots >> i & 1) == 0;
    }
    int d = 0;
    for (int i = 0; i <= begin.n; i++) {
        const bool dot = i == begin.n || (dots >> i & 1) != 0;
        if (!dot && (adds >> i & 1) != 0) {
            kept.v[kept.n++ % SX_MAX_RANK] = -1;
            continue;
        }
        /* an ellipsis, or the end, takes the axes that are not named */
        for (int k = 0; dot && k < type->rank - n_axes && d < type->rank; k++, d++) {
            attrs.size.v[d] = -1;
            kept.v[kept.n++ % SX_MAX_RANK] = d;
        }
        n_axes = dot ? type->rank : n_axes;
        if (dot) {
            continue;
        }
        if (d >= type->rank || i >= end.n || i >= strides.n) {
            return sx_error(SX_DATA_LOSS, "%d indices for an input of rank %d", begin.n,
                            type->rank);
        }
        const int64_t dim = type->dims[d], from = begin.v[i], to = end.v[i];
        const bool shrink = (shrinks >> i & 1) != 0, from_start = (begins >> i & 1) != 0,
                   to_end = (ends >> i & 1) != 0;
        if (strides.v[i] != 1) {
            return unsupported("stride %lld; only 1 is supported", (long long)strides.v[i]);
        }
        if (!shrink && (from_start || from == 0) && to_end) {
            attrs.size.v[d] = -1;
        } else if (shrink && (from >= 0 || dim >= 0)) {
            attrs.begin.v[d] = from < 0 ? from + dim : from;
            attrs.size.v[d] = 1;
            if (attrs.begin.v[d] < 0 || (dim >= 0 && attrs.begin.v[d] >= dim)) {
                return sx_error(SX_DATA_LOSS, "index %lld is out of range for %lld elements",
                                (long long)from, (long long)dim);
            }
        } else if (!shrink && dim >= 0) {
            const int64_t first =
                from_start ? 0 : SX_MIN(SX_MAX(from < 0 ? from + dim : from, 0), dim);
            const int64_t last = to_end ? dim : SX_MIN(SX_MAX(to < 0 ? to + dim : to, 0), dim);
            attrs.begin.v[d] = first;
            attrs.size.v[d] = SX_MAX(last - first, 0);
        } else if (!shrink && to_end && from > 0) {
            attrs.begin.v[d] = from;
            attrs.size.v[d] = -1;
        } else {
            return unsupported("it cuts an axis whose size is unknown");
        }
        cuts = cuts || attrs.size.v[d] != -1 || attrs.begin.v[d] != 0;
        if (!shrink) {
            kept.v[kept.n++ % SX_MAX_RANK] = d;
        }
        d++;
    }
    if (kept.n > SX_MAX_RANK) {
        return unsupported("the result has rank %d, at most %d are supported", kept.n, SX_MAX_RANK);
    }
    y = v;
    for (int k = 0; k < type->rank; k++) {
        if (attrs.size.v[k] == -1 && attrs.begin.v[k] == 0 && type->dims[k] != SX_UNKNOWN_DIM) {
            attrs.size.v[k] = type->dims[k];
        } else if (attrs.size.v[k] == -1) {
            whole = false;
        }
    }
    if (cuts && whole) {
        BUILD(x, &y, slice, &attrs, v);
    } else if (cuts) {
        sx_value operands[2];
        SX_TRY(int64s(x, &attrs.begin, &operands[0]));
        SX_TRY(int64s(x, &attrs.size, &operands[1]));
        const sx_attr_operand open[] = {{attr_row(&sx_op_slice, "begin"), operands[0]},
                                        {attr_row(&sx_op_slice, "size"), operands[1]}};
        sx_type out = *type;
        for (int k = 0; k < type->rank; k++) {
            out.dims[k] = attrs.size.v[k] >= 0 ? attrs.size.v[k] : SX_UNKNOWN_DIM;
        }
        y = sx_build_node(x->b, &(sx_node_spec){.op = &sx_op_slice,
                                                .inputs = &v,
                                                .n_inputs = 1,
                                                .attr_operands = open,
                                                .n_attr_operands = 2,
                                                .types = &out,
                                                .n_types = 1,
                                                .device = "",
                                                .file = ""});
    }
    bool same = kept.n == type->rank;
    for (int k = 0; k < kept.n; k++) {
        same = same && kept.v[k] == k;
    }
    if (!same) {
        SX_TRY(reshape_dims(x, y, &kept, &y));
    }
    set(x, 0, y);
    return SX_OK;
}

/* x with a 1 before axis `at`. */
static sx_status expand(node *x, sx_value v, int64_t at, sx_value *out)
{
    const sx_type type = sx_type_of_value(x->b, v);
    sx_ints from = {0};
    if (type.rank == SX_UNKNOWN_RANK || type.rank >= SX_MAX_RANK) {
        return unsupported("an input has rank %d, expected a known rank below %d", type.rank,
                           SX_MAX_RANK);
    }
    at += at < 0 ? type.rank + 1 : 0;
    if (at < 0 || at > type.rank) {
        return sx_error(SX_DATA_LOSS, "axis %lld out of range for rank %d", (long long)at,
                        type.rank);
    }
    for (int d = 0; d <= type.rank; d++) {
        from.v[from.n++] = d == at ? -1 : d - (d > at);
    }
    return reshape_dims(x, v, &from, out);
}

static sx_status import_expand_dims(node *x)
{
    sx_value v = SX_NO_VALUE, y = SX_NO_VALUE;
    sx_ints axis = {0};
    SX_TRY(operand(x, 0, &v));
    SX_TRY(operand_ints(x, 1, &axis));
    if (axis.n != 1) {
        return unsupported("%d axes, expected one", axis.n);
    }
    SX_TRY(expand(x, v, axis.v[0], &y));
    set(x, 0, y);
    return SX_OK;
}

static sx_status import_pack(node *x)
{
    const int64_t axis = sx_tf_read_int(&x->tf.head, "axis", 0);
    sx_value *in = sx_arena_array(&x->im->arena, x->n->n_in + 1, sx_value), y = SX_NO_VALUE;
    if (in == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < x->n->n_in; i++) {
        SX_TRY(operand(x, i, &in[i]));
        SX_TRY(expand(x, in[i], axis, &in[i]));
    }
    if (x->n->n_in == 0) {
        return sx_error(SX_DATA_LOSS, "it packs nothing");
    }
    const int rank = x->tf.head.types[0].rank + 1;
    const sx_axis_attrs attrs = {axis < 0 ? axis + rank : axis};
    SX_TRY(build(x, &sx_op_concat, &attrs, &y, x->n->n_in, in));
    set(x, 0, y);
    return SX_OK;
}

static sx_status import_squeeze(node *x)
{
    sx_value v = SX_NO_VALUE, y = SX_NO_VALUE;
    sx_tf_attr list;
    bool gone[SX_MAX_RANK] = {false};
    sx_ints from = {0};
    SX_TRY(operand(x, 0, &v));
    SX_TRY(require_rank(x, 0));
    const sx_type *type = &x->tf.head.types[0];
    const bool named =
        x->tf.head.attr(&x->tf.head, "squeeze_dims", &list) && list.kind == SX_TF_ATTR_INTS;
    for (int i = 0; named && i < list.count; i++) {
        const int64_t d = list.ints[i] < 0 ? list.ints[i] + type->rank : list.ints[i];
        if (d < 0 || d >= type->rank || (type->dims[d] >= 0 && type->dims[d] != 1)) {
            return sx_error(SX_DATA_LOSS, "dimension %lld cannot be squeezed: its size is not 1",
                            (long long)d);
        }
        gone[d] = true;
    }
    for (int d = 0; d < type->rank; d++) {
        if (!named && type->dims[d] < 0 && !sx_dim_is_batch(type->dims[d])) {
            return unsupported("dimension %d, whose size is unknown, may be 1", d);
        }
        if (!(named ? gone[d] : type->dims[d] == 1)) {
            from.v[from.n++] = d;
        }
    }
    SX_TRY(reshape_dims(x, v, &from, &y));
    set(x, 0, y);
    return SX_OK;
}

/* dims, value */
static sx_status import_fill(node *x)
{
    sx_value dims = SX_NO_VALUE, v = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(operand(x, 0, &dims));
    SX_TRY(operand(x, 1, &v));
    SX_TRY(build_open(x, &sx_op_broadcast_to, NULL, v, "shape", dims, &y));
    set(x, 0, y);
    return SX_OK;
}

/* start, limit, delta: start + delta · (0, 1, …) */
static sx_status import_range(node *x)
{
    enum { MAX_RANGE = 1 << 20 };
    sx_ints start = {0}, limit = {0}, delta = {0};
    sx_value y = SX_NO_VALUE, by = SX_NO_VALUE;
    SX_TRY(operand_ints(x, 0, &start));
    SX_TRY(operand_ints(x, 2, &delta));
    if (start.n != 1 || delta.n != 1 || delta.v[0] == 0) {
        return unsupported("start and delta are not integers, or delta is 0");
    }
    const sx_dtype dtype = x->tf.head.types[0].dtype;
    sx_iota_attrs attrs = {.dtype = dtype};
    if (x->tf.head.values[1] != NULL) {
        SX_TRY(operand_ints(x, 1, &limit));
        int64_t distance = 0;
        if (limit.n != 1 || !sx_add_i64(limit.v[0], -start.v[0], &distance)) {
            return unsupported("limit is not an integer");
        }
        const int64_t n = distance / delta.v[0] + (distance % delta.v[0] != 0);
        if (n > MAX_RANGE) {
            return unsupported("%lld numbers; at most %d are supported", (long long)n, MAX_RANGE);
        }
        attrs.shape = (sx_ints){1, {SX_MAX(n, 0)}};
        SX_TRY(build(x, &sx_op_iota, &attrs, &y, 0, NULL));
    } else if (start.v[0] == 0 && delta.v[0] == 1) {
        sx_value end = SX_NO_VALUE;
        int n = 0;
        SX_TRY(operand(x, 1, &end));
        BUILD(x, &end, reshape, (&(sx_shape_attrs){{1, {1}}}), end);
        const sx_attr_operand open = {attr_row(&sx_op_iota, "shape"), end};
        SX_TRY(add_node(x, &sx_op_iota, &attrs, NULL, 0, &open, 1, &y, &n));
    } else {
        return unsupported("its limit is not a constant");
    }
    if (delta.v[0] != 1) {
        SX_TRY(scalar(x, dtype, (double)delta.v[0], &by));
        BUILD(x, &y, mul, NULL, y, by);
    }
    if (start.v[0] != 0) {
        SX_TRY(scalar(x, dtype, (double)start.v[0], &by));
        BUILD(x, &y, add, NULL, y, by);
    }
    set(x, 0, y);
    return SX_OK;
}

/* ---- Numbers ---- */

/* The sum divided by the number of elements, which is the sum of ones. */
static sx_status import_mean(node *x)
{
    sx_reduce_attrs attrs = {.keep_dims = sx_tf_read_bool(&x->tf.head, "keep_dims", false)};
    sx_value v = SX_NO_VALUE, axes = SX_NO_VALUE, sum = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(operand(x, 0, &v));
    SX_TRY(operand(x, 1, &axes));
    const sx_type *type = &x->tf.head.types[0];
    if (!sx_dtype_is_float(type->dtype)) {
        return unsupported("a mean of %s", sx_dtype_name(type->dtype));
    }
    double count = 1;
    bool known = x->tf.head.values[1] != NULL && type->rank != SX_UNKNOWN_RANK;
    if (known) {
        const sx_known_operand list = {.value = x->tf.head.values[1], .type = &x->tf.head.types[1]};
        SX_TRY(sx_attr_from_operand(&sx_op_reduce_sum, attr_row(&sx_op_reduce_sum, "axes"), &attrs,
                                    type, 1, &list, &known));
    }
    for (int i = 0; i < attrs.axes.n && known; i++) {
        const int64_t axis = attrs.axes.v[i];
        if (axis < 0 || axis >= type->rank) {
            return unsupported("axis %lld out of range for rank %d", (long long)axis, type->rank);
        }
        known = type->dims[axis] >= 0;
        count *= (double)type->dims[axis];
    }
    if (known) {
        sx_value by = SX_NO_VALUE;
        BUILD(x, &sum, reduce_sum, &attrs, v);
        SX_TRY(scalar(x, type->dtype, count, &by));
        BUILD(x, &y, div, NULL, sum, by);
    } else {
        const sx_reduce_attrs open = {.keep_dims = attrs.keep_dims};
        sx_value ones = SX_NO_VALUE, shape = SX_NO_VALUE;
        SX_TRY(build_open(x, &sx_op_reduce_sum, &open, v, "axes", axes, &sum));
        SX_TRY(scalar(x, type->dtype, 1, &ones));
        BUILD(x, &shape, shape, (&(sx_cast_attrs){SX_I64}), v);
        SX_TRY(build_open(x, &sx_op_broadcast_to, NULL, ones, "shape", shape, &ones));
        SX_TRY(build_open(x, &sx_op_reduce_sum, &open, ones, "axes", axes, &ones));
        BUILD(x, &y, div, NULL, sum, ones);
    }
    set(x, 0, y);
    return SX_OK;
}

/* filter [KH, KW, C, M] is that of C groups of M filters each: [KH, KW, 1, C·M]. */
static sx_status import_depthwise(node *x)
{
    sx_value in[2] = {SX_NO_VALUE, SX_NO_VALUE}, y = SX_NO_VALUE;
    sx_conv2d_attrs attrs = {0};
    int64_t filters;
    SX_TRY(operand(x, 0, &in[0]));
    SX_TRY(operand(x, 1, &in[1]));
    if (!sx_tf_read_is(&x->tf.head, "data_format", "NHWC", true)) {
        return unsupported("data_format is not NHWC");
    }
    SX_TRY(sx_tf_read_conv(&x->tf.head, &attrs));
    const sx_type *kernel = &x->tf.head.types[1];
    if (kernel->rank != 4 || !sx_type_is_static(kernel) ||
        !sx_mul_i64(kernel->dims[2], kernel->dims[3], &filters)) {
        return unsupported("the shape of the filter is unknown");
    }
    const sx_shape_attrs shape = {.shape = {4, {kernel->dims[0], kernel->dims[1], 1, filters}}};
    attrs.groups = kernel->dims[2];
    BUILD(x, &in[1], reshape, &shape, in[1]);
    BUILD(x, &y, conv2d, &attrs, in[0], in[1]);
    set(x, 0, y);
    return SX_OK;
}

/* The number of groups follows from the channels. */
static sx_status import_conv2d(node *x)
{
    if (x->n->n_in >= 2 &&
        (x->tf.head.types[0].rank != 4 || x->tf.head.types[0].dims[3] < 0 ||
         x->tf.head.types[1].rank != 4 || !sx_type_is_static(&x->tf.head.types[1]))) {
        return unsupported("the channels of its input, or the shape of its filter, are unknown");
    }
    return import_one(x);
}

/* e^x - 1, exact near 0: elu(x) up to 0, -elu(-x) e^x above. */
static sx_status import_expm1(node *x)
{
    const sx_alpha_attrs one = {.alpha = 1};
    sx_value v = SX_NO_VALUE, zero = SX_NO_VALUE, a = SX_NO_VALUE, b = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(operand(x, 0, &v));
    SX_TRY(scalar(x, x->tf.head.types[0].dtype, 0, &zero));
    BUILD(x, &a, neg, NULL, v);
    BUILD(x, &a, elu, &one, a);
    BUILD(x, &a, neg, NULL, a);
    BUILD(x, &b, exp, NULL, v);
    BUILD(x, &a, mul, NULL, a, b);
    BUILD(x, &b, elu, &one, v);
    BUILD(x, &y, greater, NULL, v, zero);
    BUILD(x, &y, select, NULL, y, a, b);
    set(x, 0, y);
    return SX_OK;
}

static sx_status import_not_equal(node *x)
{
    sx_value a = SX_NO_VALUE, b = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(operand(x, 0, &a));
    SX_TRY(operand(x, 1, &b));
    BUILD(x, &y, equal, NULL, a, b);
    BUILD(x, &y, logical_not, NULL, y);
    set(x, 0, y);
    return SX_OK;
}

static sx_status either(node *x, sx_value a, sx_value b, sx_value *y)
{
    BUILD(x, &a, logical_not, NULL, a);
    BUILD(x, &b, logical_not, NULL, b);
    BUILD(x, y, logical_and, NULL, a, b);
    BUILD(x, y, logical_not, NULL, *y);
    return SX_OK;
}

static sx_status import_or(node *x)
{
    sx_value a = SX_NO_VALUE, b = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(operand(x, 0, &a));
    SX_TRY(operand(x, 1, &b));
    SX_TRY(either(x, a, b, &y));
    set(x, 0, y);
    return SX_OK;
}

/* LessEqual, GreaterEqual: false where either is not a number. */
static sx_status import_or_equal(node *x)
{
    sx_value a = SX_NO_VALUE, b = SX_NO_VALUE, y = SX_NO_VALUE, same = SX_NO_VALUE;
    const bool less = strcmp(x->n->node->op, "LessEqual") == 0;
    SX_TRY(operand(x, 0, &a));
    SX_TRY(operand(x, 1, &b));
    const sx_value both[] = {a, b};
    SX_TRY(build(x, less ? &sx_op_less : &sx_op_greater, NULL, &y, 2, both));
    BUILD(x, &same, equal, NULL, a, b);
    SX_TRY(either(x, y, same, &y));
    set(x, 0, y);
    return SX_OK;
}

static sx_status import_where(node *x)
{
    sx_value v = SX_NO_VALUE, y = SX_NO_VALUE;
    SX_TRY(operand(x, 0, &v));
    BUILD(x, &y, where, NULL, v);
    set(x, 0, y);
    return SX_OK;
}

/* ---- The table ---- */

static const row rows[] = {
    {"Const", import_const, NULL},
    {"Placeholder", import_placeholder, NULL},
    {"PlaceholderWithDefault", import_identity, NULL},
    {"Identity", import_identity, NULL},
    {"IdentityN", import_identity, NULL},
    {"StopGradient", import_identity, NULL},
    {"PreventGradient", import_identity, NULL},
    {"NoOp", import_nothing, NULL},
    {"VarHandleOp", import_handle, NULL},
    {"ReadVariableOp", import_read, NULL},
    {"AssignVariableOp", import_assign, NULL},
    {"AssignAddVariableOp", import_assign, NULL},
    {"AssignSubVariableOp", import_assign, NULL},
    {"Assert", import_assert, NULL},
    {"If", import_if, NULL},
    {"StatelessIf", import_if, NULL},
    {"While", import_while, NULL},
    {"StatelessWhile", import_while, NULL},
    {"Add", import_one, "AddV2"},
    {"Shape", import_shape, NULL},
    {"Rank", import_rank, NULL},
    {"Size", import_size, NULL},
    {"StridedSlice", import_strided_slice, NULL},
    {"Pack", import_pack, NULL},
    {"Squeeze", import_squeeze, NULL},
    {"ExpandDims", import_expand_dims, NULL},
    {"Fill", import_fill, NULL},
    {"Range", import_range, NULL},
    {"Mean", import_mean, NULL},
    {"Conv2D", import_conv2d, NULL},
    {"DepthwiseConv2dNative", import_depthwise, NULL},
    {"Expm1", import_expm1, NULL},
    {"NotEqual", import_not_equal, NULL},
    {"LogicalOr", import_or, NULL},
    {"LessEqual", import_or_equal, NULL},
    {"GreaterEqual", import_or_equal, NULL},
    {"Where", import_where, NULL},
};

/* What the operators read themselves. */
static const row one_to_one = {"", import_one, NULL};

static const row *find_row(const char *tf_op)
{
    const sx_tf_form *form = NULL;
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        if (strcmp(rows[i].tf_op, tf_op) == 0) {
            return &rows[i];
        }
    }
    return sx_op_find_tf(tf_op, &form) != NULL ? &one_to_one : NULL;
}

bool sx_tf_import_has_op(const char *tf_op)
{
    return find_row(tf_op) != NULL;
}

sx_status sx_tf_import_op(sx_library_importer *im, sx_tf_body *body, sx_tf_import_node *n)
{
    node x = {.tf = sx_import_reader_of(n->node, &im->arena, body->b),
              .im = im,
              .body = body,
              .b = body->b,
              .n = n,
              .row = find_row(n->node->op)};
    sx_type *types = sx_arena_array(&im->arena, n->n_in + 1, sx_type);
    const sx_tensor **values = sx_arena_array(&im->arena, n->n_in + 1, const sx_tensor *);
    if (types == NULL || values == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < n->n_in; i++) {
        types[i] = sx_type_of_value(body->b, n->in[i].value);
        values[i] = n->in[i].known != NULL && n->in[i].known->type.dtype != SX_STRING
                        ? n->in[i].known
                        : NULL;
    }
    x.tf.head.n_in = n->n_in;
    x.tf.head.types = types;
    x.tf.head.values = values;
    return x.row->import(&x);
}
