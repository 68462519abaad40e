/* What regex.c needs of RE2, in C: implemented in regex_re2.cc, which lets no exception out. */
#ifndef SX_BASE_REGEX_RE2_H
#define SX_BASE_REGEX_RE2_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SX_RE2_GROUPS = 10 }; /* the match itself, and as many as a rewrite can name */

typedef struct sx_re2_span {
    const char *begin; /* NULL: the group takes no part in the match */
    size_t size;
} sx_re2_span;

/* NULL: out of memory, or a message in error[size]. */
void *sx_re2_create(const char *pattern, size_t pattern_size, char *error, size_t size);
void sx_re2_destroy(void *re);
int sx_re2_n_groups(const void *re);
/* The first match from text + start on, or (`whole`) one of all of the text. */
bool sx_re2_match(const void *re, const char *text, size_t size, size_t start, bool whole,
                  sx_re2_span *spans, int n_spans);

#ifdef __cplusplus
}
#endif
#endif
