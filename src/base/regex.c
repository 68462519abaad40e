/* See regex.h. CMake defines SX_HAS_RE2 for this file where it finds RE2. */
#include "base/regex.h"

#include <string.h>

#include <sextant/status.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/regex_re2.h"
#include "base/utf8.h"

#ifndef SX_HAS_RE2

sx_status sx_regex_create(sx_bytes pattern, sx_regex **out)
{
    (void)pattern, (void)out;
    return sx_error(SX_UNIMPLEMENTED, "regular expressions need RE2, which this Sextant was built "
                                      "without: install libre2-dev and build it again");
}

void sx_regex_destroy(sx_regex *regex)
{
    (void)regex;
}

bool sx_regex_matches_all(const sx_regex *regex, sx_bytes text)
{
    (void)regex, (void)text;
    return false;
}

void sx_regex_replace(const sx_regex *regex, sx_bytes text, sx_bytes rewrite, bool all, sx_buf *out)
{
    (void)regex, (void)rewrite, (void)all;
    sx_buf_append(out, text.data, text.size);
}

#else

/* An sx_regex is RE2's own object. */

static const char *text_of(sx_bytes bytes)
{
    return bytes.data != NULL ? bytes.data : "";
}

sx_status sx_regex_create(sx_bytes pattern, sx_regex **out)
{
    char error[256] = "";
    void *re = sx_re2_create(text_of(pattern), pattern.size, error, sizeof(error));
    if (re != NULL) {
        *out = re;
        return SX_OK;
    }
    if (error[0] == '\0') {
        return sx_no_memory("for a regular expression");
    }
    sx_buf shown;
    sx_buf_init(&shown, 0);
    sx_buf_put_utf8(&shown, error, strlen(error));
    sx_status status =
        sx_error(SX_INVALID_ARGUMENT, "invalid regular expression: %s", sx_buf_text(&shown));
    sx_buf_deinit(&shown);
    return status;
}

void sx_regex_destroy(sx_regex *regex)
{
    if (regex != NULL) {
        sx_re2_destroy(regex);
    }
}

bool sx_regex_matches_all(const sx_regex *regex, sx_bytes text)
{
    return sx_re2_match(regex, text_of(text), text.size, 0, true, NULL, 0);
}

/* The greatest group that the rewrite names. */
static int last_group(sx_bytes rewrite)
{
    const char *s = text_of(rewrite);
    int last = 0;
    for (size_t i = 0; i + 1 < rewrite.size; i++) {
        if (s[i] == '\\') {
            i++;
            last = s[i] >= '0' && s[i] <= '9' ? SX_MAX(last, s[i] - '0') : last;
        }
    }
    return last;
}

/* The character at `s` as RE2 steps over it: it takes surrogates for characters. */
static size_t step_of(const char *s, size_t size)
{
    const uint8_t *p = (const uint8_t *)s;
    const bool surrogate =
        size >= 3 && p[0] == 0xED && (p[1] & 0xC0) == 0x80 && (p[2] & 0xC0) == 0x80;
    return surrogate ? 3 : SX_MAX(sx_utf8_sequence(s, size), 1);
}

/* As RE2::Rewrite(): what is wrong ends it. Whether all is right. */
static bool put_rewrite(sx_bytes rewrite, const sx_re2_span *spans, sx_buf *out)
{
    const char *s = text_of(rewrite);
    for (size_t i = 0; i < rewrite.size; i++) {
        const char next = i + 1 < rewrite.size ? s[i + 1] : '\0';
        if (s[i] != '\\') {
            sx_buf_putc(out, s[i]);
        } else if (next >= '0' && next <= '9') {
            const sx_re2_span *span = &spans[next - '0'];
            sx_buf_append(out, span->begin, span->size);
            i++;
        } else if (next == '\\') {
            sx_buf_putc(out, '\\');
            i++;
        } else {
            return false;
        }
    }
    return true;
}

void sx_regex_replace(const sx_regex *regex, sx_bytes text, sx_bytes rewrite, bool all, sx_buf *out)
{
    const char *s = text_of(text), *end = s + text.size, *at = s, *last_end = NULL;
    const int n_spans = 1 + last_group(rewrite);
    sx_re2_span spans[SX_RE2_GROUPS];
    const bool possible = n_spans <= 1 + sx_re2_n_groups(regex);
    while (possible && at <= end && out->failed == 0 &&
           sx_re2_match(regex, s, text.size, (size_t)(at - s), false, spans, n_spans)) {
        const sx_re2_span match = spans[0];
        sx_buf_append(out, at, (size_t)(match.begin - at));
        if (match.begin == last_end && match.size == 0) { /* not twice at one place: a step on */
            const size_t step = at < end ? step_of(at, (size_t)(end - at)) : 0;
            sx_buf_append(out, at, step);
            at += SX_MAX(step, 1);
            continue;
        }
        const size_t before = out->size;
        if (!put_rewrite(rewrite, spans, out) && !all) { /* as RE2::Replace() does */
            out->size = before;
            at = match.begin;
            break;
        }
        at = match.begin + match.size;
        last_end = at;
        if (!all) {
            break;
        }
    }
    if (at < end) {
        sx_buf_append(out, at, (size_t)(end - at));
    }
}

#endif
