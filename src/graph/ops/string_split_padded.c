/* string_split_padded: the first parts of each string between separators, filled up with "".
 *
 *   x          strings [N]
 *   separator  "" : any run of ASCII white space, and none at the ends
 *   length     how many parts each string has in the result
 *   returns    strings [N, length]
 *
 * Errors      INVALID_ARGUMENT  dtype, rank, a length that is not 1 to 2^20
 * TensorFlow  StringSplitV2 and RaggedTensorToTensor, imported as these
 * Source      TensorFlow tf.strings.split, RaggedTensor.to_tensor */
#ifdef SX_PUBLIC
typedef struct sx_string_split_padded_args {
    size_t struct_size;
    int64_t length;
    const char *separator; /* NULL or "": white space */
} sx_string_split_padded_args;

/* x [N] -> the first .length parts of each string [N, length]; what fills up is "".
 * tf.strings.split(x, separator).to_tensor(shape=[None, length]). */
sx_value sx_string_split_padded(sx_builder *b, sx_value x, const sx_string_split_padded_args *args);
#endif

#include <string.h>

#include "graph/ops/split.h"

enum { MOST_PARTS = 1 << 20 };

typedef struct sx_string_split_padded_attrs {
    const char *separator;
    int64_t length;
} sx_string_split_padded_attrs;

static const sx_attr_def string_split_padded_attrs[] = {
    SX_ATTR(sx_string_split_padded_attrs, separator, SX_ATTR_STRING),
    SX_ATTR(sx_string_split_padded_attrs, length, SX_ATTR_INT),
};

static sx_bytes separator_of(const sx_string_split_padded_attrs *attrs)
{
    const char *text = attrs->separator != NULL ? attrs->separator : "";
    return (sx_bytes){text, strlen(text)};
}

static sx_status string_split_padded_infer(sx_infer_context *c)
{
    const sx_string_split_padded_attrs *attrs = c->attrs;
    SX_TRY(sx_require_maybe("x", &c->inputs[0], SX_STRING, 1, "[N]"));
    if (attrs->length < 1 || attrs->length > MOST_PARTS) {
        return sx_error(SX_INVALID_ARGUMENT, "length is %lld, expected 1 to %d",
                        (long long)attrs->length, (int)MOST_PARTS);
    }
    const int64_t n = c->inputs[0].rank == 1 ? c->inputs[0].dims[0] : SX_UNKNOWN_DIM;
    c->outputs[0] = sx_type_of(SX_STRING, n, attrs->length);
    return SX_OK;
}

static sx_status string_split_padded_host(const sx_kernel_call *c)
{
    const sx_string_split_padded_attrs *attrs = c->attrs;
    const sx_bytes separator = separator_of(attrs);
    for (int64_t k = 0, n = sx_type_elems(&c->in[0].type); k < n; k++) {
        sx_bytes *out = &c->out[0].s[k * attrs->length], kept;
        SX_TRY(sx_string_copy(c, c->in[0].s[k].data, c->in[0].s[k].size, &kept));
        const int64_t parts = sx_split_text(&kept, &separator, -1, attrs->length, out);
        for (int64_t i = parts; i < attrs->length; i++) {
            out[i] = (sx_bytes){"", 0};
        }
    }
    return SX_OK;
}

/* Number `k` along an axis of int64s. */
static sx_tf_value take(sx_tf_writer *w, const char *name, sx_tf_value x, int k, int axis)
{
    return sx_tf_add(w, "GatherV2", name,
                     sx_tf_in(x, sx_tf_const_i32(w, "index", k), sx_tf_const_i32(w, "axis", axis)),
                     sx_tf_attrs(sx_tf_attr_type("Tparams", SX_I64),
                                 sx_tf_attr_type("Tindices", SX_I32),
                                 sx_tf_attr_type("Taxis", SX_I32)));
}

static void string_split_padded_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_string_split_padded_attrs *attrs = op->attrs;
    sx_bytes separator = separator_of(attrs), nothing = {"", 0};
    int64_t shape[] = {-1, attrs->length};
    const sx_tf_value parts = sx_tf_add(
        w, "StringSplitV2", NULL,
        sx_tf_in(op->in[0],
                 sx_tf_const(w, "separator", &(sx_tensor){sx_scalar_type(SX_STRING), &separator})),
        SX_TF_NO_ATTRS);
    op->out[0] = sx_tf_add(
        w, "RaggedTensorToTensor", NULL,
        sx_tf_in(sx_tf_const(w, "shape", &(sx_tensor){sx_type_of(SX_I64, 2), shape}),
                 sx_tf_output(parts, 1),
                 sx_tf_const(w, "padding", &(sx_tensor){sx_scalar_type(SX_STRING), &nothing}),
                 take(w, "rows", sx_tf_output(parts, 2), 0, 0), take(w, "row_ids", parts, 0, 1)),
        sx_tf_attrs(sx_tf_attr_type("T", SX_STRING), sx_tf_attr_type("Tindex", SX_I64),
                    sx_tf_attr_type("Tshape", SX_I64),
                    sx_tf_attr_int("num_row_partition_tensors", 2),
                    sx_tf_attr_strings("row_partition_types", 2, "FIRST_DIM_SIZE,VALUE_ROWIDS")));
}

static const char *const rows[] = {"a,b,,c", "", ",", "  two words ", "one, two three four", NULL};
#define PADDED(...)                                \
    .attrs = &(const sx_string_split_padded_attrs) \
    {                                              \
        __VA_ARGS__                                \
    }
static const sx_op_sample string_split_padded_samples[] = {
    {.name = "space", .inputs = {SX_SAMPLE_TEXTS(rows, 5)}, .n_inputs = 1, PADDED(.length = 3)},
    {.name = "comma",
     .inputs = {{.type = {.dtype = SX_STRING, .rank = 1, .dims = {SX_BATCH}},
                 .fill = SX_FILL_TEXT,
                 .texts = rows}},
     .n_inputs = 1,
     PADDED(.length = 2, .separator = ",")},
};

sx_value sx_string_split_padded_at(sx_builder *b, sx_value x,
                                   const sx_string_split_padded_args *args, const char *file,
                                   int line)
{
    SX_TAKE_BUILD_ARGS(b, sx_string_split_padded_args, args);
    const sx_string_split_padded_attrs attrs = {.length = args->length,
                                                .separator = args->separator};
    return sx_build_at(b, &sx_op_string_split_padded, &attrs, &x, 1, file, line);
}

const sx_op_def sx_op_string_split_padded = {
    SX_OP_NAMED(string_split_padded),
    .n_in = 1,
    .n_out = 1,
    .batch_rule = SX_RULE_EXAMPLES,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_string_split_padded_attrs, string_split_padded_attrs),
    .infer = string_split_padded_infer,
    .host = string_split_padded_host,
    .to_tf = string_split_padded_to_tf,
    SX_OP_SAMPLES(string_split_padded_samples),
};
