/* See tensor_proto.h. */
#include "graph/ops/tensor_proto.h"

#include "proto/guard.h"
#include "proto/tensor_value.h"
#include "proto/wire.h"

enum { DTYPE = 1, SHAPE = 2, CONTENT = 4, STRING_VAL = 8, DIM = 2, DIM_SIZE = 1 }; /* fields */

/* The size of a dimension's message: a size of 0 is not written. */
static size_t dim_bytes(int64_t size)
{
    return size == 0 ? 0 : 1 + sx_wire_varint_size((uint64_t)size);
}

static void put_tensor(const sx_host_tensor *t, bool string_content, sx_buf *out)
{
    const sx_type *x = &t->type;
    const int64_t n = sx_type_elems(x);
    size_t shape = 0;
    for (int d = 0; d < x->rank; d++) {
        shape += 2 + dim_bytes(x->dims[d]);
    }
    sx_wire_append_tag(out, DTYPE, SX_WIRE_VARINT);
    sx_wire_append_varint(out, (uint64_t)x->dtype);
    sx_wire_append_tag(out, SHAPE, SX_WIRE_BYTES);
    sx_wire_append_varint(out, shape);
    for (int d = 0; d < x->rank; d++) {
        sx_wire_append_tag(out, DIM, SX_WIRE_BYTES);
        sx_wire_append_varint(out, dim_bytes(x->dims[d]));
        if (x->dims[d] != 0) {
            sx_wire_append_tag(out, DIM_SIZE, SX_WIRE_VARINT);
            sx_wire_append_varint(out, (uint64_t)x->dims[d]);
        }
    }
    if (x->dtype == SX_STRING && string_content) {
        uint64_t size = 0;
        for (int64_t k = 0; k < n; k++) {
            size += sx_wire_varint_size(t->s[k].size) + t->s[k].size;
        }
        if (size > 0) {
            sx_wire_append_tag(out, CONTENT, SX_WIRE_BYTES);
            sx_wire_append_varint(out, size);
        }
        for (int64_t k = 0; k < n; k++) {
            sx_wire_append_varint(out, t->s[k].size);
        }
        for (int64_t k = 0; k < n; k++) {
            sx_buf_append(out, t->s[k].data, t->s[k].size);
        }
        return;
    }
    for (int64_t k = 0; k < n && x->dtype == SX_STRING; k++) {
        sx_wire_append_tag(out, STRING_VAL, SX_WIRE_BYTES);
        sx_wire_append_varint(out, t->s[k].size);
        sx_buf_append(out, t->s[k].data, t->s[k].size);
    }
    if (x->dtype != SX_STRING && n > 0) {
        sx_wire_append_tag(out, CONTENT, SX_WIRE_BYTES);
        sx_wire_append_varint(out, (uint64_t)n * sx_dtype_bytes(x->dtype));
        for (int64_t k = 0; k < n; k++) {
            uint64_t bytes = 0;
            const sx_host_tensor one = {.type = sx_scalar_type(x->dtype),
                                        .data = t->b + (size_t)k * sx_carrier_bytes(x->dtype)};
            sx_host_store(&one, &bytes);
            sx_buf_append(out, &bytes, sx_dtype_bytes(x->dtype));
        }
    }
}

void sx_tensor_put(const sx_host_tensor *t, sx_buf *out)
{
    put_tensor(t, false, out);
}

void sx_tensor_put_content(const sx_host_tensor *t, sx_buf *out)
{
    put_tensor(t, true, out);
}

/* A malformed message is the caller's data, not a broken file. */
static sx_status refuse(sx_status status)
{
    if (sx_status_code(status) != SX_DATA_LOSS && sx_status_code(status) != SX_UNIMPLEMENTED) {
        return status;
    }
    sx_status refused = sx_error(SX_INVALID_ARGUMENT, "%s", sx_status_message(status));
    sx_status_free(status);
    return refused;
}

static sx_status read_message(const sx_bytes *bytes, sx_dtype dtype, Tensorflow__TensorProto **out,
                              sx_type *out_type)
{
    ProtobufCMessage *message = NULL;
    SX_TRY(refuse(sx_proto_unpack(&tensorflow__tensor_proto__descriptor, *bytes, NULL,
                                  "a serialized tensor", &message)));
    *out = (Tensorflow__TensorProto *)message;
    sx_status status = refuse(sx_tf_tensor_type(*out, out_type));
    if (status == SX_OK && out_type->dtype != dtype) {
        status = sx_error(SX_INVALID_ARGUMENT, "a serialized tensor is %s, expected %s",
                          SX_TEXT(out_type), sx_dtype_name(dtype));
    }
    if (status == SX_OK) {
        status = sx_require_made("a serialized tensor", out_type);
    }
    if (status != SX_OK) {
        sx_proto_free(message);
    }
    return status;
}

sx_status sx_tensor_get_type(const sx_bytes *bytes, sx_dtype dtype, sx_type *out)
{
    Tensorflow__TensorProto *message = NULL;
    SX_TRY(read_message(bytes, dtype, &message, out));
    sx_proto_free(message);
    return SX_OK;
}

sx_status sx_tensor_get(const sx_kernel_call *c, const sx_bytes *bytes, sx_dtype dtype,
                        sx_host_tensor *out)
{
    Tensorflow__TensorProto *message = NULL;
    sx_tensor value = {.data = NULL};
    SX_TRY(read_message(bytes, dtype, &message, &out->type));
    const int64_t n = sx_type_elems(&out->type);
    out->data = sx_arena_alloc(c->arena, (size_t)n * sx_carrier_bytes(dtype) + 1, 1);
    sx_status status = out->data == NULL ? sx_budget_error(c->arena->budget)
                                         : refuse(sx_tf_tensor_value(message, c->arena, &value));
    if (status == SX_OK && dtype != SX_STRING) {
        sx_host_load(out, value.data);
    }
    for (int64_t k = 0; k < n && status == SX_OK && dtype == SX_STRING; k++) {
        const sx_bytes *s = (const sx_bytes *)value.data + k;
        status = sx_string_copy(c, s->data, s->size, &out->s[k]);
    }
    sx_proto_free(message);
    return status;
}
