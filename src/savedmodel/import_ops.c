/* Imports the nodes of a TensorFlow graph. An operator that is one of ours is read by that
 * operator's `from_tf` (graph/lower/tf_reader.h); the others have rows at the end of the file. */
#include <string.h>

#include "base/checked.h"
#include "graph/builder.h"
#include "graph/ops/common.h"
#include "savedmodel/export.h"
#include "savedmodel/import_internal.h"

static sx_import_reader reader_of(const sx_importer *im, const sx_import_node *n)
{
    return sx_import_reader_of(n->node, im->arena, im->b);
}

/* ---- Operands ---- */

#define unsupported(...) sx_error(SX_UNIMPLEMENTED, __VA_ARGS__)

sx_status sx_import_value(sx_importer *im, const sx_imported *v, sx_value *out)
{
    if (v->kind == SX_IMPORTED_VALUE) {
        *out = v->value;
        return SX_OK;
    }
    if (v->kind == SX_IMPORTED_CONST && v->constant.type.dtype != SX_STRING) {
        *out = v->node != NULL ? *v->node : SX_NO_VALUE;
        if (!sx_value_is(*out)) {
            *out = sx_constant(im->b, v->constant);
            if (v->node != NULL) {
                *v->node = *out;
            }
        }
        return SX_OK;
    }
    return unsupported("an input is strings or a variable handle, expected numbers");
}

static sx_status operand(sx_importer *im, const sx_import_node *n, int i, sx_value *out)
{
    if (i >= n->n_in) {
        return sx_error(SX_DATA_LOSS, "input %d is missing", i);
    }
    return sx_import_value(im, &n->in[i], out);
}

static void set(sx_import_node *n, sx_value value)
{
    n->out[0] = (sx_imported){.kind = SX_IMPORTED_VALUE, .value = value};
}

/* The integers of a constant operand of rank 0 or 1. */
static sx_status operand_ints(const sx_import_node *n, int i, sx_ints *out)
{
    if (i >= n->n_in || n->in[i].kind != SX_IMPORTED_CONST) {
        return unsupported("input %d is not a constant", i);
    }
    return sx_import_ints(&n->in[i].constant, i, out);
}

/* Reads the node as one of `op`, an operator that TensorFlow operator `tf_op` is, up to its
 * attributes and inputs: what a row then builds. */
static sx_status read_node(sx_importer *im, const sx_import_node *n, const char *tf_op,
                           const sx_op_def **out_op, void **out_attrs, sx_value **out_inputs,
                           int *out_n)
{
    const sx_tf_form *form = NULL;
    const sx_op_def *op = sx_op_find_tf(tf_op, &form);
    sx_import_reader r = reader_of(im, n);
    const size_t count = (size_t)n->n_in + 1;
    sx_type *types = sx_arena_array(im->arena, count, sx_type);
    const sx_tensor **values = sx_arena_array(im->arena, count, const sx_tensor *);
    sx_value *inputs = sx_arena_array(im->arena, count, sx_value);
    int *from = sx_arena_array(im->arena, count, int);
    void *attrs = sx_arena_alloc(im->arena, op->attrs_bytes + 1, sizeof(int64_t));
    if (types == NULL || values == NULL || inputs == NULL || from == NULL || attrs == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < n->n_in; i++) {
        const sx_imported *x = &n->in[i];
        /* -1 in a SHAPE is the batch, which reshape finds as what is left */
        const bool known = (x->kind == SX_IMPORTED_CONST && x->constant.type.dtype != SX_STRING) ||
                           (x->kind == SX_IMPORTED_SHAPE && op == &sx_op_reshape);
        values[i] = known ? &x->constant : NULL;
        types[i] =
            x->kind == SX_IMPORTED_VALUE ? sx_type_of_value(im->b, x->value) : x->constant.type;
    }
    r.head.types = types;
    r.head.values = values;
    r.head.n_in = n->n_in;
    SX_TRY(sx_tf_read_node(op, form, &r.head, attrs, from, out_n));
    for (int i = 0; i < *out_n; i++) {
        SX_TRY(operand(im, n, from[i], &inputs[i]));
    }
    *out_op = op;
    *out_attrs = attrs;
    *out_inputs = inputs;
    return SX_OK;
}

/* A node of TensorFlow that is one of ours, by its operator's `from_tf`. What the operator's
 * inference refuses is listed with all other nodes that cannot be imported. */
static sx_status import_one(sx_importer *im, sx_import_node *n)
{
    const sx_op_def *op;
    void *attrs;
    sx_value *in;
    sx_type out_types[SX_MAX_OUTPUTS];
    int n_in, n_out;
    SX_TRY(read_node(im, n, n->row->same_as != NULL ? n->row->same_as : n->node->op, &op, &attrs,
                     &in, &n_in));
    sx_type *types = sx_arena_array(im->arena, (size_t)n_in + 1, sx_type);
    if (types == NULL) {
        return sx_import_memory();
    }
    for (int i = 0; i < n_in; i++) {
        types[i] = sx_type_of_value(im->b, in[i]);
    }
    sx_status status = sx_infer_types(op, attrs, types, n_in, out_types, &n_out);
    if (status != SX_OK) {
        sx_status refused = unsupported("%s", sx_status_message(status));
        sx_status_free(status);
        return refused;
    }
    sx_value y = sx_build(im->b, op, attrs, in, n_in);
    for (int i = 0; i < n_out && i < n->n_out; i++) {
        n->out[i] = (sx_imported){.kind = SX_IMPORTED_VALUE, .value = sx_output_of(y, i)};
    }
    return SX_OK;
}

/* ---- The program around ---- */

static sx_status import_const(sx_importer *im, sx_import_node *n)
{
    n->out[0].kind = SX_IMPORTED_CONST;
    n->out[0].node = sx_arena_new(im->arena, sx_value); /* NULL: each use makes one */
    return sx_import_const_value(n->node, im->arena, &n->out[0].constant);
}

static sx_status import_handle(sx_importer *im, sx_import_node *n)
{
    sx_imported *y = &n->out[0];
    SX_TRY(sx_import_variable(im->model, n->node, &y->variable, &y->type));
    y->kind = SX_IMPORTED_HANDLE;
    return SX_OK;
}

static sx_status import_read(sx_importer *im, sx_import_node *n)
{
    if (n->n_in < 1 || n->in[0].kind != SX_IMPORTED_HANDLE) {
        return unsupported("its resource is not a variable of the graph");
    }
    const sx_variable_spec spec = {.name = n->in[0].variable, .type = n->in[0].type};
    set(n, sx_variable(im->b, &spec));
    return SX_OK;
}

/* The node marked by export: the decoded images (export.h) become an input of the graph. */
static sx_status import_images(sx_importer *im, sx_import_node *n, const ProtobufCBinaryData *text)
{
    const sx_signature *s = im->result->signature;
    const char *key = NULL;
    for (size_t i = 0; i < s->n_inputs; i++) {
        if (s->inputs[i].type.dtype == SX_STRING) {
            key = s->inputs[i].key;
        }
    }
    if (key == NULL || im->result->image_bytes != NULL) {
        return unsupported("it decodes images, but the signature has no input of encoded images");
    }
    json_error_t error;
    json_t *json = json_loadb((const char *)text->data, text->len, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL) {
        return sx_error(SX_DATA_LOSS, SX_PREPROCESS_ATTRIBUTE ": %s", error.text);
    }
    sx_status status = sx_preprocess_from_json(json, &im->result->preprocess);
    json_decref(json);
    SX_TRY(status, SX_PREPROCESS_ATTRIBUTE);
    const sx_preprocess *pre = &im->result->preprocess;
    im->result->image_bytes = key;
    im->result->image = SX_INPUT_IMAGE;
    set(n, sx_input(im->b, SX_INPUT_IMAGE,
                    sx_type_of(SX_F32, SX_BATCH, pre->height, pre->width, pre->channels)));
    return SX_OK;
}

static sx_status import_identity(sx_importer *im, sx_import_node *n)
{
    const Tensorflow__AttrValue *mark = sx_tf_node_attr(n->node, SX_PREPROCESS_ATTRIBUTE);
    if (mark != NULL && mark->value_case == TENSORFLOW__ATTR_VALUE__VALUE_S) {
        return import_images(im, n, &mark->s);
    }
    for (int i = 0; i < n->n_in && i < n->n_out; i++) {
        n->out[i] = n->in[i];
    }
    return SX_OK;
}

/* Called only for placeholders that the signature does not feed. */
static sx_status import_placeholder(sx_importer *im, sx_import_node *n)
{
    (void)im;
    (void)n;
    return sx_error(
        SX_DATA_LOSS,
        "an output depends on this placeholder, which is not an input of the signature");
}

static sx_status import_nothing(sx_importer *im, sx_import_node *n)
{
    (void)im;
    (void)n;
    return SX_OK;
}

/* ---- Shapes ---- */

static void set_reshaped(sx_importer *im, sx_import_node *n, sx_value x, sx_ints shape)
{
    set(n, sx_build_op(im->b, reshape, (&(sx_shape_attrs){.shape = shape}), x));
}

/* The shape of something with a batch stays symbolic: Flatten slices and packs it for Reshape. */
static sx_status import_shape(sx_importer *im, sx_import_node *n)
{
    sx_value x = SX_NO_VALUE;
    SX_TRY(operand(im, n, 0, &x));
    sx_type type = sx_type_of_value(im->b, x);
    const sx_import_reader r = reader_of(im, n);
    const sx_dtype dtype = sx_tf_read_dtype(&r.head, "out_type", SX_I32);
    if (dtype != SX_I32 && !(dtype == SX_I64 && sx_type_is_static(&type))) {
        return unsupported("out_type is not int32");
    }
    int64_t *wide = sx_arena_memdup(im->arena, type.dims, sizeof(type.dims));
    int32_t *dims = sx_arena_array(im->arena, type.rank + 1, int32_t);
    if (wide == NULL || dims == NULL) {
        return sx_import_memory();
    }
    for (int d = 0; d < type.rank; d++) {
        dims[d] = type.dims[d] < 0 ? -1 : (int32_t)type.dims[d];
    }
    n->out[0].kind = sx_type_has_batch(&type) ? SX_IMPORTED_SHAPE : SX_IMPORTED_CONST;
    n->out[0].constant =
        (sx_tensor){sx_type_of(dtype, type.rank), dtype == SX_I64 ? (void *)wide : (void *)dims};
    return SX_OK;
}

/* One element of a shape: x[i:i+1] with the axis dropped. */
static sx_status import_strided_slice(sx_importer *im, sx_import_node *n)
{
    sx_ints begin = {0}, end = {0}, strides = {0};
    const sx_import_reader r = reader_of(im, n);
    const sx_imported *x = n->n_in > 0 ? &n->in[0] : NULL;
    if (x == NULL || (x->kind != SX_IMPORTED_SHAPE && x->kind != SX_IMPORTED_CONST) ||
        x->constant.type.dtype != SX_I32 || x->constant.type.rank != 1 ||
        sx_tf_read_int(&r.head, "shrink_axis_mask", 0) != 1 ||
        sx_tf_read_int(&r.head, "begin_mask", 0) != 0 ||
        sx_tf_read_int(&r.head, "end_mask", 0) != 0) {
        return unsupported("only one element of a shape can be sliced");
    }
    SX_TRY(operand_ints(n, 1, &begin));
    SX_TRY(operand_ints(n, 2, &end));
    SX_TRY(operand_ints(n, 3, &strides));
    int64_t size = x->constant.type.dims[0];
    int64_t at = begin.n == 1 ? begin.v[0] + (begin.v[0] < 0 ? size : 0) : -1;
    if (at < 0 || at >= size) {
        return sx_error(SX_DATA_LOSS, "index out of range for a shape of rank %lld",
                        (long long)size);
    }
    int32_t *element = (int32_t *)x->constant.data + at;
    n->out[0].kind =
        x->kind == SX_IMPORTED_SHAPE && *element == -1 ? SX_IMPORTED_SHAPE : SX_IMPORTED_CONST;
    n->out[0].constant = (sx_tensor){sx_scalar_type(SX_I32), element};
    return SX_OK;
}

/* Packs scalars into a shape. */
static sx_status import_pack(sx_importer *im, sx_import_node *n)
{
    int32_t *dims = sx_arena_array(im->arena, n->n_in + 1, int32_t);
    const sx_import_reader r = reader_of(im, n);
    bool symbolic = false;
    if (dims == NULL) {
        return sx_import_memory();
    }
    if (sx_tf_read_int(&r.head, "axis", 0) != 0) {
        return unsupported("axis is not 0");
    }
    for (int i = 0; i < n->n_in; i++) {
        const sx_imported *x = &n->in[i];
        if ((x->kind != SX_IMPORTED_SHAPE && x->kind != SX_IMPORTED_CONST) ||
            x->constant.type.dtype != SX_I32 || x->constant.type.rank != 0) {
            return unsupported("only the dimensions of a shape can be packed");
        }
        symbolic |= x->kind == SX_IMPORTED_SHAPE;
        dims[i] = *(const int32_t *)x->constant.data;
    }
    n->out[0].kind = symbolic ? SX_IMPORTED_SHAPE : SX_IMPORTED_CONST;
    n->out[0].constant = (sx_tensor){sx_type_of(SX_I32, n->n_in), dims};
    return SX_OK;
}

static sx_status import_squeeze(sx_importer *im, sx_import_node *n)
{
    sx_value x = SX_NO_VALUE;
    SX_TRY(operand(im, n, 0, &x));
    sx_type type = sx_type_of_value(im->b, x);
    const sx_import_reader r = reader_of(im, n);
    sx_tf_attr list;
    bool named = r.head.attr(&r.head, "squeeze_dims", &list) && list.kind == SX_TF_ATTR_INTS,
         gone[SX_MAX_RANK] = {false};
    for (int i = 0; named && i < list.count; i++) {
        int64_t d = list.ints[i] < 0 ? list.ints[i] + type.rank : list.ints[i];
        if (d < 0 || d >= type.rank || type.dims[d] != 1) {
            return sx_error(SX_DATA_LOSS, "dimension %lld cannot be squeezed: its size is not 1",
                            (long long)d);
        }
        gone[d] = true;
    }
    sx_ints shape = {0};
    for (int d = 0; d < type.rank; d++) {
        if (!(named ? gone[d] : type.dims[d] == 1)) {
            shape.v[shape.n++] = type.dims[d];
        }
    }
    set_reshaped(im, n, x, shape);
    return SX_OK;
}

static sx_status import_expand_dims(sx_importer *im, sx_import_node *n)
{
    sx_value x = SX_NO_VALUE;
    sx_ints axis = {0};
    SX_TRY(operand(im, n, 0, &x));
    SX_TRY(operand_ints(n, 1, &axis));
    sx_type type = sx_type_of_value(im->b, x);
    if (axis.n != 1 || type.rank == SX_MAX_RANK) {
        return unsupported("%d axes, and x of rank %d; one axis and a rank below %d are supported",
                           axis.n, type.rank, SX_MAX_RANK);
    }
    int64_t at = axis.v[0] + (axis.v[0] < 0 ? type.rank + 1 : 0);
    if (at < 0 || at > type.rank) {
        return sx_error(SX_DATA_LOSS, "axis %lld out of range for rank %d", (long long)axis.v[0],
                        type.rank);
    }
    sx_ints shape = {.n = type.rank + 1};
    for (int d = 0; d < shape.n; d++) {
        shape.v[d] = d == at ? 1 : type.dims[d < at ? d : d - 1];
    }
    set_reshaped(im, n, x, shape);
    return SX_OK;
}

/* ---- Reductions ---- */

/* The sum divided by the number of elements, which is known unless the batch is reduced. */
static sx_status import_mean(sx_importer *im, sx_import_node *n)
{
    const sx_op_def *op;
    void *read;
    sx_value *in;
    int n_in;
    SX_TRY(read_node(im, n, "Sum", &op, &read, &in, &n_in));
    const sx_reduce_attrs *attrs = read;
    sx_type type = sx_type_of_value(im->b, in[0]);
    double count = 1;
    for (int i = 0; i < attrs->axes.n; i++) {
        const int64_t axis = attrs->axes.v[i];
        if (axis < 0 || axis >= type.rank) {
            return unsupported("axis %lld out of range for rank %d", (long long)axis, type.rank);
        }
        if (type.dims[axis] < 0 || type.dtype != SX_F32) {
            return unsupported("only means of float32 over other dimensions than the batch");
        }
        count *= (double)type.dims[axis];
    }
    set(n, sx_build_op(im->b, div, NULL, sx_build_op(im->b, reduce_sum, attrs, in[0]),
                       sx_scalar(im->b, SX_F32, count)));
    return SX_OK;
}

/* ---- Products, indices ---- */

/* filter [KH, KW, C, M] is that of C groups of M filters each: [KH, KW, 1, C·M]. */
static sx_status import_depthwise(sx_importer *im, sx_import_node *n)
{
    const sx_op_def *op;
    void *read;
    sx_value *in;
    int n_in;
    int64_t filters;
    SX_TRY(read_node(im, n, "Conv2D", &op, &read, &in, &n_in));
    sx_conv2d_attrs *attrs = read;
    sx_type kernel = sx_type_of_value(im->b, in[1]);
    if (kernel.rank != 4 || !sx_mul_i64(kernel.dims[2], kernel.dims[3], &filters)) {
        return sx_error(SX_DATA_LOSS, "the filter has rank %d, expected 4", kernel.rank);
    }
    const sx_shape_attrs shape = {.shape = {4, {kernel.dims[0], kernel.dims[1], 1, filters}}};
    attrs->groups = kernel.dims[2];
    set(n, sx_build_op(im->b, conv2d, attrs, in[0], sx_build_op(im->b, reshape, &shape, in[1])));
    return SX_OK;
}

/* Gathering strings becomes a lookup on the host. */
static sx_status import_gather(sx_importer *im, sx_import_node *n)
{
    const sx_imported *table = n->n_in > 0 ? &n->in[0] : NULL;
    sx_value index = SX_NO_VALUE;
    sx_ints axis = {0};
    if (table == NULL || table->kind != SX_IMPORTED_CONST ||
        table->constant.type.dtype != SX_STRING) {
        return import_one(im, n);
    }
    const sx_import_reader r = reader_of(im, n);
    SX_TRY(operand(im, n, 1, &index));
    SX_TRY(operand_ints(n, 2, &axis));
    if (axis.n != 1 || axis.v[0] != 0 || sx_tf_read_int(&r.head, "batch_dims", 0) != 0) {
        return unsupported("axis or batch_dims is not 0");
    }
    if (table->constant.type.rank != 1) {
        return unsupported("the table of strings has more than one dimension");
    }
    n->out[0] =
        (sx_imported){.kind = SX_IMPORTED_LOOKUP, .value = index, .constant = table->constant};
    return SX_OK;
}

/* e^x - 1, exact near 0: elu(x) up to 0, -elu(-x) e^x above. */
static sx_status import_expm1(sx_importer *im, sx_import_node *n)
{
    const sx_alpha_attrs one = {.alpha = 1};
    sx_value x = SX_NO_VALUE;
    SX_TRY(operand(im, n, 0, &x));
    sx_value zero = sx_scalar_like(im->b, x, 0);
    sx_value opposite = sx_build_op(im->b, elu, &one, sx_build_op(im->b, neg, NULL, x));
    sx_value above = sx_build_op(im->b, mul, NULL, sx_build_op(im->b, neg, NULL, opposite),
                                 sx_build_op(im->b, exp, NULL, x));
    set(n, sx_build_op(im->b, select, NULL, sx_build_op(im->b, greater, NULL, x, zero), above,
                       sx_build_op(im->b, elu, &one, x)));
    return SX_OK;
}

/* The int32 or int64 numbers from `start` to `limit`, known when importing. */
static sx_status import_range(sx_importer *im, sx_import_node *n)
{
    enum { MAX_RANGE = 1 << 20 };
    sx_ints start = {0}, limit = {0}, delta = {0};
    SX_TRY(operand_ints(n, 0, &start));
    SX_TRY(operand_ints(n, 1, &limit));
    SX_TRY(operand_ints(n, 2, &delta));
    bool numbers = start.n == 1 && limit.n == 1 && delta.n == 1 && delta.v[0] == 1;
    if (!numbers || start.v[0] != 0 || limit.v[0] < 0 || limit.v[0] > MAX_RANGE) {
        return unsupported("only ranges 0, 1, ... of at most %d numbers are supported",
                           (int)MAX_RANGE);
    }
    sx_iota_attrs attrs = {.shape = {1, {limit.v[0]}}, .dtype = n->in[0].constant.type.dtype};
    set(n, sx_build(im->b, &sx_op_iota, &attrs, NULL, 0));
    return SX_OK;
}

/* The number of elements, int32: of a batch, that which is executed. */
static sx_status import_size(sx_importer *im, sx_import_node *n)
{
    sx_value x = SX_NO_VALUE;
    sx_axes_attrs all = {.axes = {0}};
    const sx_import_reader r = reader_of(im, n);
    SX_TRY(operand(im, n, 0, &x));
    sx_type type = sx_type_of_value(im->b, x);
    for (int d = 0; d < type.rank; d++) {
        all.axes.v[all.axes.n++] = d;
    }
    sx_cast_attrs to = {.dtype = sx_tf_read_dtype(&r.head, "out_type", SX_I32)};
    set(n, sx_build_op(im->b, cast, &to, sx_build_op(im->b, size, &all, x)));
    return SX_OK;
}

/* ---- The table ---- */

/* TensorFlow's operators that are none or several of ours, or have another meaning here. */
static const sx_import_row rows[] = {
    {"Const", import_const, NULL},
    {"Placeholder", import_placeholder, NULL},
    {"PlaceholderWithDefault", import_identity, NULL},
    {"VarHandleOp", import_handle, NULL},
    {"ReadVariableOp", import_read, NULL},
    {"Identity", import_identity, NULL},
    {"IdentityN", import_identity, NULL},
    {"StopGradient", import_identity, NULL},
    {"NoOp", import_nothing, NULL},
    {"Add", import_one, "AddV2"},
    {"Shape", import_shape, NULL},
    {"StridedSlice", import_strided_slice, NULL},
    {"Pack", import_pack, NULL},
    {"Squeeze", import_squeeze, NULL},
    {"ExpandDims", import_expand_dims, NULL},
    {"Mean", import_mean, NULL},
    {"DepthwiseConv2dNative", import_depthwise, NULL},
    {"GatherV2", import_gather, NULL},
    {"Expm1", import_expm1, NULL},
    {"Range", import_range, NULL},
    {"Size", import_size, NULL},
};

/* What the operators read themselves. */
static const sx_import_row one = {"", import_one, NULL};

const sx_import_row *sx_import_find(const char *tf_op)
{
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        if (strcmp(rows[i].tf_op, tf_op) == 0) {
            return &rows[i];
        }
    }
    const sx_tf_form *form;
    return sx_op_find_tf(tf_op, &form) != NULL ? &one : NULL;
}
