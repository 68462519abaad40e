/* A cursor over JSON text: white space, strings, literals, and skipping whole values. No tree is
 * built; the reader knows what may come next.
 *
 * Strict: UTF-8 is checked (no overlong forms, no surrogates), escaped surrogates must be paired,
 * control bytes and leading zeros are refused, nesting is at most SX_JSON_MAX_DEPTH. One extension,
 * as documented by TensorFlow Serving: NaN, Infinity, -Infinity are numbers. Source: RFC 8259. */
#ifndef SX_SERVE_JSON_SCAN_H
#define SX_SERVE_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include <sextant/types.h>

#include "base/arena.h"
#include "base/buffer.h"

enum { SX_JSON_MAX_DEPTH = 64 };

typedef struct sx_json {
    const char *begin, *end;
    const char *p; /* the next byte */
    int depth;
    sx_arena *arena; /* for strings with escapes */
} sx_json;

void sx_json_init(sx_json *json, sx_bytes text, sx_arena *arena);

/* INVALID_ARGUMENT: "JSON Parse error: <what> at offset: <of p>". */
sx_status sx_json_error(const sx_json *json, const char *what);

/* Skips white space and returns the next byte without taking it; '\0' at the end. */
static inline char sx_json_peek(sx_json *json)
{
    while (json->p < json->end &&
           (*json->p == ' ' || *json->p == '\n' || *json->p == '\r' || *json->p == '\t')) {
        json->p++;
    }
    return json->p < json->end ? *json->p : '\0';
}

/* Takes `c` if it is next (after white space). */
static inline bool sx_json_take(sx_json *json, char c)
{
    if (sx_json_peek(json) != c || json->p == json->end) {
        return false;
    }
    json->p++;
    return true;
}

/* A string; p is at its quote. The bytes are a view of the text, or, with escapes, arena memory;
 * `out_bytes` of NULL only checks it, without memory. */
SX_MUST_USE sx_status sx_json_string(sx_json *json, sx_bytes *out_bytes);

/* true or false. */
SX_MUST_USE sx_status sx_json_bool(sx_json *json, bool *out_value);

/* Takes NaN, Infinity or -Infinity at p; false if there is none. */
bool sx_json_special(sx_json *json, double *out_value);

/* Enters a list or object and counts the depth. */
SX_MUST_USE sx_status sx_json_enter(sx_json *json, char open);
void sx_json_leave(sx_json *json);

/* Between the elements of a list, or members of an object, after one has been read: takes ',' and
 * sets *out_more, or takes `close`. */
SX_MUST_USE sx_status sx_json_next(sx_json *json, char close, bool *out_more);

/* The key of a member with its colon; `out_key` may be NULL. */
SX_MUST_USE sx_status sx_json_key(sx_json *json, sx_bytes *out_key);

/* Checks and skips one value of any kind. */
SX_MUST_USE sx_status sx_json_skip(sx_json *json);

/* Checks that only white space follows. */
SX_MUST_USE sx_status sx_json_finish(sx_json *json);

#endif
