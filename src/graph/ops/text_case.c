/* See text_case.h. The simple mappings are the C library's for its locale C.UTF-8; those of one
 * character to several, and the final sigma, follow Unicode's SpecialCasing.txt. */
#include "graph/ops/text_case.h"

#include <locale.h>
#include <pthread.h>
#include <string.h>
#include <wctype.h>

#include "base/utf8.h"

const sx_attr_def sx_text_case_attrs[1] = {SX_ATTR_TF(sx_encoding_attrs, encoding, SX_ATTR_STRING)};

sx_status sx_text_case_infer(sx_infer_context *c)
{
    const sx_encoding_attrs *attrs = c->attrs;
    SX_TRY(sx_require_name("encoding", attrs->encoding, (const char *const[]){"", "utf-8", NULL}));
    return sx_infer_string_map(c);
}

/* ---- Unicode ---- */

/* Characters first, first + step, ... last whose upper case is several characters: the first of
 * them counts up with the character, from `to[0]`. */
static const struct special {
    uint32_t first, last, to[3];
} specials[] = {
    {0x00DF, 0x00DF, {'S', 'S'}},
    {0x0149, 0x0149, {0x02BC, 'N'}},
    {0x01F0, 0x01F0, {'J', 0x030C}},
    {0x0390, 0x0390, {0x0399, 0x0308, 0x0301}},
    {0x03B0, 0x03B0, {0x03A5, 0x0308, 0x0301}},
    {0x0587, 0x0587, {0x0535, 0x0552}},
    {0x1E96, 0x1E96, {'H', 0x0331}},
    {0x1E97, 0x1E97, {'T', 0x0308}},
    {0x1E98, 0x1E98, {'W', 0x030A}},
    {0x1E99, 0x1E99, {'Y', 0x030A}},
    {0x1E9A, 0x1E9A, {'A', 0x02BE}},
    {0x1F50, 0x1F50, {0x03A5, 0x0313}},
    {0x1F52, 0x1F52, {0x03A5, 0x0313, 0x0300}},
    {0x1F54, 0x1F54, {0x03A5, 0x0313, 0x0301}},
    {0x1F56, 0x1F56, {0x03A5, 0x0313, 0x0342}},
    {0x1F80, 0x1F87, {0x1F08, 0x0399}},
    {0x1F88, 0x1F8F, {0x1F08, 0x0399}},
    {0x1F90, 0x1F97, {0x1F28, 0x0399}},
    {0x1F98, 0x1F9F, {0x1F28, 0x0399}},
    {0x1FA0, 0x1FA7, {0x1F68, 0x0399}},
    {0x1FA8, 0x1FAF, {0x1F68, 0x0399}},
    {0x1FB2, 0x1FB2, {0x1FBA, 0x0399}},
    {0x1FB3, 0x1FB3, {0x0391, 0x0399}},
    {0x1FB4, 0x1FB4, {0x0386, 0x0399}},
    {0x1FB6, 0x1FB6, {0x0391, 0x0342}},
    {0x1FB7, 0x1FB7, {0x0391, 0x0342, 0x0399}},
    {0x1FBC, 0x1FBC, {0x0391, 0x0399}},
    {0x1FC2, 0x1FC2, {0x1FCA, 0x0399}},
    {0x1FC3, 0x1FC3, {0x0397, 0x0399}},
    {0x1FC4, 0x1FC4, {0x0389, 0x0399}},
    {0x1FC6, 0x1FC6, {0x0397, 0x0342}},
    {0x1FC7, 0x1FC7, {0x0397, 0x0342, 0x0399}},
    {0x1FCC, 0x1FCC, {0x0397, 0x0399}},
    {0x1FD2, 0x1FD2, {0x0399, 0x0308, 0x0300}},
    {0x1FD3, 0x1FD3, {0x0399, 0x0308, 0x0301}},
    {0x1FD6, 0x1FD6, {0x0399, 0x0342}},
    {0x1FD7, 0x1FD7, {0x0399, 0x0308, 0x0342}},
    {0x1FE2, 0x1FE2, {0x03A5, 0x0308, 0x0300}},
    {0x1FE3, 0x1FE3, {0x03A5, 0x0308, 0x0301}},
    {0x1FE4, 0x1FE4, {0x03A1, 0x0313}},
    {0x1FE6, 0x1FE6, {0x03A5, 0x0342}},
    {0x1FE7, 0x1FE7, {0x03A5, 0x0308, 0x0342}},
    {0x1FF2, 0x1FF2, {0x1FFA, 0x0399}},
    {0x1FF3, 0x1FF3, {0x03A9, 0x0399}},
    {0x1FF4, 0x1FF4, {0x038F, 0x0399}},
    {0x1FF6, 0x1FF6, {0x03A9, 0x0342}},
    {0x1FF7, 0x1FF7, {0x03A9, 0x0342, 0x0399}},
    {0x1FFC, 0x1FFC, {0x03A9, 0x0399}},
    {0xFB00, 0xFB00, {'F', 'F'}},
    {0xFB01, 0xFB01, {'F', 'I'}},
    {0xFB02, 0xFB02, {'F', 'L'}},
    {0xFB03, 0xFB03, {'F', 'F', 'I'}},
    {0xFB04, 0xFB04, {'F', 'F', 'L'}},
    {0xFB05, 0xFB06, {'S', 'T'}},
    {0xFB13, 0xFB13, {0x0544, 0x0546}},
    {0xFB14, 0xFB14, {0x0544, 0x0535}},
    {0xFB15, 0xFB15, {0x0544, 0x053B}},
    {0xFB16, 0xFB16, {0x054E, 0x0546}},
    {0xFB17, 0xFB17, {0x0544, 0x053D}},
};

static locale_t unicode;

static void open_unicode(void)
{
    unicode = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0); /* kept until the process ends */
}

static void put_code(sx_buf *out, uint32_t code)
{
    char text[4];
    sx_buf_append(out, text, (size_t)(sx_utf8_put(text, code) - text));
}

static bool is_cased(uint32_t code)
{
    return towlower_l(code, unicode) != code || towupper_l(code, unicode) != code ||
           iswlower_l(code, unicode) || iswupper_l(code, unicode);
}

/* Marks and the like between letters, which do not end a word. */
static bool is_ignorable(uint32_t code)
{
    static const uint32_t points[] = {'\'', '.',  ':',  '^',  '`',   0xA8,  0xAD,
                                      0xAF, 0xB4, 0xB7, 0xB8, 0x387, 0x2019};
    bool found = (code >= 0x0300 && code <= 0x036F) || (code >= 0x02B0 && code <= 0x02FF) ||
                 (code >= 0x0483 && code <= 0x0489) || (code >= 0x1DC0 && code <= 0x1DFF) ||
                 (code >= 0x200B && code <= 0x200F) || (code >= 0x20D0 && code <= 0x20F0) ||
                 (code >= 0xFE00 && code <= 0xFE0F) || (code >= 0xFE20 && code <= 0xFE2F);
    for (size_t i = 0; i < SX_COUNT(points); i++) {
        found = found || points[i] == code;
    }
    return found;
}

/* After a letter, and not before one. */
static bool is_final(const uint32_t *codes, int64_t n, int64_t at)
{
    int64_t before = at - 1, after = at + 1;
    while (before >= 0 && is_ignorable(codes[before])) {
        before--;
    }
    while (after < n && is_ignorable(codes[after])) {
        after++;
    }
    return before >= 0 && is_cased(codes[before]) && !(after < n && is_cased(codes[after]));
}

static void put_upper(sx_buf *out, uint32_t code)
{
    for (size_t i = 0; i < SX_COUNT(specials); i++) {
        const struct special *s = &specials[i];
        if (code >= s->first && code <= s->last) {
            const bool counts = code >= 0x1F80 && code <= 0x1FAF;
            put_code(out, s->to[0] + (counts ? code - s->first : 0));
            for (int k = 1; k < 3 && s->to[k] != 0; k++) {
                put_code(out, s->to[k]);
            }
            return;
        }
    }
    put_code(out, towupper_l(code, unicode));
}

sx_status sx_text_case_host(const sx_kernel_call *c, bool upper)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const sx_encoding_attrs *attrs = c->attrs;
    const bool ascii = !sx_string_is(attrs->encoding, "utf-8");
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n && ascii; k++) {
        SX_TRY(sx_string_copy(c, c->in[0].s[k].data, c->in[0].s[k].size, &c->out[0].s[k]));
        char *text = (char *)(uintptr_t)c->out[0].s[k].data;
        for (size_t i = 0; i < c->out[0].s[k].size; i++) {
            const char first = upper ? 'a' : 'A';
            text[i] = (char)(text[i] >= first && text[i] <= first + 25 ? text[i] ^ 0x20 : text[i]);
        }
    }
    if (ascii) {
        return SX_OK;
    }
    (void)pthread_once(&once, open_unicode);
    if (unicode == (locale_t)0) {
        return sx_error(SX_FAILED_PRECONDITION,
                        "the C library has no locale C.UTF-8, which knows upper and "
                        "lower case of all letters");
    }
    sx_buf buf = sx_string_buf(c);
    sx_status status = SX_OK;
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n && status == SX_OK; k++) {
        const sx_bytes *s = &c->in[0].s[k];
        uint32_t *codes = sx_arena_array(c->arena, s->size + 1, uint32_t);
        int64_t n_codes = 0;
        if (codes == NULL) {
            status = sx_budget_error(c->arena->budget);
            break;
        }
        for (size_t i = 0; i < s->size; n_codes++) {
            i += sx_utf8_decode((const char *)s->data + i, s->size - i, &codes[n_codes]);
            codes[n_codes] = codes[n_codes] == SX_UTF8_MALFORMED ? 0xFFFD : codes[n_codes];
        }
        for (int64_t i = 0; i < n_codes; i++) {
            if (upper) {
                put_upper(&buf, codes[i]);
            } else if (codes[i] == 0x03A3 && is_final(codes, n_codes, i)) {
                put_code(&buf, 0x03C2);
            } else if (codes[i] == 0x0130) {
                put_code(&buf, 'i');
                put_code(&buf, 0x0307);
            } else {
                put_code(&buf, towlower_l(codes[i], unicode));
            }
        }
        status = sx_string_put(c, 0, k, &buf);
    }
    sx_buf_deinit(&buf);
    return status;
}
