/* Attribute values as messages; see tf_attrs.h. One function per kind of value, in a table. */
#include "savedmodel/tf_attrs.h"

#include <string.h>

Tensorflow__TensorShapeProto *sx_tf_shape_message(sx_arena *arena, const sx_type *type)
{
    Tensorflow__TensorShapeProto *shape = sx_arena_new(arena, Tensorflow__TensorShapeProto);
    int rank = type->rank == SX_UNKNOWN_RANK ? 0 : type->rank;
    Tensorflow__TensorShapeProto__Dim *dims =
        sx_arena_array(arena, rank + 1, Tensorflow__TensorShapeProto__Dim);
    Tensorflow__TensorShapeProto__Dim **list =
        sx_arena_array(arena, rank + 1, Tensorflow__TensorShapeProto__Dim *);
    if (shape == NULL || dims == NULL || list == NULL) {
        return NULL;
    }
    tensorflow__tensor_shape_proto__init(shape);
    for (int i = 0; i < rank; i++) {
        tensorflow__tensor_shape_proto__dim__init(&dims[i]);
        dims[i].size = type->dims[i] < 0 ? -1 : type->dims[i];
        list[i] = &dims[i];
    }
    shape->n_dim = (size_t)rank;
    shape->dim = list;
    shape->unknown_rank = type->rank == SX_UNKNOWN_RANK;
    return shape;
}

static bool copy_strings(sx_arena *arena, const sx_bytes *strings, size_t n,
                         Tensorflow__TensorProto *out)
{
    out->string_val = sx_arena_array(arena, n + 1, ProtobufCBinaryData);
    if (out->string_val == NULL) {
        return false;
    }
    out->n_string_val = n;
    for (size_t i = 0; i < n; i++) {
        uint8_t *copy = sx_arena_memdup(arena, strings[i].data, strings[i].size);
        if (copy == NULL) {
            return false;
        }
        out->string_val[i] = (ProtobufCBinaryData){strings[i].size, copy};
    }
    return true;
}

static Tensorflow__TensorProto *tensor_message(sx_arena *arena, const sx_tensor *tensor)
{
    Tensorflow__TensorProto *out = sx_arena_new(arena, Tensorflow__TensorProto);
    if (out == NULL) {
        return NULL;
    }
    tensorflow__tensor_proto__init(out);
    out->dtype = (Tensorflow__DataType)tensor->type.dtype;
    out->tensor_shape = sx_tf_shape_message(arena, &tensor->type);
    if (out->tensor_shape == NULL) {
        return NULL;
    }
    if (tensor->type.dtype == SX_STRING) {
        int64_t n = sx_type_elems(&tensor->type);
        return n >= 0 && copy_strings(arena, tensor->data, (size_t)n, out) ? out : NULL;
    }
    int64_t bytes = sx_type_bytes(&tensor->type);
    if (bytes > 0) {
        out->tensor_content.len = (size_t)bytes;
        out->tensor_content.data = sx_arena_memdup(arena, tensor->data, (size_t)bytes);
    }
    return bytes <= 0 || out->tensor_content.data != NULL ? out : NULL;
}

typedef bool attr_fn(sx_arena *arena, const sx_tf_attr *attr, Tensorflow__AttrValue *out);

static bool fill_type(sx_arena *arena, const sx_tf_attr *attr, Tensorflow__AttrValue *out)
{
    (void)arena;
    out->type = (Tensorflow__DataType)attr->i;
    return true;
}

static bool fill_int(sx_arena *arena, const sx_tf_attr *attr, Tensorflow__AttrValue *out)
{
    (void)arena;
    out->i = attr->i;
    return true;
}

static bool fill_float(sx_arena *arena, const sx_tf_attr *attr, Tensorflow__AttrValue *out)
{
    (void)arena;
    out->f = attr->f;
    return true;
}

static bool fill_bool(sx_arena *arena, const sx_tf_attr *attr, Tensorflow__AttrValue *out)
{
    (void)arena;
    out->b = attr->b;
    return true;
}

static bool fill_string(sx_arena *arena, const sx_tf_attr *attr, Tensorflow__AttrValue *out)
{
    out->s.data = (uint8_t *)sx_arena_strdup(arena, attr->s);
    out->s.len = strlen(attr->s);
    return out->s.data != NULL;
}

static bool fill_func(sx_arena *arena, const sx_tf_attr *attr, Tensorflow__AttrValue *out)
{
    out->func = sx_arena_new(arena, Tensorflow__NameAttrList);
    if (out->func == NULL) {
        return false;
    }
    tensorflow__name_attr_list__init(out->func);
    out->func->name = sx_arena_strdup(arena, attr->s);
    return out->func->name != NULL;
}

static bool fill_shape(sx_arena *arena, const sx_tf_attr *attr, Tensorflow__AttrValue *out)
{
    out->shape = sx_tf_shape_message(arena, attr->shapes);
    return out->shape != NULL;
}

static bool fill_tensor(sx_arena *arena, const sx_tf_attr *attr, Tensorflow__AttrValue *out)
{
    out->tensor = tensor_message(arena, attr->tensor);
    return out->tensor != NULL;
}

static bool list_of(sx_arena *arena, Tensorflow__AttrValue *out)
{
    out->list = sx_arena_new(arena, Tensorflow__AttrValue__ListValue);
    if (out->list == NULL) {
        return false;
    }
    tensorflow__attr_value__list_value__init(out->list);
    return true;
}

static bool fill_ints(sx_arena *arena, const sx_tf_attr *attr, Tensorflow__AttrValue *out)
{
    size_t n = (size_t)attr->count;
    if (!list_of(arena, out)) {
        return false;
    }
    out->list->n_i = n;
    out->list->i = sx_arena_memdup(arena, attr->ints, n * sizeof(*attr->ints));
    return n == 0 || out->list->i != NULL;
}

static bool fill_floats(sx_arena *arena, const sx_tf_attr *attr, Tensorflow__AttrValue *out)
{
    size_t n = (size_t)attr->count;
    if (!list_of(arena, out)) {
        return false;
    }
    out->list->n_f = n;
    out->list->f = sx_arena_memdup(arena, attr->floats, n * sizeof(*attr->floats));
    return n == 0 || out->list->f != NULL;
}

static bool fill_strings(sx_arena *arena, const sx_tf_attr *attr, Tensorflow__AttrValue *out)
{
    size_t n = (size_t)attr->count;
    const char *at = attr->s;
    if (!list_of(arena, out)) {
        return false;
    }
    out->list->s = sx_arena_array(arena, n + 1, ProtobufCBinaryData);
    for (size_t i = 0; i < n && out->list->s != NULL; i++) {
        const size_t size = strcspn(at, ",");
        out->list->s[i] =
            (ProtobufCBinaryData){size, (uint8_t *)sx_arena_memdup(arena, at, size + 1)};
        if (out->list->s[i].data == NULL) {
            return false;
        }
        out->list->n_s++;
        at += size + (at[size] == ',');
    }
    return out->list->s != NULL;
}

static bool fill_types(sx_arena *arena, const sx_tf_attr *attr, Tensorflow__AttrValue *out)
{
    size_t n = (size_t)attr->count;
    if (!list_of(arena, out)) {
        return false;
    }
    out->list->type = sx_arena_array(arena, n + 1, Tensorflow__DataType);
    if (out->list->type == NULL) {
        return false;
    }
    out->list->n_type = n;
    for (size_t i = 0; i < n; i++) {
        out->list->type[i] = (Tensorflow__DataType)attr->types[i];
    }
    return true;
}

static bool fill_shapes(sx_arena *arena, const sx_tf_attr *attr, Tensorflow__AttrValue *out)
{
    size_t n = (size_t)attr->count;
    if (!list_of(arena, out)) {
        return false;
    }
    out->list->shape = sx_arena_array(arena, n + 1, Tensorflow__TensorShapeProto *);
    if (out->list->shape == NULL) {
        return false;
    }
    out->list->n_shape = n;
    for (size_t i = 0; i < n; i++) {
        out->list->shape[i] = sx_tf_shape_message(arena, &attr->shapes[i]);
        if (out->list->shape[i] == NULL) {
            return false;
        }
    }
    return true;
}

static const struct {
    Tensorflow__AttrValue__ValueCase kind;
    attr_fn *fill;
} attr_kinds[] = {
    [SX_TF_ATTR_TYPE] = {TENSORFLOW__ATTR_VALUE__VALUE_TYPE, fill_type},
    [SX_TF_ATTR_TYPES] = {TENSORFLOW__ATTR_VALUE__VALUE_LIST, fill_types},
    [SX_TF_ATTR_SHAPE] = {TENSORFLOW__ATTR_VALUE__VALUE_SHAPE, fill_shape},
    [SX_TF_ATTR_SHAPES] = {TENSORFLOW__ATTR_VALUE__VALUE_LIST, fill_shapes},
    [SX_TF_ATTR_TENSOR] = {TENSORFLOW__ATTR_VALUE__VALUE_TENSOR, fill_tensor},
    [SX_TF_ATTR_INT] = {TENSORFLOW__ATTR_VALUE__VALUE_I, fill_int},
    [SX_TF_ATTR_INTS] = {TENSORFLOW__ATTR_VALUE__VALUE_LIST, fill_ints},
    [SX_TF_ATTR_FLOAT] = {TENSORFLOW__ATTR_VALUE__VALUE_F, fill_float},
    [SX_TF_ATTR_BOOL] = {TENSORFLOW__ATTR_VALUE__VALUE_B, fill_bool},
    [SX_TF_ATTR_STRING] = {TENSORFLOW__ATTR_VALUE__VALUE_S, fill_string},
    [SX_TF_ATTR_STRINGS] = {TENSORFLOW__ATTR_VALUE__VALUE_LIST, fill_strings},
    [SX_TF_ATTR_FLOATS] = {TENSORFLOW__ATTR_VALUE__VALUE_LIST, fill_floats},
    [SX_TF_ATTR_FUNC] = {TENSORFLOW__ATTR_VALUE__VALUE_FUNC, fill_func},
};

static Tensorflow__NodeDef__AttrEntry *attr_message(sx_arena *arena, const sx_tf_attr *attr)
{
    Tensorflow__NodeDef__AttrEntry *entry = sx_arena_new(arena, Tensorflow__NodeDef__AttrEntry);
    Tensorflow__AttrValue *value = sx_arena_new(arena, Tensorflow__AttrValue);
    char *key = sx_arena_strdup(arena, attr->name);
    if (entry == NULL || value == NULL || key == NULL) {
        return NULL;
    }
    tensorflow__node_def__attr_entry__init(entry);
    tensorflow__attr_value__init(value);
    value->value_case = attr_kinds[attr->kind].kind;
    entry->key = key;
    entry->value = value;
    return attr_kinds[attr->kind].fill(arena, attr, value) ? entry : NULL;
}

bool sx_tf_set_attrs(sx_arena *arena, Tensorflow__NodeDef *node, sx_tf_attr_list attrs)
{
    node->attr = sx_arena_array(arena, attrs.count + 1, Tensorflow__NodeDef__AttrEntry *);
    if (node->attr == NULL) {
        return false;
    }
    for (int i = 0; i < attrs.count; i++) {
        Tensorflow__NodeDef__AttrEntry *entry = attr_message(arena, &attrs.items[i]);
        if (entry == NULL) {
            return false;
        }
        int at = i;
        for (; at > 0 && strcmp(node->attr[at - 1]->key, entry->key) > 0; at--) {
            node->attr[at] = node->attr[at - 1];
        }
        node->attr[at] = entry;
    }
    node->n_attr = (size_t)attrs.count;
    return true;
}
