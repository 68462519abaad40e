/* substr: a part of each string.
 *
 *   x        strings
 *   pos      int32 or int64: the first byte or character; negative: counted from the end
 *   len      of pos' type and shape: how many, as far as there are so many; negative: all
 *   unit     "BYTE" or "UTF8_CHAR"
 *   returns  strings; x and pos broadcast as in NumPy
 *
 * Errors   INVALID_ARGUMENT  dtypes, shapes, unit; (running) pos lies outside of its string
 * Source   TensorFlow Substr (core/kernels/substr_op.cc) */
#include <string.h>

#include "graph/ops/host_ops.h"

static const sx_attr_def substr_attrs[] = {
    SX_ATTR_TF(sx_unit_attrs, unit, SX_ATTR_STRING, .tf_text = "BYTE")};

static sx_status substr_infer(sx_infer_context *c)
{
    const sx_unit_attrs *attrs = c->attrs;
    SX_TRY(sx_require_name("unit", attrs->unit, (const char *const[]){"BYTE", "UTF8_CHAR", NULL}));
    SX_TRY(sx_require_dtype("the input", &c->inputs[0], SX_STRING));
    sx_type numbers;
    SX_TRY(sx_require_index("pos", &c->inputs[1]));
    SX_TRY(sx_require_dtype("len", &c->inputs[2], c->inputs[1].dtype));
    SX_TRY(sx_merge_shapes("pos", &c->inputs[1], "len", &c->inputs[2], &numbers));
    return sx_infer_broadcast_maybe(&c->inputs[0], &numbers, &c->outputs[0]);
}

static bool continues(const uint8_t *text, size_t at)
{
    return (text[at] & 0xC0) == 0x80;
}

/* Moves *at by n characters, as far as there are so many; whether there are. */
static bool forward(const uint8_t *text, size_t size, int64_t n, size_t *at)
{
    for (; n > 0 && *at < size; n--) {
        do {
            ++*at;
        } while (*at < size && continues(text, *at));
    }
    return n <= 0;
}

static bool backward(const uint8_t *text, int64_t n, size_t *at)
{
    for (; n > 0 && *at > 0; n--) {
        do {
            --*at;
        } while (*at > 0 && continues(text, *at));
    }
    return n == 0;
}

/* Bytes [*begin, *end) of the characters; false: pos is outside. */
static bool find_characters(const uint8_t *text, size_t size, int64_t pos, int64_t len,
                            size_t *begin, size_t *end)
{
    if (pos >= 0) {
        *begin = 0;
        const bool found = forward(text, size, pos, begin);
        *end = *begin;
        (void)forward(text, size, len, end);
        return found;
    }
    const int64_t back = SX_WRAP(0, -, pos), skipped = len < back ? SX_WRAP(back, -, len) : 0;
    *end = size;
    if (!backward(text, skipped, end)) {
        return false;
    }
    *begin = *end;
    return backward(text, SX_WRAP(back, -, skipped), begin);
}

static sx_status substr_host(const sx_kernel_call *c)
{
    const sx_unit_attrs *attrs = c->attrs;
    const sx_type *y = &c->out[0].type;
    const bool characters = sx_string_is(attrs->unit, "UTF8_CHAR");
    for (int64_t k = 0, n = sx_type_elems(y); k < n; k++) {
        const sx_bytes *s = &c->in[0].s[sx_broadcast_offset(y, &c->in[0].type, k)];
        const int64_t at = sx_broadcast_offset(y, &c->in[1].type, k);
        const int64_t pos = c->in[1].i[at], len = c->in[2].i[at], size = (int64_t)s->size;
        size_t begin = 0, end = 0;
        bool found = pos <= size && pos >= -size;
        if (characters) {
            found = find_characters(s->data, s->size, pos, len, &begin, &end);
        } else if (found) {
            begin = (size_t)(pos < 0 ? size + pos : pos);
            end = len < 0 || (uint64_t)len > s->size - begin ? s->size : begin + (size_t)len;
        }
        if (!found) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "pos %lld is out of range for %s at index %lld, of %lld bytes",
                            (long long)pos, SX_QUOTE(s), (long long)k, (long long)size);
        }
        SX_TRY(sx_string_copy(c, (const char *)s->data + begin, end - begin, &c->out[0].s[k]));
    }
    return SX_OK;
}

static void substr_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_substr, "Substr",
               sx_tf_attrs(sx_tf_attr_type("T", (int)op->in_types[1].dtype)));
}

static const char *const texts[] = {"hello", "ünïcödé", "日本語 テキスト", NULL};
static const double places[] = {0, -1, 2, -3, 3}, lengths[] = {2, 9, 0, 1};
#define NUMBERS(dtype, ...) \
    SX_SAMPLE_LIST(dtype, places, __VA_ARGS__), SX_SAMPLE_LIST(dtype, lengths, __VA_ARGS__)
static const sx_op_sample substr_samples[] = {
    {.name = "bytes",
     .inputs = {SX_SAMPLE_TEXTS(texts, SX_BATCH), NUMBERS(SX_I32, SX_BATCH)},
     .n_inputs = 3,
     .attrs = &(const sx_unit_attrs){.unit = "BYTE"}},
    {.name = "characters",
     .inputs = {SX_SAMPLE_TEXTS(texts, SX_BATCH, 1), NUMBERS(SX_I64, 4)},
     .n_inputs = 3,
     .attrs = &(const sx_unit_attrs){.unit = "UTF8_CHAR"}},
};

const sx_op_def sx_op_substr = {
    SX_OP_NAMED(substr),
    .n_in = 3,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_unit_attrs, substr_attrs),
    .infer = substr_infer,
    .host = substr_host,
    .to_tf = substr_to_tf,
    SX_FROM_TF({.op = "Substr"}),
    SX_OP_SAMPLES(substr_samples),
};
