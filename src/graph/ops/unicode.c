/* See unicode.h. */
#include "graph/ops/unicode.h"

#include "base/utf8.h"

sx_status sx_unicode_check(const sx_unicode_attrs *attrs, bool reads, bool writes, bool splits)
{
    if (reads) {
        SX_TRY(sx_require_name("input_encoding", attrs->input_encoding,
                               (const char *const[]){"UTF-8", "UTF-16-BE", "UTF-32-BE", "US-ASCII",
                                                     "ISO-8859-1", NULL}));
    }
    if (writes) {
        SX_TRY(sx_require_name("output_encoding", attrs->output_encoding,
                               (const char *const[]){"UTF-8", "UTF-16-BE", "UTF-32-BE", NULL}));
    }
    SX_TRY(sx_require_name("errors", attrs->errors,
                           (const char *const[]){"strict", "replace", "ignore", NULL}));
    if (attrs->replacement_char < 0 || attrs->replacement_char > 0x10FFFF ||
        (attrs->replacement_char >= 0xD800 && attrs->replacement_char <= 0xDFFF)) {
        return sx_error(SX_INVALID_ARGUMENT, "replacement_char is %lld, which is no character",
                        (long long)attrs->replacement_char);
    }
    if (splits && attrs->Tsplits != SX_I32 && attrs->Tsplits != SX_I64) {
        return sx_error(SX_INVALID_ARGUMENT, "Tsplits is %s, expected int32 or int64",
                        sx_dtype_name(attrs->Tsplits));
    }
    return SX_OK;
}

static uint32_t get_units(const uint8_t *text, int bytes)
{
    uint32_t v = 0;
    for (int i = 0; i < bytes; i++) {
        v = v << 8 | text[i];
    }
    return v;
}

static size_t decode(const char *encoding, const uint8_t *text, size_t size, uint32_t *out)
{
    *out = SX_UTF8_MALFORMED;
    if (strcmp(encoding, "UTF-8") == 0) {
        return sx_utf8_decode(text, size, out);
    }
    if (strcmp(encoding, "UTF-32-BE") == 0) {
        const uint32_t code = size >= 4 ? get_units(text, 4) : SX_UTF8_MALFORMED;
        *out = code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF) ? SX_UTF8_MALFORMED : code;
        return SX_MIN(size, 4);
    }
    if (strcmp(encoding, "UTF-16-BE") == 0) {
        const uint32_t high = size >= 2 ? get_units(text, 2) : SX_UTF8_MALFORMED;
        const uint32_t low = size >= 4 ? get_units(text + 2, 2) : 0;
        if (high >= 0xD800 && high <= 0xDBFF && low >= 0xDC00 && low <= 0xDFFF) {
            *out = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
            return 4;
        }
        *out = high >= 0xD800 && high <= 0xDFFF ? SX_UTF8_MALFORMED : high;
        return SX_MIN(size, 2);
    }
    const bool ascii = strcmp(encoding, "US-ASCII") == 0;
    *out = ascii && text[0] >= 0x80 ? SX_UTF8_MALFORMED : text[0];
    return 1;
}

sx_status sx_unicode_next(const sx_unicode_attrs *attrs, const uint8_t *text, size_t size,
                          size_t *out_size, int64_t *out_code)
{
    uint32_t code;
    *out_size = decode(attrs->input_encoding, text, size, &code);
    *out_code = code;
    if (code != SX_UTF8_MALFORMED && !(attrs->replace_control_characters && code <= 0x1F)) {
        return SX_OK;
    }
    if (sx_string_is(attrs->errors, "strict")) {
        return sx_error(SX_INVALID_ARGUMENT, "invalid %s in %s", attrs->input_encoding,
                        SX_QUOTE((&(sx_bytes){text, size})));
    }
    *out_code = sx_string_is(attrs->errors, "ignore") ? -1 : attrs->replacement_char;
    return SX_OK;
}

static void put_units(sx_buf *out, uint32_t v, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--) {
        sx_buf_putc(out, (char)(v >> 8 * i & 0xFF));
    }
}

void sx_unicode_put(const sx_unicode_attrs *attrs, uint32_t code, sx_buf *out)
{
    if (strcmp(attrs->output_encoding, "UTF-8") == 0) {
        char text[4];
        sx_buf_append(out, text, (size_t)(sx_utf8_put(text, code) - text));
    } else if (strcmp(attrs->output_encoding, "UTF-32-BE") == 0) {
        put_units(out, code, 4);
    } else if (code < 0x10000) {
        put_units(out, code, 2);
    } else {
        put_units(out, 0xD800 + ((code - 0x10000) >> 10), 2);
        put_units(out, 0xDC00 + ((code - 0x10000) & 0x3FF), 2);
    }
}
