/* See split.h. */
#include "graph/ops/split.h"

#include <string.h>

int64_t sx_split_text(const sx_bytes *text, const sx_bytes *separator, int64_t maxsplit,
                      int64_t most, sx_bytes *out)
{
    const char *at = text->data, *end = at + text->size;
    int64_t n = 0;
#define PART(from, to)                                            \
    do {                                                          \
        if (n < most) {                                           \
            out[n] = (sx_bytes){(from), (size_t)((to) - (from))}; \
        }                                                         \
        n++;                                                      \
    } while (0)
    if (maxsplit == 0) {
        PART(at, end);
    } else if (separator->size == 0) {
        for (;;) {
            while (at < end && sx_is_ascii_space((uint8_t)*at)) {
                at++;
            }
            if (n > 0 && n == maxsplit) {
                PART(at, end);
                break;
            }
            const char *from = at;
            while (at < end && !sx_is_ascii_space((uint8_t)*at)) {
                at++;
            }
            if (at == from) {
                break;
            }
            PART(from, at);
        }
    } else {
        const char *next;
        while ((maxsplit < 0 || n < maxsplit) && at < end &&
               (next = memmem(at, (size_t)(end - at), separator->data, separator->size)) != NULL) {
            PART(at, next);
            at = next + separator->size;
        }
        PART(at, end);
    }
#undef PART
    return n;
}

sx_status sx_split_infer(sx_infer_context *c)
{
    SX_TRY(sx_require_maybe("the input", &c->inputs[0], SX_STRING, 1, "[N]"));
    SX_TRY(sx_require_maybe("the separator", &c->inputs[1], SX_STRING, 0, "a scalar"));
    c->outputs[0] = sx_type_of(SX_I64, SX_UNKNOWN_DIM, 2);
    c->outputs[1] = sx_type_of(SX_STRING, SX_UNKNOWN_DIM);
    c->outputs[2] = sx_type_of(SX_I64, 2);
    return SX_OK;
}

sx_status sx_split_types(const sx_kernel_call *c, sx_splitter *split, sx_type *out)
{
    int64_t count = 0;
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n; k++) {
        count += split(c, &c->in[0].s[k], NULL);
    }
    out[0] = sx_type_of(SX_I64, count, 2);
    out[1] = sx_type_of(SX_STRING, count);
    out[2] = sx_type_of(SX_I64, 2);
    return SX_OK;
}

sx_status sx_split_run(const sx_kernel_call *c, sx_splitter *split)
{
    const int64_t n = sx_type_elems(&c->in[0].type);
    int64_t *index = c->out[0].i, most = 0;
    sx_bytes *value = c->out[1].s;
    for (int64_t k = 0; k < n; k++) {
        const sx_bytes *text = &c->in[0].s[k];
        sx_bytes kept;
        SX_TRY(sx_string_copy(c, text->data, text->size, &kept)); /* the parts are views of it */
        const int64_t parts = split(c, &kept, value);
        for (int64_t i = 0; i < parts; i++) {
            *index++ = k;
            *index++ = i;
        }
        value += parts;
        most = SX_MAX(most, parts);
    }
    c->out[2].i[0] = n;
    c->out[2].i[1] = most;
    return SX_OK;
}
