/* Messages written as text in a test: their bytes. */
#ifndef SX_TESTS_PROTO_PACK_TEXT_H
#define SX_TESTS_PROTO_PACK_TEXT_H

#include "harness.h"

#include "base/buffer.h"
#include "proto/guard.h"
#include "proto/text_format.h"

/* Appends the bytes of a message given in the text format; fails the test if it is malformed. */
static inline void pack_text(const ProtobufCMessageDescriptor *type, const char *text, sx_buf *out)
{
    ProtobufCMessage *message = NULL;
    assert_ok(sx_text_format_parse(type, (sx_bytes){text, strlen(text)}, "text", &message));
    assert_ok(sx_proto_pack(message, out));
    sx_proto_free(message);
}

#endif
