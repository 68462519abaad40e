/* string_ngrams: runs of neighbouring strings of each row, joined.
 *
 *   data          strings [k], rows of a ragged tensor
 *   splits        int32 or int64 [rows + 1]
 *   separator     between two strings
 *   ngram_widths  lengths of the runs
 *   left_pad, right_pad, pad_width   so many pads (-1: as many as fit) before and after each row
 *   preserve_short_sequences   a row that has no run, but strings, is one run
 *   returns       strings [m], and splits [rows + 1] of the dtype of splits
 *
 * Errors   INVALID_ARGUMENT    dtypes, ranks, widths; (running) splits that do not ascend from 0 to
 * k RESOURCE_EXHAUSTED  (running) too many runs Source   TensorFlow StringNGrams */
#include "graph/ops/host_ops.h"

typedef struct sx_string_ngrams_attrs {
    const char *separator, *left_pad, *right_pad;
    sx_ints ngram_widths;
    int64_t pad_width;
    bool preserve_short_sequences;
} sx_string_ngrams_attrs;

static const sx_attr_def string_ngrams_attrs[] = {
    SX_ATTR_TF(sx_string_ngrams_attrs, separator, SX_ATTR_STRING),
    SX_ATTR_TF(sx_string_ngrams_attrs, ngram_widths, SX_ATTR_INTS),
    SX_ATTR_TF(sx_string_ngrams_attrs, left_pad, SX_ATTR_STRING),
    SX_ATTR_TF(sx_string_ngrams_attrs, right_pad, SX_ATTR_STRING),
    SX_ATTR_TF(sx_string_ngrams_attrs, pad_width, SX_ATTR_INT),
    SX_ATTR_TF(sx_string_ngrams_attrs, preserve_short_sequences, SX_ATTR_BOOL),
};

enum { MAX_WIDTH = 1 << 16 };

static sx_status string_ngrams_infer(sx_infer_context *c)
{
    const sx_string_ngrams_attrs *attrs = c->attrs;
    bool sound = attrs->pad_width <= MAX_WIDTH;
    for (int i = 0; i < attrs->ngram_widths.n; i++) {
        sound = sound && attrs->ngram_widths.v[i] > 0 && attrs->ngram_widths.v[i] <= MAX_WIDTH;
    }
    if (!sound) {
        return sx_error(SX_INVALID_ARGUMENT, "an n-gram's width, or pad_width, is not from 1 to %d",
                        MAX_WIDTH);
    }
    SX_TRY(sx_require_maybe("data", &c->inputs[0], SX_STRING, 1, "[k]"));
    SX_TRY(sx_require_integers("splits", &c->inputs[1], 1, "[rows + 1]"));
    c->outputs[0] = sx_type_of(SX_STRING, SX_UNKNOWN_DIM);
    c->outputs[1] = c->inputs[1];
    return SX_OK;
}

static int64_t pad_of(const sx_string_ngrams_attrs *attrs, int64_t width)
{
    return attrs->pad_width < 0 ? width - 1 : SX_MIN(attrs->pad_width, width - 1);
}

/* How many runs of a width a row of that length has. */
static int64_t runs_of(const sx_string_ngrams_attrs *attrs, int64_t length, int64_t width)
{
    return SX_MAX(0, length + 2 * pad_of(attrs, width) - width + 1);
}

static sx_status string_ngrams_host_types(const sx_kernel_call *c, sx_type *out_types)
{
    const sx_string_ngrams_attrs *attrs = c->attrs;
    const int64_t n = c->in[1].type.dims[0], size = c->in[0].type.dims[0];
    const int64_t *splits = c->in[1].i;
    int64_t total = 0;
    bool sound = n == 0 || (splits[0] == 0 && splits[n - 1] == size);
    for (int64_t k = 1; k < n && sound; k++) {
        const int64_t length = splits[k] - splits[k - 1];
        int64_t runs = 0;
        sound = length >= 0 && length <= size;
        for (int i = 0; i < attrs->ngram_widths.n && sound; i++) {
            runs += runs_of(attrs, length, attrs->ngram_widths.v[i]);
        }
        if (runs == 0 && length > 0 && attrs->preserve_short_sequences) {
            sound = sound && attrs->pad_width >= 0;
            runs = 1;
        }
        total += runs;
    }
    if (!sound) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "splits do not ascend from 0 to %lld, the strings; or a short row is to be "
                        "padded without a pad_width",
                        (long long)size);
    }
    out_types[0] = sx_type_of(SX_STRING, total);
    out_types[1] = c->in[1].type;
    return sx_require_made("the n-grams", &out_types[0]);
}

static void put_run(const sx_string_ngrams_attrs *attrs, const sx_bytes *row, int64_t width,
                    int64_t at, int64_t runs, int64_t pad, sx_buf *out)
{
    const char *separator = attrs->separator != NULL ? attrs->separator : "";
    const int64_t left = SX_MAX(0, pad - at), right = SX_MAX(0, pad - (runs - (at + 1)));
    const int64_t first = left > 0 ? 0 : at - pad;
    for (int64_t k = 0; k < width; k++) {
        sx_buf_puts(out, k > 0 ? separator : "");
        if (k < left) {
            sx_buf_puts(out, attrs->left_pad != NULL ? attrs->left_pad : "");
        } else if (k < width - right) {
            sx_buf_append(out, row[first + k - left].data, row[first + k - left].size);
        } else {
            sx_buf_puts(out, attrs->right_pad != NULL ? attrs->right_pad : "");
        }
    }
}

static sx_status string_ngrams_host(const sx_kernel_call *c)
{
    const sx_string_ngrams_attrs *attrs = c->attrs;
    const int64_t n = c->in[1].type.dims[0];
    const int64_t *splits = c->in[1].i;
    int64_t at = 0;
    sx_buf buf = sx_string_buf(c);
    sx_status status = SX_OK;
    for (int64_t k = 0; k < n && status == SX_OK; k++) {
        const int64_t length = k > 0 ? splits[k] - splits[k - 1] : 0, before = at;
        const sx_bytes *row = &c->in[0].s[k > 0 ? splits[k - 1] : 0];
        for (int i = 0; i < attrs->ngram_widths.n && k > 0; i++) {
            const int64_t width = attrs->ngram_widths.v[i], runs = runs_of(attrs, length, width);
            for (int64_t j = 0; j < runs && status == SX_OK; j++) {
                put_run(attrs, row, width, j, runs, pad_of(attrs, width), &buf);
                status = sx_string_put(c, 0, at++, &buf);
            }
        }
        if (status == SX_OK && at == before && length > 0 && attrs->preserve_short_sequences) {
            put_run(attrs, row, length + 2 * attrs->pad_width, 0, 1, attrs->pad_width, &buf);
            status = sx_string_put(c, 0, at++, &buf);
        }
        c->out[1].i[k] = at;
    }
    sx_buf_deinit(&buf);
    return status;
}

static void string_ngrams_to_tf(sx_tf_writer *w, const sx_tf_op *op)
{
    const sx_string_ngrams_attrs *attrs = op->attrs;
    sx_tf_same(
        w, op, &sx_op_string_ngrams, "StringNGrams",
        sx_tf_attrs(sx_tf_attr_type("Tsplits", (int)op->in_types[1].dtype),
                    sx_tf_attr_string("separator", attrs->separator),
                    sx_tf_attr_string("left_pad", attrs->left_pad),
                    sx_tf_attr_string("right_pad", attrs->right_pad),
                    sx_tf_attr_int("pad_width", attrs->pad_width),
                    sx_tf_attr_bool("preserve_short_sequences", attrs->preserve_short_sequences)));
}

const sx_op_def sx_op_string_ngrams = {
    SX_OP_NAMED(string_ngrams),
    .n_in = 2,
    .n_out = 2,
    .flags = SX_OP_HOST | SX_OP_NO_GRAD,
    SX_OP_ATTRS(sx_string_ngrams_attrs, string_ngrams_attrs),
    .infer = string_ngrams_infer,
    .host = string_ngrams_host,
    .host_types = string_ngrams_host_types,
    .to_tf = string_ngrams_to_tf,
    SX_FROM_TF({.op = "StringNGrams"}),
};
