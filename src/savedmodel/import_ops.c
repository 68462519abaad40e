/* Maps TensorFlow's operators to Sextant's: one row each, at the end of the file. Absent
 * attributes, and those of an unexpected kind, have TensorFlow's defaults. */
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/host.h"
#include "graph/ops/common.h"
#include "savedmodel/export.h"
#include "savedmodel/import_internal.h"

/* ---- Attributes ---- */

static const Tensorflow__AttrValue *attr(const sx_import_node *n, const char *name,
                                         Tensorflow__AttrValue__ValueCase kind)
{
    const Tensorflow__AttrValue *a = sx_tf_node_attr(n->node, name);
    return a != NULL && a->value_case == kind ? a : NULL;
}

static bool attr_bool(const sx_import_node *n, const char *name, bool otherwise)
{
    const Tensorflow__AttrValue *a = attr(n, name, TENSORFLOW__ATTR_VALUE__VALUE_B);
    return a != NULL ? a->b != 0 : otherwise;
}

static double attr_float(const sx_import_node *n, const char *name, double otherwise)
{
    const Tensorflow__AttrValue *a = attr(n, name, TENSORFLOW__ATTR_VALUE__VALUE_F);
    return a != NULL ? (double)a->f : otherwise;
}

static int64_t attr_int(const sx_import_node *n, const char *name, int64_t otherwise)
{
    const Tensorflow__AttrValue *a = attr(n, name, TENSORFLOW__ATTR_VALUE__VALUE_I);
    return a != NULL ? a->i : otherwise;
}

static sx_dtype attr_dtype(const sx_import_node *n, const char *name, sx_dtype otherwise)
{
    const Tensorflow__AttrValue *a = attr(n, name, TENSORFLOW__ATTR_VALUE__VALUE_TYPE);
    return a != NULL ? (sx_dtype)a->type : otherwise;
}

static bool attr_is(const sx_import_node *n, const char *name, const char *text, bool otherwise)
{
    const Tensorflow__AttrValue *a = attr(n, name, TENSORFLOW__ATTR_VALUE__VALUE_S);
    return a == NULL ? otherwise
                     : a->s.len == strlen(text) && memcmp(a->s.data, text, a->s.len) == 0;
}

/* A list of integers; false if it is absent or its length is not `count`. */
static bool attr_ints(const sx_import_node *n, const char *name, size_t count, int64_t *out)
{
    const Tensorflow__AttrValue *a = attr(n, name, TENSORFLOW__ATTR_VALUE__VALUE_LIST);
    if (a == NULL || a->list == NULL || a->list->n_i != count) {
        return false;
    }
    memcpy(out, a->list->i, count * sizeof(*out));
    return true;
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

static sx_status ints_of(const sx_tensor *t, int i, sx_ints *out)
{
    int64_t count = sx_type_elems(&t->type);
    if ((t->type.dtype != SX_I32 && t->type.dtype != SX_I64) || t->type.rank > 1 ||
        count > SX_MAX_RANK) {
        return unsupported("input %d is not a list of at most 8 integers", i);
    }
    sx_ints ints = {.n = (int)count};
    for (int k = 0; k < ints.n; k++) {
        ints.v[k] =
            t->type.dtype == SX_I32 ? ((const int32_t *)t->data)[k] : ((const int64_t *)t->data)[k];
    }
    *out = ints;
    return SX_OK;
}

/* The integers of a constant operand of rank 0 or 1. */
static sx_status operand_ints(const sx_import_node *n, int i, sx_ints *out)
{
    if (i >= n->n_in || n->in[i].kind != SX_IMPORTED_CONST) {
        return unsupported("input %d is not a constant", i);
    }
    return ints_of(&n->in[i].constant, i, out);
}

/* The same where -1 may stand for the batch. */
static sx_status shape_ints(const sx_import_node *n, int i, sx_ints *out)
{
    if (i < n->n_in && n->in[i].kind == SX_IMPORTED_SHAPE) {
        return ints_of(&n->in[i].constant, i, out);
    }
    return operand_ints(n, i, out);
}

/* The number that a constant operand of one element holds. */
static sx_status operand_number(const sx_import_node *n, int i, double *out)
{
    const sx_tensor *t =
        i < n->n_in && n->in[i].kind == SX_IMPORTED_CONST ? &n->in[i].constant : NULL;
    if (t == NULL || t->type.dtype == SX_STRING || sx_type_elems(&t->type) != 1) {
        return unsupported("input %d is not a constant number", i);
    }
    *out = sx_host_load_element(t->type.dtype, t->data);
    return SX_OK;
}

static sx_status require_nhwc(const sx_import_node *n)
{
    return attr_is(n, "data_format", "NHWC", true) ? SX_OK : unsupported("data_format is not NHWC");
}

/* Sorts the axes, removes duplicates and makes negative ones positive, as in Sextant's attributes.
 */
static sx_status normalize_axes(sx_ints *axes, int rank)
{
    bool seen[SX_MAX_RANK] = {false};
    for (int i = 0; i < axes->n; i++) {
        int64_t axis = axes->v[i] < 0 ? axes->v[i] + rank : axes->v[i];
        if (axis < 0 || axis >= rank) {
            return sx_error(SX_DATA_LOSS, "axis %lld out of range for rank %d",
                            (long long)axes->v[i], rank);
        }
        seen[axis] = true;
    }
    axes->n = 0;
    for (int d = 0; d < rank; d++) {
        if (seen[d]) {
            axes->v[axes->n++] = d;
        }
    }
    return SX_OK;
}

/* ---- The program around ---- */

static sx_status import_const(sx_importer *im, sx_import_node *n)
{
    const Tensorflow__AttrValue *value = attr(n, "value", TENSORFLOW__ATTR_VALUE__VALUE_TENSOR);
    if (value == NULL || value->tensor == NULL) {
        return sx_error(SX_DATA_LOSS, "Const has no value");
    }
    n->out[0].kind = SX_IMPORTED_CONST;
    n->out[0].node = sx_arena_new(im->arena, sx_value); /* NULL: each use makes one */
    return sx_tf_tensor_value(value->tensor, im->arena, &n->out[0].constant);
}

static sx_status import_handle(sx_importer *im, sx_import_node *n)
{
    const char *key = sx_saved_model_variable_key(im->model, n->node->name);
    const sx_bundle *bundle = sx_saved_model_variables(im->model);
    const sx_bundle_entry *e = key == NULL || bundle == NULL ? NULL : sx_bundle_find(bundle, key);
    if (e == NULL) {
        return sx_error(SX_DATA_LOSS, "the checkpoint has no value for this variable");
    }
    if (e->type.dtype == SX_DTYPE_NONE || e->type.dtype == SX_STRING) {
        return unsupported("variables of TensorFlow's type %d are not supported", e->tf_dtype);
    }
    n->out[0] = (sx_imported){.kind = SX_IMPORTED_HANDLE, .variable = key, .type = e->type};
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
    const Tensorflow__AttrValue *mark =
        attr(n, SX_PREPROCESS_ATTRIBUTE, TENSORFLOW__ATTR_VALUE__VALUE_S);
    if (mark != NULL) {
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

/* ---- One to one ---- */

/* Operator `row->op` with the same inputs, without attributes. */
static sx_status import_same(sx_importer *im, sx_import_node *n)
{
    const sx_op_def *op = sx_op_find(n->row->op);
    sx_value in[3];
    if (op == NULL || op->n_in < 1 || op->n_in > 3) {
        return unsupported("operator %s is not built in", n->row->op);
    }
    for (int i = 0; i < op->n_in; i++) {
        SX_TRY(operand(im, n, i, &in[i]));
    }
    sx_value y = sx_build(im->b, op, NULL, in, op->n_in);
    for (int i = 0; i < op->n_out && i < n->n_out; i++) {
        n->out[i] = (sx_imported){.kind = SX_IMPORTED_VALUE, .value = sx_output_of(y, i)};
    }
    return SX_OK;
}

static sx_status import_bias_add(sx_importer *im, sx_import_node *n)
{
    SX_TRY(require_nhwc(n));
    return import_same(im, n);
}

static sx_status import_cast(sx_importer *im, sx_import_node *n)
{
    sx_value x = SX_NO_VALUE;
    SX_TRY(operand(im, n, 0, &x));
    sx_dtype dtype = attr_dtype(n, "DstT", SX_DTYPE_NONE);
    set(n, dtype == sx_type_of_value(im->b, x).dtype
               ? x
               : sx_build_op(im->b, cast, (&(sx_cast_attrs){.dtype = dtype}), x));
    return SX_OK;
}

static sx_status import_leaky_relu(sx_importer *im, sx_import_node *n)
{
    const sx_op_def *op = sx_op_find(n->row->op);
    sx_value x = SX_NO_VALUE;
    if (op == NULL) {
        return unsupported("operator %s is not built in", n->row->op);
    }
    SX_TRY(operand(im, n, 0, &x));
    const sx_alpha_attrs attrs = {.alpha = attr_float(n, "alpha", 0.2)};
    set(n, sx_build(im->b, op, &attrs, &x, 1));
    return SX_OK;
}

/* ---- Shapes ---- */

/* The product of all dimensions except the batch. */
static int64_t counted(const int64_t *dims, int rank)
{
    int64_t product = 1;
    for (int d = 0; d < rank; d++) {
        if (dims[d] > 0 && !sx_mul_i64(product, dims[d], &product)) {
            return -1;
        }
        product = dims[d] == 0 ? 0 : product;
    }
    return product;
}

static sx_status reshape_to(sx_importer *im, sx_import_node *n, sx_value x, sx_ints shape)
{
    sx_type type = sx_type_of_value(im->b, x);
    int axis = sx_batch_axis(&type);
    int64_t want = counted(shape.v, shape.n), have = counted(type.dims, type.rank);
    if (axis >= 0 && !sx_mul_i64(have, -type.dims[axis], &have)) {
        have = -1;
    }
    for (int d = 0; d < shape.n; d++) {
        if (shape.v[d] != -1) {
            continue;
        }
        if (axis >= 0 && (want <= 0 || have < 0 || have % want != 0 ||
                          counted(type.dims, axis) != counted(shape.v, d))) {
            return unsupported("it moves elements between the batch and other dimensions");
        }
        shape.v[d] = axis < 0 ? (want > 0 ? have / want : 0) : SX_BATCH * (have / want);
    }
    set(n, sx_build_op(im->b, reshape, (&(sx_shape_attrs){.shape = shape}), x));
    return SX_OK;
}

/* The shape of something with a batch stays symbolic: Flatten slices and packs it for Reshape. */
static sx_status import_shape(sx_importer *im, sx_import_node *n)
{
    sx_value x = SX_NO_VALUE;
    SX_TRY(operand(im, n, 0, &x));
    sx_type type = sx_type_of_value(im->b, x);
    const sx_dtype dtype = attr_dtype(n, "out_type", SX_I32);
    if (dtype != SX_I32 && !(dtype == SX_I64 && sx_type_is_static(&type))) {
        return unsupported("out_type is not int32");
    }
    int64_t *wide = sx_arena_memdup(im->arena, type.dims, sizeof(type.dims));
    int32_t *dims = sx_arena_array(im->arena, type.rank + 1, int32_t);
    if (wide == NULL || dims == NULL) {
        return sx_no_memory("importing a model, or over its memory limit");
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
    (void)im;
    const sx_imported *x = n->n_in > 0 ? &n->in[0] : NULL;
    if (x == NULL || (x->kind != SX_IMPORTED_SHAPE && x->kind != SX_IMPORTED_CONST) ||
        x->constant.type.dtype != SX_I32 || x->constant.type.rank != 1 ||
        attr_int(n, "shrink_axis_mask", 0) != 1 || attr_int(n, "begin_mask", 0) != 0 ||
        attr_int(n, "end_mask", 0) != 0) {
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
    bool symbolic = false;
    if (dims == NULL) {
        return sx_no_memory("importing a model, or over its memory limit");
    }
    if (attr_int(n, "axis", 0) != 0) {
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

static sx_status import_reshape(sx_importer *im, sx_import_node *n)
{
    sx_value x = SX_NO_VALUE;
    sx_ints shape = {0};
    SX_TRY(operand(im, n, 0, &x));
    SX_TRY(shape_ints(n, 1, &shape));
    return reshape_to(im, n, x, shape);
}

static sx_status import_squeeze(sx_importer *im, sx_import_node *n)
{
    sx_value x = SX_NO_VALUE;
    SX_TRY(operand(im, n, 0, &x));
    sx_type type = sx_type_of_value(im->b, x);
    const Tensorflow__AttrValue *list = attr(n, "squeeze_dims", TENSORFLOW__ATTR_VALUE__VALUE_LIST);
    bool named = list != NULL && list->list != NULL && list->list->n_i > 0,
         gone[SX_MAX_RANK] = {false};
    for (size_t i = 0; named && i < list->list->n_i; i++) {
        int64_t d = list->list->i[i] < 0 ? list->list->i[i] + type.rank : list->list->i[i];
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
    return reshape_to(im, n, x, shape);
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
    return reshape_to(im, n, x, shape);
}

static sx_status import_transpose(sx_importer *im, sx_import_node *n)
{
    const sx_op_def *op = sx_op_find(n->row->op);
    sx_value x = SX_NO_VALUE;
    sx_transpose_attrs attrs = {0};
    if (op == NULL) {
        return unsupported("operator %s is not built in", n->row->op);
    }
    SX_TRY(operand(im, n, 0, &x));
    SX_TRY(operand_ints(n, 1, &attrs.perm));
    set(n, sx_build(im->b, op, &attrs, &x, 1));
    return SX_OK;
}

/* paddings [rank, 2], and for PadV2 the value. */
static sx_status import_pad(sx_importer *im, sx_import_node *n)
{
    const sx_op_def *op = sx_op_find(n->row->op);
    sx_value x = SX_NO_VALUE;
    sx_pad_attrs attrs = {0};
    SX_TRY(operand(im, n, 0, &x));
    int rank = sx_type_of_value(im->b, x).rank;
    const sx_tensor *paddings =
        n->n_in > 1 && n->in[1].kind == SX_IMPORTED_CONST ? &n->in[1].constant : NULL;
    if (op == NULL || paddings == NULL || paddings->type.dtype != SX_I32 ||
        sx_type_elems(&paddings->type) != 2 * rank) {
        return unsupported("paddings are not an int32 constant [%d,2]", rank);
    }
    if (n->n_in > 2) {
        SX_TRY(operand_number(n, 2, &attrs.value));
    }
    attrs.before.n = attrs.after.n = rank;
    for (int d = 0; d < rank; d++) {
        attrs.before.v[d] = ((const int32_t *)paddings->data)[2 * d];
        attrs.after.v[d] = ((const int32_t *)paddings->data)[2 * d + 1];
    }
    set(n, sx_build(im->b, op, &attrs, &x, 1));
    return SX_OK;
}

/* The axis comes last. */
static sx_status import_concat(sx_importer *im, sx_import_node *n)
{
    const sx_op_def *op = sx_op_find(n->row->op);
    sx_ints axis = {0};
    int count = n->n_in - 1;
    sx_value *xs = count < 1 ? NULL : sx_arena_array(im->arena, count, sx_value);
    if (op == NULL || xs == NULL) {
        return unsupported("operator %s is not built in", n->row->op);
    }
    SX_TRY(operand_ints(n, count, &axis));
    for (int i = 0; i < count; i++) {
        SX_TRY(operand(im, n, i, &xs[i]));
    }
    SX_TRY(normalize_axes(&axis, sx_type_of_value(im->b, xs[0]).rank));
    const sx_axis_attrs attrs = {.axis = axis.n == 1 ? axis.v[0] : 0};
    set(n, sx_build(im->b, op, &attrs, xs, count));
    return SX_OK;
}

/* ---- Reductions ---- */

static sx_status take_reduction(sx_importer *im, const sx_import_node *n, sx_value *out_x,
                                sx_reduce_attrs *out)
{
    SX_TRY(operand(im, n, 0, out_x));
    SX_TRY(operand_ints(n, 1, &out->axes));
    out->keep_dims = attr_bool(n, "keep_dims", false);
    return normalize_axes(&out->axes, sx_type_of_value(im->b, *out_x).rank);
}

static sx_status import_reduce(sx_importer *im, sx_import_node *n)
{
    const sx_op_def *op = sx_op_find(n->row->op);
    sx_value x = SX_NO_VALUE;
    sx_reduce_attrs attrs = {0};
    SX_TRY(take_reduction(im, n, &x, &attrs));
    set(n, sx_build(im->b, op, &attrs, &x, 1));
    return SX_OK;
}

/* The sum divided by the number of elements, which is known unless the batch is reduced. */
static sx_status import_mean(sx_importer *im, sx_import_node *n)
{
    sx_value x = SX_NO_VALUE;
    sx_reduce_attrs attrs = {0};
    SX_TRY(take_reduction(im, n, &x, &attrs));
    sx_type type = sx_type_of_value(im->b, x);
    double count = 1;
    for (int i = 0; i < attrs.axes.n; i++) {
        int64_t dim = type.dims[attrs.axes.v[i]];
        if (dim < 0 || type.dtype != SX_F32) {
            return unsupported("a mean over the batch, or of a type other than float32");
        }
        count *= (double)dim;
    }
    sx_value sum = sx_build_op(im->b, reduce_sum, &attrs, x);
    float divisor = (float)count;
    sx_value by = sx_constant(im->b, (sx_tensor){sx_scalar_type(SX_F32), &divisor});
    set(n, sx_build_op(im->b, div, NULL, sum, by));
    return SX_OK;
}

static sx_status import_argmax(sx_importer *im, sx_import_node *n)
{
    sx_value x = SX_NO_VALUE;
    sx_ints axis = {0};
    SX_TRY(operand(im, n, 0, &x));
    SX_TRY(operand_ints(n, 1, &axis));
    SX_TRY(normalize_axes(&axis, sx_type_of_value(im->b, x).rank));
    const sx_argmax_attrs attrs = {.axis = axis.n == 1 ? axis.v[0] : 0,
                                   .dtype = attr_dtype(n, "output_type", SX_I64)};
    set(n, sx_build_op(im->b, argmax, &attrs, x));
    return SX_OK;
}

/* ---- Products and windows ---- */

static sx_status import_matmul(sx_importer *im, sx_import_node *n)
{
    sx_value a = SX_NO_VALUE, b = SX_NO_VALUE;
    SX_TRY(operand(im, n, 0, &a));
    SX_TRY(operand(im, n, 1, &b));
    const sx_matmul_attrs attrs = {.transpose_a = attr_bool(n, "transpose_a", false),
                                   .transpose_b = attr_bool(n, "transpose_b", false)};
    set(n, sx_build_op(im->b, matmul, &attrs, a, b));
    return SX_OK;
}

static sx_status take_padding(const sx_import_node *n, int32_t *out)
{
    static const struct {
        const char *name;
        sx_padding padding;
    } paddings[] = {{"VALID", SX_VALID}, {"SAME", SX_SAME}, {"EXPLICIT", SX_EXPLICIT}};
    for (size_t i = 0; i < SX_COUNT(paddings); i++) {
        if (attr_is(n, "padding", paddings[i].name, false)) {
            *out = (int32_t)paddings[i].padding;
            return SX_OK;
        }
    }
    return sx_error(SX_DATA_LOSS, "unknown padding");
}

/* {1, h, w, 1} */
static sx_status take_pair(const sx_import_node *n, const char *name, bool required, sx_ints *out)
{
    int64_t list[4] = {1, 1, 1, 1};
    if ((!attr_ints(n, name, 4, list) && required) || list[0] != 1 || list[3] != 1) {
        return unsupported("%s is not {1, h, w, 1}", name);
    }
    *out = (sx_ints){.n = 2, .v = {list[1], list[2]}};
    return SX_OK;
}

static sx_status take_conv(const sx_import_node *n, sx_conv2d_attrs *out)
{
    SX_TRY(require_nhwc(n));
    SX_TRY(take_pair(n, "strides", true, &out->strides));
    SX_TRY(take_pair(n, "dilations", false, &out->dilations));
    SX_TRY(take_padding(n, &out->padding));
    int64_t pads[8];
    if (out->padding == SX_EXPLICIT) {
        if (!attr_ints(n, "explicit_paddings", 8, pads)) {
            return sx_error(SX_DATA_LOSS, "padding is EXPLICIT, but explicit_paddings is missing");
        }
        out->pads = (sx_ints){.n = 4, .v = {pads[2], pads[3], pads[4], pads[5]}};
    }
    return SX_OK;
}

static sx_status import_conv2d(sx_importer *im, sx_import_node *n)
{
    sx_value x = SX_NO_VALUE, filter = SX_NO_VALUE;
    sx_conv2d_attrs attrs = {0};
    SX_TRY(operand(im, n, 0, &x));
    SX_TRY(operand(im, n, 1, &filter));
    SX_TRY(take_conv(n, &attrs));
    sx_type in = sx_type_of_value(im->b, x), kernel = sx_type_of_value(im->b, filter);
    bool grouped =
        in.rank == 4 && kernel.rank == 4 && kernel.dims[2] > 0 && in.dims[3] % kernel.dims[2] == 0;
    attrs.groups = grouped ? in.dims[3] / kernel.dims[2] : 1;
    set(n, sx_build_op(im->b, conv2d, &attrs, x, filter));
    return SX_OK;
}

/* filter [KH, KW, C, M] is that of C groups of M filters each: [KH, KW, 1, C·M]. */
static sx_status import_depthwise(sx_importer *im, sx_import_node *n)
{
    sx_value x = SX_NO_VALUE, filter = SX_NO_VALUE;
    sx_conv2d_attrs attrs = {0};
    SX_TRY(operand(im, n, 0, &x));
    SX_TRY(operand(im, n, 1, &filter));
    SX_TRY(take_conv(n, &attrs));
    sx_type kernel = sx_type_of_value(im->b, filter);
    int64_t filters;
    if (kernel.rank != 4 || !sx_mul_i64(kernel.dims[2], kernel.dims[3], &filters)) {
        return sx_error(SX_DATA_LOSS, "the filter has rank %d, expected 4", kernel.rank);
    }
    const sx_shape_attrs shape = {.shape = {4, {kernel.dims[0], kernel.dims[1], 1, filters}}};
    attrs.groups = kernel.dims[2];
    set(n, sx_build_op(im->b, conv2d, &attrs, x, sx_build_op(im->b, reshape, &shape, filter)));
    return SX_OK;
}

static sx_status import_pool(sx_importer *im, sx_import_node *n)
{
    sx_value x = SX_NO_VALUE;
    sx_pool2d_attrs attrs = {0};
    SX_TRY(operand(im, n, 0, &x));
    SX_TRY(require_nhwc(n));
    SX_TRY(take_pair(n, "ksize", true, &attrs.window));
    SX_TRY(take_pair(n, "strides", true, &attrs.strides));
    SX_TRY(take_padding(n, &attrs.padding));
    set(n, sx_build(im->b, sx_op_find(n->row->op), &attrs, &x, 1));
    return SX_OK;
}

static sx_status import_batch_norm(sx_importer *im, sx_import_node *n)
{
    const sx_op_def *op = sx_op_find(n->row->op);
    sx_value in[5];
    if (op == NULL || attr_bool(n, "is_training", true)) {
        return unsupported("is_training is true");
    }
    SX_TRY(require_nhwc(n));
    for (int i = 0; i < 5; i++) {
        SX_TRY(operand(im, n, i, &in[i]));
    }
    const sx_batch_norm_attrs attrs = {.epsilon = attr_float(n, "epsilon", 1e-4)};
    set(n, sx_build(im->b, op, &attrs, in, 5));
    return SX_OK;
}

/* Gathering strings becomes a lookup on the host; gathering numbers is an operator. */
static sx_status import_gather(sx_importer *im, sx_import_node *n)
{
    sx_value index = SX_NO_VALUE;
    sx_ints axis = {0};
    SX_TRY(operand(im, n, 1, &index));
    SX_TRY(operand_ints(n, 2, &axis));
    if (axis.n != 1 || axis.v[0] != 0 || attr_int(n, "batch_dims", 0) != 0) {
        return unsupported("axis or batch_dims is not 0");
    }
    if (n->in[0].kind == SX_IMPORTED_CONST && n->in[0].constant.type.dtype == SX_STRING) {
        if (n->in[0].constant.type.rank != 1) {
            return unsupported("the table of strings has more than one dimension");
        }
        n->out[0] = (sx_imported){
            .kind = SX_IMPORTED_LOOKUP, .value = index, .constant = n->in[0].constant};
        return SX_OK;
    }
    const sx_op_def *op = sx_op_find(n->row->op);
    sx_value in[2] = {SX_NO_VALUE, index};
    if (op == NULL) {
        return unsupported("operator %s is not built in", n->row->op);
    }
    SX_TRY(operand(im, n, 0, &in[0]));
    set(n, sx_build(im->b, op, NULL, in, 2));
    return SX_OK;
}

static sx_status import_elu(sx_importer *im, sx_import_node *n)
{
    sx_value x = SX_NO_VALUE;
    SX_TRY(operand(im, n, 0, &x));
    set(n, sx_build_op(im->b, elu, (&(sx_alpha_attrs){.alpha = 1}), x));
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

static sx_status import_clip(sx_importer *im, sx_import_node *n)
{
    sx_value x = SX_NO_VALUE;
    sx_clip_attrs attrs = {0};
    SX_TRY(operand(im, n, 0, &x));
    SX_TRY(operand_number(n, 1, &attrs.low));
    SX_TRY(operand_number(n, 2, &attrs.high));
    set(n, sx_build_op(im->b, clip, &attrs, x));
    return SX_OK;
}

static sx_status import_one_hot(sx_importer *im, sx_import_node *n)
{
    sx_value indices = SX_NO_VALUE;
    sx_one_hot_attrs attrs = {0};
    double depth = 0;
    SX_TRY(operand(im, n, 0, &indices));
    SX_TRY(operand_number(n, 1, &depth));
    SX_TRY(operand_number(n, 2, &attrs.on));
    SX_TRY(operand_number(n, 3, &attrs.off));
    int rank = sx_type_of_value(im->b, indices).rank;
    int64_t axis = attr_int(n, "axis", -1);
    if (axis != -1 && axis != rank) {
        return unsupported("axis is not the last one");
    }
    attrs.depth = (int64_t)depth;
    attrs.dtype = n->in[2].constant.type.dtype;
    set(n, sx_build_op(im->b, one_hot, &attrs, indices));
    return SX_OK;
}

/* A size of -1 reaches to the end; the batch is not cut. */
static sx_status import_slice(sx_importer *im, sx_import_node *n)
{
    sx_value x = SX_NO_VALUE;
    sx_slice_attrs attrs = {0};
    SX_TRY(operand(im, n, 0, &x));
    SX_TRY(operand_ints(n, 1, &attrs.begin));
    SX_TRY(operand_ints(n, 2, &attrs.size));
    sx_type type = sx_type_of_value(im->b, x);
    for (int d = 0; d < type.rank && d < attrs.begin.n && d < attrs.size.n; d++) {
        bool batch = sx_dim_is_batch(type.dims[d]);
        if (batch && (attrs.begin.v[d] != 0 || attrs.size.v[d] != -1)) {
            return unsupported("it takes a part of the batch");
        }
        if (attrs.size.v[d] == -1) {
            attrs.size.v[d] = type.dims[d] - (batch ? 0 : attrs.begin.v[d]);
        }
    }
    set(n, sx_build_op(im->b, slice, &attrs, x));
    return SX_OK;
}

static sx_status import_broadcast_to(sx_importer *im, sx_import_node *n)
{
    sx_value x = SX_NO_VALUE;
    sx_shape_attrs attrs = {0};
    SX_TRY(operand(im, n, 0, &x));
    SX_TRY(operand_ints(n, 1, &attrs.shape));
    set(n, sx_build_op(im->b, broadcast_to, &attrs, x));
    return SX_OK;
}

static sx_status import_top_k(sx_importer *im, sx_import_node *n)
{
    sx_value x = SX_NO_VALUE;
    double k = 0;
    SX_TRY(operand(im, n, 0, &x));
    SX_TRY(operand_number(n, 1, &k));
    if (n->n_out < 2 || !attr_bool(n, "sorted", true)) {
        return unsupported("sorted is false");
    }
    sx_value values = sx_build_op(im->b, top_k, (&(sx_top_k_attrs){.k = (int64_t)k}), x);
    set(n, values);
    n->out[1] = (sx_imported){.kind = SX_IMPORTED_VALUE, .value = sx_output_of(values, 1)};
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
    SX_TRY(operand(im, n, 0, &x));
    sx_type type = sx_type_of_value(im->b, x);
    for (int d = 0; d < type.rank; d++) {
        all.axes.v[all.axes.n++] = d;
    }
    sx_cast_attrs to = {.dtype = attr_dtype(n, "out_type", SX_I32)};
    set(n, sx_build_op(im->b, cast, &to, sx_build_op(im->b, size, &all, x)));
    return SX_OK;
}

/* ---- The table ---- */

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
    {"Abs", import_same, "abs"},
    {"Sign", import_same, "sign"},
    {"Neg", import_same, "neg"},
    {"Square", import_same, "square"},
    {"Sqrt", import_same, "sqrt"},
    {"Rsqrt", import_same, "rsqrt"},
    {"Exp", import_same, "exp"},
    {"Log", import_same, "log"},
    {"Log1p", import_same, "log1p"},
    {"Cos", import_same, "cos"},
    {"Floor", import_same, "floor"},
    {"Tanh", import_same, "tanh"},
    {"Sigmoid", import_same, "sigmoid"},
    {"Relu", import_same, "relu"},
    {"Relu6", import_same, "relu6"},
    {"LeakyRelu", import_leaky_relu, "leaky_relu"},
    {"Softmax", import_same, "softmax"},
    {"LogSoftmax", import_same, "log_softmax"},
    {"LogicalNot", import_same, "logical_not"},
    {"Add", import_same, "add"},
    {"AddV2", import_same, "add"},
    {"Sub", import_same, "sub"},
    {"Mul", import_same, "mul"},
    {"RealDiv", import_same, "div"},
    {"Pow", import_same, "pow"},
    {"Maximum", import_same, "maximum"},
    {"Minimum", import_same, "minimum"},
    {"Equal", import_same, "equal"},
    {"Less", import_same, "less"},
    {"Greater", import_same, "greater"},
    {"LogicalAnd", import_same, "logical_and"},
    {"SelectV2", import_same, "select"},
    {"BiasAdd", import_bias_add, "bias_add"},
    {"Cast", import_cast, NULL},
    {"Reshape", import_reshape, NULL},
    {"Shape", import_shape, NULL},
    {"StridedSlice", import_strided_slice, NULL},
    {"Pack", import_pack, NULL},
    {"Squeeze", import_squeeze, NULL},
    {"ExpandDims", import_expand_dims, NULL},
    {"Transpose", import_transpose, "transpose"},
    {"Pad", import_pad, "pad"},
    {"PadV2", import_pad, "pad"},
    {"ConcatV2", import_concat, "concat"},
    {"Sum", import_reduce, "reduce_sum"},
    {"Max", import_reduce, "reduce_max"},
    {"Mean", import_mean, NULL},
    {"ArgMax", import_argmax, NULL},
    {"MatMul", import_matmul, NULL},
    {"Conv2D", import_conv2d, NULL},
    {"DepthwiseConv2dNative", import_depthwise, NULL},
    {"MaxPool", import_pool, "max_pool2d"},
    {"AvgPool", import_pool, "avg_pool2d"},
    {"FusedBatchNormV3", import_batch_norm, "batch_norm"},
    {"GatherV2", import_gather, "gather"},
    {"Expm1", import_expm1, NULL},
    {"ReluGrad", import_same, "relu_grad"},
    {"SparseSoftmaxCrossEntropyWithLogits", import_same, "sparse_softmax_cross_entropy"},
    {"SoftmaxCrossEntropyWithLogits", import_same, "softmax_cross_entropy"},
    {"Elu", import_elu, NULL},
    {"ClipByValue", import_clip, NULL},
    {"OneHot", import_one_hot, NULL},
    {"Slice", import_slice, NULL},
    {"BroadcastTo", import_broadcast_to, NULL},
    {"TopKV2", import_top_k, NULL},
    {"Range", import_range, NULL},
    {"Size", import_size, NULL},
};

const sx_import_row *sx_import_find(const char *tf_op)
{
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        if (strcmp(rows[i].tf_op, tf_op) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}
