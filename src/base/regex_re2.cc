// See regex_re2.h.
#include "base/regex_re2.h"

#include <cstdio>
#include <exception>
#include <new>

#include <re2/re2.h>

void *sx_re2_create(const char *pattern, size_t pattern_size, char *error, size_t size)
{
    try {
        RE2::Options options;
        options.set_log_errors(false);
        RE2 *re = new RE2(re2::StringPiece(pattern, pattern_size), options);
        if (re->ok()) {
            return re;
        }
        std::snprintf(error, size, "%s", re->error().c_str());
        delete re;
    } catch (const std::exception &) {
        error[0] = '\0';
    }
    return nullptr;
}

void sx_re2_destroy(void *re)
{
    delete static_cast<RE2 *>(re);
}

int sx_re2_n_groups(const void *re)
{
    return static_cast<const RE2 *>(re)->NumberOfCapturingGroups();
}

bool sx_re2_match(const void *re, const char *text, size_t size, size_t start, bool whole,
                  sx_re2_span *spans, int n_spans)
{
    re2::StringPiece found[SX_RE2_GROUPS];
    try {
        if (!static_cast<const RE2 *>(re)->Match(re2::StringPiece(text, size), start, size,
                                                 whole ? RE2::ANCHOR_BOTH : RE2::UNANCHORED, found,
                                                 n_spans)) {
            return false;
        }
    } catch (const std::exception &) {
        return false;
    }
    for (int i = 0; i < n_spans; i++) {
        spans[i].begin = found[i].data();
        spans[i].size = found[i].size();
    }
    return true;
}
