/* string_split_v2: the parts of each string between separators, as Python's str.split gives them.
 *
 *   x          strings [N]
 *   separator  string; empty: any run of ASCII white space, and none at the ends
 *   maxsplit   at most so many cuts; -1: no limit
 *   returns    a sparse tensor: indices int64 [k, 2], values strings [k], shape int64 [2]
 *
 * Errors   INVALID_ARGUMENT  dtypes, ranks
 * Source   TensorFlow StringSplitV2 (core/kernels/string_split_op.cc) */
#include "graph/ops/split.h"

typedef struct sx_string_split_v2_attrs {
    int64_t maxsplit;
} sx_string_split_v2_attrs;

static const sx_attr_def string_split_v2_attrs[] = {
    SX_ATTR_TF(sx_string_split_v2_attrs, maxsplit, SX_ATTR_INT, .tf_number = -1)};

static int64_t parts_of(const sx_kernel_call *c, const sx_bytes *text, sx_bytes *out)
{
    const sx_string_split_v2_attrs *attrs = c->attrs;
    return sx_split_text(text, &c->in[1].s[0], attrs->maxsplit, out != NULL ? INT64_MAX : 0, out);
}

static sx_status string_split_v2_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    return sx_split_types(c, parts_of, out_types);
}

static sx_status string_split_v2_host(const sx_kernel_call *c)
{
    return sx_split_run(c, parts_of);
}

static void string_split_v2_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    sx_tf_same(w, op, &sx_op_string_split_v2, "StringSplitV2", SX_TF_NO_ATTRS);
}

static const char *const comma[] = {",", NULL}, *const nothing[] = {"", NULL};
static const char *const rows[] = {"a,b,,c", "", ",", "  two words ", "one", NULL};
#define SPLIT(name_, separator_, n_)                                                             \
    {                                                                                            \
        .name = (name_),                                                                         \
        .inputs = {SX_SAMPLE_TEXTS(rows, 5),                                                     \
                   {.type = {.dtype = SX_STRING}, .fill = SX_FILL_TEXT, .texts = (separator_)}}, \
        .n_inputs = 2, .attrs = &(const sx_string_split_v2_attrs)                                \
        {                                                                                        \
            .maxsplit = (n_)                                                                     \
        }                                                                                        \
    }
static const sx_op_sample string_split_v2_samples[] = {
    SPLIT("comma", comma, -1), SPLIT("comma_once", comma, 1), SPLIT("space", nothing, -1),
    SPLIT("space_once", nothing, 1), SPLIT("not_at_all", comma, 0)};

const sx_op_def sx_op_string_split_v2 = {
    SX_OP_NAMED(string_split_v2),
    .n_in = 2,
    .n_out = 3,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_string_split_v2_attrs, string_split_v2_attrs),
    .infer = sx_split_infer,
    .host = string_split_v2_host,
    .host_types = string_split_v2_host_types,
    .to_tf = string_split_v2_to_tf,
    SX_FROM_TF({.op = "StringSplitV2"}),
    SX_OP_SAMPLES(string_split_v2_samples),
};
