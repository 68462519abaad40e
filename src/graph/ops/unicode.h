/* Text in several encodings, as the operators of Unicode read and write it. */
#ifndef SX_GRAPH_OPS_UNICODE_H
#define SX_GRAPH_OPS_UNICODE_H

#include "graph/ops/host_ops.h"

/* What happens to malformed text, and to control characters that are to be replaced. */
typedef struct sx_unicode_attrs {
    const char *input_encoding;  /* UTF-8, UTF-16-BE, UTF-32-BE, US-ASCII, ISO-8859-1 */
    const char *output_encoding; /* UTF-8, UTF-16-BE, UTF-32-BE */
    const char *errors;          /* "strict", "replace", "ignore" */
    int64_t replacement_char;
    bool replace_control_characters; /* U+0000 to U+001F, too */
    sx_dtype Tsplits;                /* int32 or int64 */
} sx_unicode_attrs;

#define SX_UNICODE_INPUT  SX_ATTR_TF(sx_unicode_attrs, input_encoding, SX_ATTR_STRING)
#define SX_UNICODE_OUTPUT SX_ATTR_TF(sx_unicode_attrs, output_encoding, SX_ATTR_STRING)
#define SX_UNICODE_ERRORS                                                       \
    SX_ATTR_TF(sx_unicode_attrs, errors, SX_ATTR_STRING, .tf_text = "replace"), \
        SX_ATTR_TF(sx_unicode_attrs, replacement_char, SX_ATTR_INT, .tf_number = 65533)
#define SX_UNICODE_CONTROLS SX_ATTR_TF(sx_unicode_attrs, replace_control_characters, SX_ATTR_BOOL)
#define SX_UNICODE_SPLITS   SX_ATTR_TF(sx_unicode_attrs, Tsplits, SX_ATTR_DTYPE, .tf_number = SX_I64)

SX_MUST_USE sx_status sx_unicode_check(const sx_unicode_attrs *attrs, bool reads, bool writes,
                                       bool splits);
/* The next character of a text in the input encoding, and its size; *out_code is negative for one
 * that is left out. INVALID_ARGUMENT: it is malformed, and errors are strict. */
SX_MUST_USE sx_status sx_unicode_next(const sx_unicode_attrs *attrs, const uint8_t *text,
                                      size_t size, size_t *out_size, int64_t *out_code);
/* Appends a character in the output encoding. */
void sx_unicode_put(const sx_unicode_attrs *attrs, uint32_t code, sx_buf *out);

#endif
