/* Protobuf's text format, printed and parsed with protobuf-c's descriptors.
 *
 *   model_checkpoint_path: "model.ckpt-100"
 *   all_model_checkpoint_paths: "model.ckpt-50"
 *   attr { key: "T"  value { type: DT_FLOAT } }
 *   bad_consumers: [1, 2]       # a list, and a comment
 *
 * Printed as by TensorFlow's C++ code: one field per line, two spaces per level, strings in double
 * quotes with octal escapes for non-ASCII bytes, floats with the fewest digits that read back, maps
 * sorted by key, no zero values of proto3, no unknown fields.
 *
 * Parsed: the above; `<` `>` for braces; `,` or `;` after fields; adjacent strings joined; escapes
 * \n \t \r \a \b \f \v \' \" \\ \? octal, \x, \u, \U; decimal, octal and hexadecimal integers;
 * inf, nan; true, false, t, f, True, False, 1, 0; enumerators by name or number. A singular field
 * given twice and two fields of a oneof are errors. Any and extensions ("[...]" names) are not
 * supported. Source: protobuf.dev, "Text Format Language Specification". */
#ifndef SX_PROTO_TEXT_FORMAT_H
#define SX_PROTO_TEXT_FORMAT_H

#include <protobuf-c/protobuf-c.h>

#include <sextant/types.h>

#include "base/buffer.h"

enum { SX_TEXT_FORMAT_MAX_BYTES = 64 << 20 };

/* Appends the text. Sorts the map arrays of `message` in place. */
SX_MUST_USE sx_status sx_text_format_print(ProtobufCMessage *message, sx_buf *out);

/* Parses at most SX_TEXT_FORMAT_MAX_BYTES; free the message with sx_proto_free. Errors:
 * INVALID_ARGUMENT, with a message that starts with "name:line:column:". */
SX_MUST_USE sx_status sx_text_format_parse(const ProtobufCMessageDescriptor *type, sx_bytes text,
                                           const char *name, ProtobufCMessage **out_message);

/* The line, from 1, on which value `index` of a repeated message field begins, counted through the
 * whole text; `holder` is the message that has the field. 0: the text has no such value. */
size_t sx_text_format_line(const ProtobufCMessageDescriptor *type,
                           const ProtobufCMessageDescriptor *holder, const char *field,
                           size_t index, sx_bytes text);

#endif
