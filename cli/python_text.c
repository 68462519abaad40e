#include "python_text.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/shortest.h"
#include "base/utf8.h"
#include "proto/tensor_value.h"

/* A character beyond ASCII: controls, which could command a terminal, and what is not UTF-8 as
 * escapes. Returns its bytes. */
static size_t put_character(sx_buf *out, const char *text, size_t size)
{
    enum { NO_BREAK_SPACE = 0xa0, SOFT_HYPHEN = 0xad }; /* Python escapes them, too */
    uint32_t code;
    const size_t bytes = sx_utf8_decode(text, size, &code);
    if (code <= NO_BREAK_SPACE || code == SOFT_HYPHEN) {
        sx_buf_printf(out, "\\x%02x", (unsigned)code);
    } else if (code != SX_UTF8_MALFORMED) {
        sx_buf_append(out, text, bytes);
    } else {
        for (size_t i = 0; i < bytes; i++) {
            sx_buf_printf(out, "\\x%02x", (unsigned)(unsigned char)text[i]);
        }
    }
    return bytes;
}

/* Quoted with ', or with " if it has a ' and no ". */
static void put_quoted(sx_buf *out, sx_bytes text, bool ascii)
{
    const bool single = text.size > 0 && memchr(text.data, '\'', text.size) != NULL,
               both = single && memchr(text.data, '"', text.size) != NULL;
    const char quote = single && !both ? '"' : '\'';
    sx_buf_putc(out, quote);
    for (size_t i = 0; i < text.size; i++) {
        const unsigned char c = ((const unsigned char *)text.data)[i];
        if (c == (unsigned char)quote || c == '\\') {
            sx_buf_printf(out, "\\%c", c);
        } else if (c == '\n' || c == '\r' || c == '\t') {
            sx_buf_puts(out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t");
        } else if (c < ' ' || c == 0x7f || (ascii && c > 0x7f)) {
            sx_buf_printf(out, "\\x%02x", c);
        } else if (c < 0x7f) {
            sx_buf_putc(out, (char)c);
        } else {
            i += put_character(out, (const char *)text.data + i, text.size - i) - 1;
        }
    }
    sx_buf_putc(out, quote);
}

void sx_put_python_repr(sx_buf *out, const char *text)
{
    put_quoted(out, (sx_bytes){text, strlen(text)}, false);
}

void sx_put_python_bytes(sx_buf *out, sx_bytes bytes)
{
    sx_buf_putc(out, 'b');
    put_quoted(out, bytes, true);
}

void sx_put_python_float(sx_buf *out, double value)
{
    char text[SX_NUMBER_TEXT];
    if (isfinite(value)) {
        sx_buf_append(out, text, (size_t)(sx_print_f64(text, value) - text));
    } else {
        sx_buf_puts(out, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    }
}

/* ---- Dtypes ---- */

const char *sx_tf_dtype_enum_text(int tf_dtype)
{
    const ProtobufCEnumValue *row =
        protobuf_c_enum_descriptor_get_value(&tensorflow__data_type__descriptor, tf_dtype);
    return row != NULL ? row->name : NULL;
}

/* ---- Structured values ---- */

/* "3, None" */
static void put_dims(sx_buf *out, const Tensorflow__TensorShapeProto *shape)
{
    for (size_t i = 0; shape != NULL && i < shape->n_dim; i++) {
        const long long size = (long long)shape->dim[i]->size;
        sx_buf_puts(out, i > 0 ? ", " : "");
        if (size < 0) {
            sx_buf_puts(out, "None");
        } else {
            sx_buf_printf(out, "%lld", size);
        }
    }
}

static void put_spec(sx_buf *out, const char *type, const char *name,
                     const Tensorflow__TensorShapeProto *shape, int dtype)
{
    char text[SX_TF_DTYPE_TEXT];
    sx_buf_printf(out, "%s(shape=", type);
    if (shape != NULL && shape->unknown_rank) {
        sx_buf_puts(out, "<unknown>");
    } else {
        sx_buf_putc(out, '(');
        put_dims(out, shape);
        sx_buf_puts(out, shape != NULL && shape->n_dim == 1 ? ",)" : ")");
    }
    sx_buf_puts(out, ", dtype=tf.");
    sx_buf_puts(out, sx_tf_dtype_text(dtype, text));
    sx_buf_puts(out, ", name=");
    if (*name != '\0') {
        sx_put_python_repr(out, name);
    } else {
        sx_buf_puts(out, "None");
    }
}

static void put_values(sx_buf *out, Tensorflow__StructuredValue *const *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sx_buf_puts(out, i > 0 ? ", " : "");
        sx_put_structured_repr(out, values[i]);
    }
}

/* "RaggedTensorSpec" of "tensorflow.python.ops.ragged.RaggedTensorSpec" */
static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL ? dot + 1 : name;
}

/* TypeSpecs of TensorFlow's own have a number and no name in older files. */
static const char *type_spec_name(const Tensorflow__TypeSpecProto *spec)
{
    static const char *const names[] = {
        [1] = "SparseTensorSpec", [2] = "IndexedSlicesSpec", [3] = "RaggedTensorSpec",
        [4] = "TensorArraySpec",  [5] = "DatasetSpec",       [6] = "IteratorSpec",
        [7] = "OptionalSpec",     [8] = "PerReplicaSpec",    [9] = "VariableSpec",
        [10] = "RowPartitionSpec"};
    const size_t k = (size_t)spec->type_spec_class;
    if (*spec->type_spec_class_name != '\0') {
        return last_part(spec->type_spec_class_name);
    }
    return k < SX_COUNT(names) && names[k] != NULL ? names[k] : "TypeSpec";
}

void sx_put_structured_repr(sx_buf *out, const Tensorflow__StructuredValue *v)
{
    char dtype[SX_TF_DTYPE_TEXT];
    switch (v->kind_case) {
    case TENSORFLOW__STRUCTURED_VALUE__KIND_FLOAT64_VALUE:
        sx_put_python_float(out, v->float64_value);
        break;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_INT64_VALUE:
        sx_buf_printf(out, "%lld", (long long)v->int64_value);
        break;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_STRING_VALUE:
        sx_put_python_repr(out, v->string_value);
        break;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_BOOL_VALUE:
        sx_buf_puts(out, v->bool_value ? "True" : "False");
        break;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_SHAPE_VALUE:
        sx_buf_puts(out, "TensorShape(");
        if (v->tensor_shape_value->unknown_rank) {
            sx_buf_puts(out, "None)");
            break;
        }
        sx_buf_putc(out, '[');
        put_dims(out, v->tensor_shape_value);
        sx_buf_puts(out, "])");
        break;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_DTYPE_VALUE:
        sx_buf_puts(out, "tf.");
        sx_buf_puts(out, sx_tf_dtype_text((int)v->tensor_dtype_value, dtype));
        break;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_SPEC_VALUE:
        put_spec(out, "TensorSpec", v->tensor_spec_value->name, v->tensor_spec_value->shape,
                 (int)v->tensor_spec_value->dtype);
        sx_buf_putc(out, ')');
        break;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_BOUNDED_TENSOR_SPEC_VALUE:
        put_spec(out, "BoundedTensorSpec", v->bounded_tensor_spec_value->name,
                 v->bounded_tensor_spec_value->shape, (int)v->bounded_tensor_spec_value->dtype);
        sx_buf_puts(out, ", minimum=..., maximum=...)");
        break;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TYPE_SPEC_VALUE:
        sx_buf_puts(out, type_spec_name(v->type_spec_value));
        if (v->type_spec_value->type_state != NULL) {
            sx_put_structured_repr(out, v->type_spec_value->type_state);
        }
        break;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_LIST_VALUE:
        sx_buf_putc(out, '[');
        put_values(out, v->list_value->values, v->list_value->n_values);
        sx_buf_putc(out, ']');
        break;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TUPLE_VALUE:
        sx_buf_putc(out, '(');
        put_values(out, v->tuple_value->values, v->tuple_value->n_values);
        sx_buf_puts(out, v->tuple_value->n_values == 1 ? ",)" : ")");
        break;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_DICT_VALUE:
        sx_buf_putc(out, '{');
        for (size_t i = 0; i < v->dict_value->n_fields; i++) {
            sx_buf_puts(out, i > 0 ? ", " : "");
            sx_put_python_repr(out, v->dict_value->fields[i]->key);
            sx_buf_puts(out, ": ");
            sx_put_structured_repr(out, v->dict_value->fields[i]->value);
        }
        sx_buf_putc(out, '}');
        break;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_NAMED_TUPLE_VALUE:
        sx_buf_printf(out, "%s(", v->named_tuple_value->name);
        for (size_t i = 0; i < v->named_tuple_value->n_values; i++) {
            sx_buf_printf(out, "%s%s=", i > 0 ? ", " : "", v->named_tuple_value->values[i]->key);
            if (v->named_tuple_value->values[i]->value != NULL) {
                sx_put_structured_repr(out, v->named_tuple_value->values[i]->value);
            }
        }
        sx_buf_putc(out, ')');
        break;
    case TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_VALUE:
    case TENSORFLOW__STRUCTURED_VALUE__KIND_NUMPY_VALUE:
        sx_buf_puts(out, "array(...)");
        break;
    default:
        sx_buf_puts(out, "None");
        break;
    }
}

void sx_put_structured_type(sx_buf *out, const Tensorflow__StructuredValue *v)
{
    static const struct {
        int kind;
        const char *name;
    } rows[] = {
        {TENSORFLOW__STRUCTURED_VALUE__KIND_FLOAT64_VALUE, "float"},
        {TENSORFLOW__STRUCTURED_VALUE__KIND_INT64_VALUE, "int"},
        {TENSORFLOW__STRUCTURED_VALUE__KIND_STRING_VALUE, "str"},
        {TENSORFLOW__STRUCTURED_VALUE__KIND_BOOL_VALUE, "bool"},
        {TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_SHAPE_VALUE, "TensorShape"},
        {TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_DTYPE_VALUE, "DType"},
        {TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_SPEC_VALUE, "TensorSpec"},
        {TENSORFLOW__STRUCTURED_VALUE__KIND_BOUNDED_TENSOR_SPEC_VALUE, "BoundedTensorSpec"},
        {TENSORFLOW__STRUCTURED_VALUE__KIND_LIST_VALUE, "list"},
        {TENSORFLOW__STRUCTURED_VALUE__KIND_TUPLE_VALUE, "tuple"},
        {TENSORFLOW__STRUCTURED_VALUE__KIND_DICT_VALUE, "dict"},
        {TENSORFLOW__STRUCTURED_VALUE__KIND_TENSOR_VALUE, "ndarray"},
        {TENSORFLOW__STRUCTURED_VALUE__KIND_NUMPY_VALUE, "ndarray"},
    };
    const char *name = "NoneType";
    for (size_t i = 0; i < SX_COUNT(rows); i++) {
        name = rows[i].kind == (int)v->kind_case ? rows[i].name : name;
    }
    if (v->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_TYPE_SPEC_VALUE) {
        name = type_spec_name(v->type_spec_value);
    } else if (v->kind_case == TENSORFLOW__STRUCTURED_VALUE__KIND_NAMED_TUPLE_VALUE) {
        name = v->named_tuple_value->name;
    }
    sx_buf_puts(out, name);
}
