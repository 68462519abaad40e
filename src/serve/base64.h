/* Base64 of RFC 4648 section 4, for bytes in JSON. */
#ifndef SX_SERVE_BASE64_H
#define SX_SERVE_BASE64_H

#include <stddef.h>

/* The maximum number of bytes that `size` characters decode to, and the exact number of characters
 * for `size` bytes. */
#define SX_BASE64_DECODED_MAX(size) ((size) / 4 * 3 + 3)
#define SX_BASE64_ENCODED(size)     (((size) + 2) / 3 * 4)

/* Decodes into `out`. White space is skipped and the final padding may be missing (as in TensorFlow
 * Serving). Returns the number of bytes, or -1 for any other character outside the alphabet,
 * padding in the middle, or a single last character. */
ptrdiff_t sx_base64_decode(const char *text, size_t size, unsigned char *out);

/* Writes SX_BASE64_ENCODED(size) characters, padded, no NUL. */
void sx_base64_encode(const void *data, size_t size, char *out);

#endif
