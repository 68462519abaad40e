#include "proto/descriptor.h"

static bool is_zero(const void *member, const ProtobufCFieldDescriptor *field)
{
    static const char zeros[sizeof(ProtobufCBinaryData)];
    switch (field->type) {
    case PROTOBUF_C_TYPE_STRING: {
        const char *text = *(char *const *)member;
        return text == NULL || text[0] == '\0';
    }
    case PROTOBUF_C_TYPE_BYTES:
        return ((const ProtobufCBinaryData *)member)->len == 0;
    default:
        return memcmp(member, zeros, sx_proto_scalar_of(field->type).struct_bytes) == 0;
    }
}

size_t sx_proto_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const void *member = sx_proto_member(message, field);
    const void *quantifier = sx_proto_quantifier(message, field);
    bool pointer = field->type == PROTOBUF_C_TYPE_MESSAGE || field->type == PROTOBUF_C_TYPE_STRING;
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        return *(const size_t *)quantifier;
    }
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        bool chosen = *(const uint32_t *)quantifier == field->id;
        return chosen && !(pointer && *(void *const *)member == NULL);
    }
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        return *(ProtobufCMessage *const *)member != NULL;
    }
    if (field->label == PROTOBUF_C_LABEL_OPTIONAL && !pointer) {
        return *(const protobuf_c_boolean *)quantifier != 0;
    }
    return !is_zero(member, field);
}

void *sx_proto_value(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                     size_t i)
{
    char *member = sx_proto_member(message, field);
    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        return member;
    }
    return *(char **)member + i * sx_proto_scalar_of(field->type).struct_bytes;
}
