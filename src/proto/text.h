/* Protobuf's text format, printed and parsed from protobuf-c's descriptors.
 *
 *   model_checkpoint_path: "model.ckpt-100"
 *   all_model_checkpoint_paths: "model.ckpt-50"
 *   attr { key: "T"  value { type: DT_FLOAT } }
 *   bad_consumers: [1, 2]       # a list, and a comment
 *
 * Printed as TensorFlow's C++ does: one field a line, two spaces a level, strings in double quotes
 * with everything outside ASCII as octal escapes, floats in the fewest digits that read back, maps
 * sorted by key, nothing for proto3's zero values, no unknown fields.
 *
 * Parsed: the above; `<` `>` for braces; `,` or `;` after fields; adjacent strings joined; escapes
 * \n \t \r \a \b \f \v \' \" \\ \? octal, \x, \u, \U; decimal, octal and hexadecimal integers;
 * inf, nan; true, false, t, f, True, False, 1, 0; enumerators by name or number. A single field
 * given twice, or two of one oneof, are errors. Any and extensions ("[...]" names) are not
 * supported. Source: protobuf.dev, "Text Format Language Specification". */
#ifndef SX_PROTO_TEXT_H
#define SX_PROTO_TEXT_H

#include <protobuf-c/protobuf-c.h>

#include <sextant/types.h>

#include "base/buffer.h"

enum { SX_TEXT_MAX_BYTES = 64 << 20 };

/* Appends the text. Sorts the map arrays of `message` in place. */
SX_MUST_USE sx_status sx_text_print(ProtobufCMessage *message, sx_buf *out);

/* Parses at most SX_TEXT_MAX_BYTES; the message is freed with sx_proto_free. INVALID_ARGUMENT
 * begins with "name:line:column:". */
SX_MUST_USE sx_status sx_text_parse(const ProtobufCMessageDescriptor *type, sx_bytes text,
                                    const char *name, ProtobufCMessage **out_message);

#endif
