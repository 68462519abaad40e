/* string_split: the parts of each string between separators of one byte.
 *
 *   x           strings [N]
 *   separators  string: each of its bytes separates; empty: every byte is a part
 *   skip_empty  empty parts are left out
 *   returns     a sparse tensor: indices int64 [k, 2], values strings [k], shape int64 [2]
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks
 * Source   TensorFlow StringSplit, of tf.compat.v1.string_split and tf.strings.bytes_split */
#include <string.h>

#include "graph/ops/split.h"

typedef struct sx_string_split_attrs {
    bool skip_empty;
} sx_string_split_attrs;

static const sx_attr_def string_split_attrs[] = {
    SX_ATTR_TF(sx_string_split_attrs, skip_empty, SX_ATTR_BOOL, .tf_number = 1)};

static int64_t parts_of(const sx_kernel_call *c, const sx_bytes *text, sx_bytes *out)
{
    const sx_string_split_attrs *attrs = c->attrs;
    const sx_bytes *separators = &c->in[1].s[0];
    const char *from = text->data, *end = from + text->size;
    int64_t n = 0;
    for (const char *at = from; at <= end && text->size > 0; at++) {
        const bool cuts = separators->size > 0 &&
                          (at == end || memchr(separators->data, *at, separators->size) != NULL);
        const bool single = separators->size == 0 && at < end;
        const char *to = single ? at + 1 : at;
        if ((cuts && (to > from || !attrs->skip_empty)) || single) {
            if (out != NULL) {
                out[n] = (sx_bytes){from, (size_t)(to - from)};
            }
            n++;
        }
        from = cuts || single ? at + 1 : from;
    }
    return n;
}

static sx_status string_split_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    return sx_split_types(c, parts_of, out_types);
}

static sx_status string_split_host(const sx_kernel_call *c)
{
    return sx_split_run(c, parts_of);
}

static void string_split_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_string_split, "StringSplit", SX_TF_NO_ATTRS);
}

static const char *const marks[] = {",;", NULL}, *const nothing[] = {"", NULL};
static const char *const rows[] = {"a,b,;c", "", ",", "one", NULL};
#define SPLIT(name_, separator_, skip_)                                                          \
    {                                                                                            \
        .name = (name_),                                                                         \
        .inputs = {SX_SAMPLE_TEXTS(rows, 4),                                                     \
                   {.type = {.dtype = SX_STRING}, .fill = SX_FILL_TEXT, .texts = (separator_)}}, \
        .n_inputs = 2, .attrs = &(const sx_string_split_attrs)                                   \
        {                                                                                        \
            .skip_empty = (skip_)                                                                \
        }                                                                                        \
    }
static const sx_op_sample string_split_samples[] = {SPLIT("skip_empty", marks, true),
                                                    SPLIT("keep_empty", marks, false),
                                                    SPLIT("bytes", nothing, false)};

const sx_op_def sx_op_string_split = {
    SX_OP_NAMED(string_split),
    .n_in = 2,
    .n_out = 3,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_string_split_attrs, string_split_attrs),
    .infer = sx_split_infer,
    .host = string_split_host,
    .host_types = string_split_host_types,
    .to_tf = string_split_to_tf,
    SX_FROM_TF({.op = "StringSplit"}),
    SX_OP_SAMPLES(string_split_samples),
};
