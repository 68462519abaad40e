/* Safe decoding of protobuf messages: untrusted bytes are checked against the descriptor, and only
 * then decoded by protobuf-c.
 *
 * protobuf-c recurses without limit, accepts any bytes as text, truncates strings at a NUL, leaves
 * the value of a map entry NULL if it is missing, and lets a 2-byte message expand to hundreds of
 * bytes. After sx_proto_unpack():
 *   - messages are nested at most max_depth deep, and there are at most max_messages;
 *   - the memory is at most max_bytes, and at most the larger of `slack` and max_expansion times
 *     the size on the wire;
 *   - strings are UTF-8 without NUL;
 *   - every map entry has a value, a default one if it was missing on the wire.
 * Duplicate map keys are kept: the last one counts.
 *
 * The check keeps its stack in a small array; protobuf-c needs about 1 KiB of stack per level, so a
 * thread with 256 KiB is enough for the default depth. */
#ifndef SX_PROTO_GUARD_H
#define SX_PROTO_GUARD_H

#include <protobuf-c/protobuf-c.h>

#include <sextant/types.h>

#include "base/buffer.h"

enum { SX_PROTO_MAX_DEPTH = 100 };

/* A field that is 0 takes its default. */
typedef struct sx_proto_limits {
    int max_depth;          /* 100, also the maximum */
    uint64_t max_messages;  /* 1,000,000 */
    uint32_t max_expansion; /* 32 */
    uint64_t max_bytes;     /* 2 GiB */
    uint64_t slack;         /* 1 MiB: memory allowed regardless of max_expansion */
} sx_proto_limits;

/* Checks and decodes a message; cast the result to its type and free it with sx_proto_free. It does
 * not refer to `bytes`. `name` ("saved_model.pb") is used in errors; `limits` may be NULL. Errors:
 * DATA_LOSS: malformed bytes (with the offset); RESOURCE_EXHAUSTED: over a limit. */
SX_MUST_USE sx_status sx_proto_unpack(const ProtobufCMessageDescriptor *type, sx_bytes bytes,
                                      const sx_proto_limits *limits, const char *name,
                                      ProtobufCMessage **out_message);
void sx_proto_free(void *message); /* from sx_proto_unpack or sx_text_format_parse; NULL is fine */
void sx_proto_free_bytes(ProtobufCBinaryData *bytes); /* of a field of such a message: now empty */

/* Only the check. */
SX_MUST_USE sx_status sx_proto_check(const ProtobufCMessageDescriptor *type, sx_bytes bytes,
                                     const sx_proto_limits *limits, const char *name);

/* Appends the encoded message: fields in ascending order, map entries sorted by key, so that the
 * same message always gives the same bytes. Sorts the map arrays of `message` in place. Limits: 100
 * levels, 2 GiB. */
SX_MUST_USE sx_status sx_proto_pack(ProtobufCMessage *message, sx_buf *out);

/* Sorts the entries of every map by key; equal keys keep their order. Errors: INVALID_ARGUMENT: the
 * message is nested deeper than SX_PROTO_MAX_DEPTH. */
SX_MUST_USE sx_status sx_proto_sort_maps(ProtobufCMessage *message);

/* Whether a repeated field's message type is a map entry, which protoc generates for map<K, V>.
 * protobuf-c does not mark map entries; they are recognized by their form: named ...Entry, with two
 * optional fields `key` = 1 (not a message, bytes, float or double) and `value` = 2. */
bool sx_proto_is_map_entry(const ProtobufCMessageDescriptor *type);

#endif
