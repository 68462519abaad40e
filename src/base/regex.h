/* Regular expressions of RE2 (github.com/google/re2/wiki/Syntax): matching takes time linear in the
 * text. RE2 is optional: without it, sx_regex_create() returns UNIMPLEMENTED.
 *
 * A compiled expression is immutable: any number of threads may use it. */
#ifndef SX_BASE_REGEX_H
#define SX_BASE_REGEX_H

#include <stdbool.h>

#include <sextant/types.h>

#include "base/buffer.h"

typedef struct sx_regex sx_regex;

/* INVALID_ARGUMENT: what is wrong with the expression; UNIMPLEMENTED: built without RE2. */
SX_MUST_USE sx_status sx_regex_create(sx_bytes pattern, sx_regex **out);
void sx_regex_destroy(sx_regex *regex); /* NULL is fine */

/* Whether it matches all of the text. */
bool sx_regex_matches_all(const sx_regex *regex, sx_bytes text);
/* Appends the text with its first match, or `all` matches from left to right, replaced. In
 * `rewrite`, \0 is the match, \1 .. \9 are its groups, \\ is a backslash; one that refers to a
 * group that does not exist replaces nothing. Errors are those of the buffer. */
void sx_regex_replace(const sx_regex *regex, sx_bytes text, sx_bytes rewrite, bool all,
                      sx_buf *out);

#endif
