/* TensorProto to tensor: either tensor_content, or the list for the dtype. A short list is extended
 * with its last value, an empty one with zeros. */
#include "proto/tensor_value.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <sextant/complex.h>

#include "base/checked.h"
#include "proto/wire.h"

enum { FIRST_REF = 100 }; /* a reference to a type has its number, and this more */

sx_dtype sx_tf_plain_dtype(int tf_dtype)
{
    switch (tf_dtype) {
    case TENSORFLOW__DATA_TYPE__DT_QINT8:
        return SX_I8;
    case TENSORFLOW__DATA_TYPE__DT_QUINT8:
        return SX_U8;
    case TENSORFLOW__DATA_TYPE__DT_QINT16:
        return SX_I16;
    case TENSORFLOW__DATA_TYPE__DT_QUINT16:
        return SX_U16;
    case TENSORFLOW__DATA_TYPE__DT_QINT32:
        return SX_I32;
    default:
        return (sx_dtype)tf_dtype;
    }
}

const char *sx_tf_dtype_text(int tf_dtype, char text[SX_TF_DTYPE_TEXT])
{
    static const struct {
        Tensorflow__DataType type;
        const char *name; /* where it is not the one of the enum */
    } names[] = {{TENSORFLOW__DATA_TYPE__DT_FLOAT, "float32"},
                 {TENSORFLOW__DATA_TYPE__DT_DOUBLE, "float64"},
                 {TENSORFLOW__DATA_TYPE__DT_HALF, "float16"}};
    const bool is_ref = tf_dtype > FIRST_REF;
    const int plain = is_ref ? tf_dtype - FIRST_REF : tf_dtype;
    const ProtobufCEnumValue *row =
        protobuf_c_enum_descriptor_get_value(&tensorflow__data_type__descriptor, plain);
    if (row == NULL) {
        snprintf(text, SX_TF_DTYPE_TEXT, "type %d", tf_dtype);
        return text;
    }
    const char *name = row->name + strlen("DT_");
    for (size_t i = 0; i < SX_COUNT(names); i++) {
        name = (int)names[i].type == plain ? names[i].name : name;
    }
    snprintf(text, SX_TF_DTYPE_TEXT, "%s%s", name, is_ref ? "_ref" : "");
    for (char *c = text; *c != '\0'; c++) {
        *c = (char)tolower((unsigned char)*c);
    }
    return text;
}

const char *sx_tf_type_text(int tf_dtype, const sx_type *type, char text[SX_TF_TYPE_TEXT])
{
    char dtype[SX_TF_DTYPE_TEXT], whole[SX_TYPE_TEXT];
    const sx_dtype plain = type != NULL ? type->dtype : sx_tf_plain_dtype(tf_dtype);
    const bool known = sx_dtype_is_data(plain) || sx_dtype_is_complex(plain);
    const char *dims = "";
    if (type != NULL) {
        dims = sx_type_format(type, whole, sizeof(whole)) + strlen(sx_dtype_name(type->dtype));
    }
    snprintf(text, SX_TF_TYPE_TEXT, "%s%s",
             known ? sx_dtype_name(plain) : sx_tf_dtype_text(tf_dtype, dtype), dims);
    return text;
}

bool sx_tf_dtype_is_new(int tf_dtype)
{
    return tf_dtype % FIRST_REF >= TENSORFLOW__DATA_TYPE__DT_FLOAT8_E5M2;
}

sx_status sx_tf_tensor_type(const Tensorflow__TensorProto *m, sx_type *out)
{
    sx_type type = {.dtype = sx_tf_plain_dtype((int)m->dtype)};
    const Tensorflow__TensorShapeProto *shape = m->tensor_shape;
    size_t rank = shape == NULL ? 0 : shape->n_dim;
    if (!sx_dtype_is_data(type.dtype)) {
        char text[SX_TF_DTYPE_TEXT];
        return sx_error(SX_UNIMPLEMENTED, "a tensor is %s, which is not supported",
                        sx_tf_dtype_text((int)m->dtype, text));
    }
    if (shape != NULL && shape->unknown_rank) {
        return sx_error(SX_DATA_LOSS, "a tensor has no shape, expected its sizes");
    }
    if (rank > SX_MAX_RANK) {
        return sx_error(SX_UNIMPLEMENTED, "a tensor has %zu dimensions; at most %d are supported",
                        rank, SX_MAX_RANK);
    }
    type.rank = (int)rank;
    for (size_t i = 0; i < rank; i++) {
        type.dims[i] = shape->dim[i]->size;
        if (type.dims[i] < 0) {
            return sx_error(SX_DATA_LOSS, "a tensor has dimension %lld", (long long)type.dims[i]);
        }
    }
    if (sx_type_elems(&type) < 0) {
        return sx_error(SX_DATA_LOSS, "a tensor has too many elements");
    }
    *out = type;
    return SX_OK;
}

/* The list with the values of a dtype, and the conversion of its items to elements. */
struct list {
    const void *items;
    size_t count, item_bytes;
};

static struct list typed_list(const Tensorflow__TensorProto *m)
{
    switch ((int)m->dtype) {
    case SX_F32:
        return (struct list){m->float_val, m->n_float_val, sizeof(float)};
    case SX_F64:
        return (struct list){m->double_val, m->n_double_val, sizeof(double)};
    case SX_I64:
        return (struct list){m->int64_val, m->n_int64_val, sizeof(int64_t)};
    case SX_U32:
        return (struct list){m->uint32_val, m->n_uint32_val, sizeof(uint32_t)};
    case SX_U64:
        return (struct list){m->uint64_val, m->n_uint64_val, sizeof(uint64_t)};
    case SX_BOOL:
        return (struct list){m->bool_val, m->n_bool_val, sizeof(protobuf_c_boolean)};
    case SX_F16:
    case SX_BF16:
        return (struct list){m->half_val, m->n_half_val, sizeof(int32_t)};
    default:
        return (struct list){m->int_val, m->n_int_val, sizeof(int32_t)};
    }
}

static void store(const struct list *list, size_t i, size_t elem_bytes, uint8_t *out)
{
    if (list->count == 0) {
        memset(out, 0, elem_bytes);
        return;
    }
    const uint8_t *item =
        (const uint8_t *)list->items + (i < list->count ? i : list->count - 1) * list->item_bytes;
    memcpy(out, item, elem_bytes); /* little-endian: the low bytes of a wider item come first */
}

static sx_status numbers(const Tensorflow__TensorProto *m, const sx_type *type, sx_arena *arena,
                         void **out)
{
    int64_t bytes = sx_type_bytes(type);
    size_t elems = (size_t)sx_type_elems(type), elem_bytes = sx_dtype_bytes(type->dtype);
    if (m->tensor_content.len > 0 && (int64_t)m->tensor_content.len != bytes) {
        return sx_error(SX_DATA_LOSS, "a tensor has %zu bytes, expected %lld for its shape",
                        m->tensor_content.len, (long long)bytes);
    }
    uint8_t *data = bytes < 0 ? NULL : sx_arena_alloc(arena, (size_t)bytes + 1, 1);
    if (data == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "a tensor has %lld bytes, over the limit",
                        (long long)bytes);
    }
    if (m->tensor_content.len > 0) {
        memcpy(data, m->tensor_content.data, m->tensor_content.len);
    } else {
        struct list list = typed_list(m);
        for (size_t i = 0; i < elems; i++) {
            store(&list, i, elem_bytes, data + i * elem_bytes);
        }
    }
    *out = data;
    return SX_OK;
}

/* Strings in tensor_content: the size of each as a varint, then their bytes. */
static sx_status string_list(const Tensorflow__TensorProto *m, size_t elems, sx_bytes *views,
                             void **out)
{
    sx_wire wire = sx_wire_over((sx_bytes){m->tensor_content.data, m->tensor_content.len});
    bool sound = true;
    for (size_t i = 0; i < elems && sound; i++) {
        uint64_t size = 0;
        sound = sx_wire_varint(&wire, &size) && size <= m->tensor_content.len;
        views[i].size = sound ? (size_t)size : 0;
    }
    for (size_t i = 0; i < elems && sound; i++) {
        sound = views[i].size <= (size_t)(wire.end - wire.at);
        views[i].data = wire.at;
        wire.at += sound ? views[i].size : 0;
    }
    *out = views;
    return sound && !sx_wire_more(&wire)
               ? SX_OK
               : sx_error(SX_DATA_LOSS, "a tensor's content of %zu bytes is no list of %zu strings",
                          m->tensor_content.len, elems);
}

static sx_status strings(const Tensorflow__TensorProto *m, const sx_type *type, sx_arena *arena,
                         void **out)
{
    size_t elems = (size_t)sx_type_elems(type);
    sx_bytes *views =
        elems > SIZE_MAX / sizeof(sx_bytes) - 1 ? NULL : sx_arena_array(arena, elems + 1, sx_bytes);
    if (views == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "a tensor has %zu strings, over the limit", elems);
    }
    if (m->tensor_content.len > 0) {
        return string_list(m, elems, views, out);
    }
    for (size_t i = 0; i < elems; i++) {
        const ProtobufCBinaryData *s =
            m->n_string_val == 0 ? NULL
                                 : &m->string_val[i < m->n_string_val ? i : m->n_string_val - 1];
        views[i] = s == NULL ? (sx_bytes){"", 0} : (sx_bytes){s->data, s->len};
    }
    *out = views;
    return SX_OK;
}

sx_status sx_tf_tensor_value(const Tensorflow__TensorProto *m, sx_arena *arena,
                             sx_tensor *out_tensor)
{
    sx_tensor tensor = {0};
    SX_TRY(sx_tf_tensor_type(m, &tensor.type));
    if (tensor.type.dtype == SX_STRING) {
        SX_TRY(strings(m, &tensor.type, arena, &tensor.data));
    } else {
        SX_TRY(numbers(m, &tensor.type, arena, &tensor.data));
    }
    *out_tensor = tensor;
    return SX_OK;
}
