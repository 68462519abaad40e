/* Scanning a program's text: a cursor that the parser moves. Spaces, line ends and // comments are
 * between tokens and nowhere else matter. */
#ifndef PJRT_REF_SCAN_H
#define PJRT_REF_SCAN_H

#include <sextant/types.h>

#include "base/arena.h"

typedef struct ref_scan {
    const char *at, *end;
    int line;
    sx_arena *arena; /* of texts taken */
} ref_scan;

/* INVALID_ARGUMENT: "line 12: expected ..., got '...'". */
SX_MUST_USE sx_status ref_scan_error(const ref_scan *s, const char *expected);

/* Does `text` come next? Then step over it. A text that ends in a letter or digit must end there.
 */
bool ref_accept(ref_scan *s, const char *text);
bool ref_next_is(ref_scan *s, char c);
bool ref_at_end(ref_scan *s);
SX_MUST_USE sx_status ref_require(ref_scan *s, const char *text);

/* letters, digits, _ . $ - after a first letter or _; copied */
SX_MUST_USE sx_status ref_take_name(ref_scan *s, const char **out);
/* "…" without escapes but \" and \\; the view is of the text itself */
SX_MUST_USE sx_status ref_take_string(ref_scan *s, const char **out, size_t *out_size);
SX_MUST_USE sx_status ref_take_int(ref_scan *s, int64_t *out);
/* %12, within [0, limit) */
SX_MUST_USE sx_status ref_take_value(ref_scan *s, int limit, int *out);
/* tensor<2x3xf32> */
SX_MUST_USE sx_status ref_take_type(ref_scan *s, sx_type *out);
/* A number of that type, as its bytes: 1.5e3, -3, true, 0xFF800000 (bits). */
SX_MUST_USE sx_status ref_take_element(ref_scan *s, sx_dtype dtype, void *bytes);

#endif
