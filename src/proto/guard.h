/* The guard before protobuf-c: foreign bytes are walked along the descriptor first, and unpacked
 * only when that is safe.
 *
 * protobuf-c recurses without limit, takes any bytes for text, cuts strings at a NUL, leaves the
 * value of a map entry NULL when the wire has none, and lets a 2-byte message grow into hundreds.
 * After sx_proto_unpack():
 *   - messages are at most max_depth deep and max_messages in number;
 *   - the memory is at most max_bytes, and max_expansion times the wire or `slack` if that is more;
 *   - strings are UTF-8 without NUL;
 *   - a map entry has a value: its default one where the wire had none (formats.md).
 * Duplicate keys of a map are all there: the last one counts.
 *
 * The walk keeps its stack in one small array; protobuf-c then needs about 1 KiB of stack a level,
 * so a 256 KiB thread is enough for the default depth. Source: reliability.md T2, T3, R17. */
#ifndef SX_PROTO_GUARD_H
#define SX_PROTO_GUARD_H

#include <protobuf-c/protobuf-c.h>

#include <sextant/types.h>

#include "base/buffer.h"

enum { SX_PROTO_MAX_DEPTH = 100 };

/* Zero fields mean the default. */
typedef struct sx_proto_limits {
    int max_depth;          /* 100, which is also the most */
    uint64_t max_messages;  /* 1,000,000 */
    uint32_t max_expansion; /* 32 */
    uint64_t max_bytes;     /* 2 GiB */
    uint64_t slack;         /* 1 MiB: what a small message may take whatever its expansion */
} sx_proto_limits;

/* Checks and unpacks; `name` is for messages ("saved_model.pb"), `limits` may be NULL. The message
 * owns copies of its bytes: free it with sx_proto_free. DATA_LOSS for malformed bytes (offset
 * given), RESOURCE_EXHAUSTED beyond a limit. Cast the result to the message's type. */
SX_MUST_USE sx_status sx_proto_unpack(const ProtobufCMessageDescriptor *type, sx_bytes bytes,
                                      const sx_proto_limits *limits, const char *name,
                                      ProtobufCMessage **out_message);
void sx_proto_free(void *message); /* a message of sx_proto_unpack or sx_text_parse; NULL is fine */

/* The check alone. */
SX_MUST_USE sx_status sx_proto_check(const ProtobufCMessageDescriptor *type, sx_bytes bytes,
                                     const sx_proto_limits *limits, const char *name);

/* Appends the message's bytes: fields ascending, map entries sorted by key. The same message always
 * gives the same bytes. Sorts the map arrays of `message` in place. At most 100 levels and 2 GiB.
 */
SX_MUST_USE sx_status sx_proto_pack(ProtobufCMessage *message, sx_buf *out);

/* Sorts the entries of every map by key, equal keys in the order they had; INVALID_ARGUMENT for a
 * message nested deeper than SX_PROTO_MAX_DEPTH. */
SX_MUST_USE sx_status sx_proto_sort_maps(ProtobufCMessage *message);

/* Whether a repeated field's message type is the entry of a map: what protoc makes of map<K, V>.
 * protobuf-c keeps no mark, so it is told by its shape: named ...Entry, two optional fields `key` =
 * 1 (not a message, bytes, float or double) and `value` = 2. */
bool sx_proto_is_map_entry(const ProtobufCMessageDescriptor *type);

#endif
