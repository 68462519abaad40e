/* Lookups in protobuf-c's descriptors and the structs they describe, shared by the guard, the text
 * format and the packer. */
#ifndef SX_PROTO_DESCRIPTOR_H
#define SX_PROTO_DESCRIPTOR_H

#include <stdbool.h>
#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

#include "proto/wire.h"

/* One row per scalar type: its form on the wire and in the struct. */
typedef struct sx_proto_scalar {
    sx_wire_type wire;
    size_t struct_bytes; /* size of the C member; strings and messages are pointers */
} sx_proto_scalar;

static inline sx_proto_scalar sx_proto_scalar_of(ProtobufCType type)
{
    static const sx_proto_scalar rows[] = {
        [PROTOBUF_C_TYPE_INT32] = {SX_WIRE_VARINT, 4},
        [PROTOBUF_C_TYPE_SINT32] = {SX_WIRE_VARINT, 4},
        [PROTOBUF_C_TYPE_SFIXED32] = {SX_WIRE_FIXED32, 4},
        [PROTOBUF_C_TYPE_INT64] = {SX_WIRE_VARINT, 8},
        [PROTOBUF_C_TYPE_SINT64] = {SX_WIRE_VARINT, 8},
        [PROTOBUF_C_TYPE_SFIXED64] = {SX_WIRE_FIXED64, 8},
        [PROTOBUF_C_TYPE_UINT32] = {SX_WIRE_VARINT, 4},
        [PROTOBUF_C_TYPE_FIXED32] = {SX_WIRE_FIXED32, 4},
        [PROTOBUF_C_TYPE_UINT64] = {SX_WIRE_VARINT, 8},
        [PROTOBUF_C_TYPE_FIXED64] = {SX_WIRE_FIXED64, 8},
        [PROTOBUF_C_TYPE_FLOAT] = {SX_WIRE_FIXED32, 4},
        [PROTOBUF_C_TYPE_DOUBLE] = {SX_WIRE_FIXED64, 8},
        [PROTOBUF_C_TYPE_BOOL] = {SX_WIRE_VARINT, sizeof(protobuf_c_boolean)},
        [PROTOBUF_C_TYPE_ENUM] = {SX_WIRE_VARINT, sizeof(int)},
        [PROTOBUF_C_TYPE_STRING] = {SX_WIRE_BYTES, sizeof(char *)},
        [PROTOBUF_C_TYPE_BYTES] = {SX_WIRE_BYTES, sizeof(ProtobufCBinaryData)},
        [PROTOBUF_C_TYPE_MESSAGE] = {SX_WIRE_BYTES, sizeof(ProtobufCMessage *)},
    };
    return rows[type];
}

static inline bool sx_proto_is_packable(ProtobufCType type)
{
    return sx_proto_scalar_of(type).wire != SX_WIRE_BYTES;
}

/* The member; for repeated fields it is a pointer to the first element. */
static inline void *sx_proto_member(const ProtobufCMessage *message,
                                    const ProtobufCFieldDescriptor *field)
{
    return (char *)(uintptr_t)message + field->offset;
}

/* has_x, n_x or the oneof's case; only for fields that have one. */
static inline void *sx_proto_quantifier(const ProtobufCMessage *message,
                                        const ProtobufCFieldDescriptor *field)
{
    return (char *)(uintptr_t)message + field->quantifier_offset;
}

/* The number of values: 0 or 1, or the count of a repeated field. An unset sub-message and a proto3
 * scalar that is zero have none. */
size_t sx_proto_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);

/* The address of value `i` < count, with the member's C type. */
void *sx_proto_value(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                     size_t i);

#endif
