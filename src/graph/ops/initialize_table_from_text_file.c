/* initialize_table_from_text_file: puts an entry for each line of a file into a static table.
 *
 *   filename     string scalar: a path in the model's directory, "assets/vocabulary.txt"
 *   key_index, value_index   what of a line is the key, the value: -2 all of it, a string; -1 its
 *                number from 0 on plus `offset`, int64; n >= 0 its column n
 *   delimiter    the character between columns; "" = tab
 *   vocab_size   how many lines are read, the file must have them; -1 = all
 *   returns      int64 scalar: how many keys the table has
 *
 * A line ends with a line feed, or with the file; carriage returns are left out.
 *
 * Errors   INVALID_ARGUMENT     attributes, dtypes; (running) a path outside of the directory, a
 *                               line that is empty, has too few columns or is no number, too few
 *                               lines
 *          FAILED_PRECONDITION  (running) two values for a key; the table is already initialized,
 *                               with other values
 *          NOT_FOUND            (running) no such file
 *          RESOURCE_EXHAUSTED   (running) the file is too large for the memory limit
 * Source   TensorFlow InitializeTableFromTextFile, InitializeTableFromTextFileV2 */
#include "graph/ops/lookup_table.h"

enum { WHOLE_LINE = -2, LINE_NUMBER = -1, MAX_COLUMN = 1 << 20 };

static const sx_attr_def initialize_table_from_text_file_attrs[] = {
    SX_TABLE_ATTR_ROWS(sx_table_text_file_attrs),
    SX_ATTR(sx_table_text_file_attrs, key_index, SX_ATTR_INT),
    SX_ATTR(sx_table_text_file_attrs, value_index, SX_ATTR_INT),
    SX_ATTR(sx_table_text_file_attrs, vocab_size, SX_ATTR_INT),
    SX_ATTR(sx_table_text_file_attrs, offset, SX_ATTR_INT),
    SX_ATTR(sx_table_text_file_attrs, delimiter, SX_ATTR_STRING),
};

static sx_status check_index(const char *what, int64_t index, sx_dtype dtype)
{
    const bool text = index != LINE_NUMBER && dtype == SX_STRING;
    const bool number =
        index >= 0 && (dtype == SX_I32 || dtype == SX_I64 || dtype == SX_F32 || dtype == SX_F64);
    if (index < WHOLE_LINE || index > MAX_COLUMN ||
        !(text || number || (index == LINE_NUMBER && dtype == SX_I64))) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s_index is %lld, of %s; expected -2 (the line, strings), -1 (its number, "
                        "int64) or a column",
                        what, (long long)index, sx_dtype_name(dtype));
    }
    return SX_OK;
}

static sx_status initialize_table_from_text_file_infer(sx_infer_context *c)
{
    const sx_table_text_file_attrs *attrs = c->attrs;
    SX_TRY(sx_infer_table(c, 1));
    SX_TRY(sx_require_maybe("filename", &c->inputs[0], SX_STRING, 0, "a scalar"));
    SX_TRY(check_index("key", attrs->key_index, attrs->base.keys));
    SX_TRY(check_index("value", attrs->value_index, attrs->base.values));
    if (attrs->base.kind != SX_TABLE_STATIC || attrs->base.shape.n != 0 || attrs->vocab_size < -1 ||
        attrs->vocab_size == 0 || (attrs->delimiter != NULL && strlen(attrs->delimiter) > 1)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "the table is not static, its values are not scalars, vocab_size %lld is "
                        "not -1 or a count, or the delimiter is not one character",
                        (long long)attrs->vocab_size);
    }
    c->outputs[0] = sx_scalar_type(SX_I64);
    return SX_OK;
}

/* Column `index` of a line; -1 columns: it has not so many. */
static bool find_column(const sx_bytes *line, int64_t index, char delimiter, sx_bytes *out)
{
    const char *at = line->data, *end = at + line->size;
    for (int64_t i = 0;; i++) {
        const char *stop = at == end ? end : memchr(at, delimiter, (size_t)(end - at));
        stop = stop != NULL ? stop : end;
        if (i == index) {
            *out = (sx_bytes){at, (size_t)(stop - at)};
            return true;
        }
        if (stop == end) {
            return false;
        }
        at = stop + 1;
    }
}

/* The keys, or the values, of all lines. */
static sx_status read_column(const sx_kernel_call *c, const sx_bytes *lines, int64_t n,
                             int64_t index, sx_dtype dtype, sx_host_tensor *out)
{
    const sx_table_text_file_attrs *attrs = c->attrs;
    const char delimiter =
        attrs->delimiter != NULL && attrs->delimiter[0] != '\0' ? attrs->delimiter[0] : '\t';
    sx_host_tensor texts = {.type = sx_type_of(SX_STRING, n)};
    out->type = sx_type_of(dtype, n);
    out->data = sx_arena_alloc(c->arena, (size_t)n + 1, sx_carrier_bytes(dtype));
    texts.s = index >= 0 ? sx_arena_array(c->arena, n + 1, sx_bytes) : NULL;
    if (out->data == NULL || (index >= 0 && texts.s == NULL)) {
        return sx_budget_error(c->arena->budget);
    }
    for (int64_t k = 0; k < n; k++) {
        if (index == LINE_NUMBER) {
            out->i[k] = SX_WRAP(k, +, attrs->offset);
        } else if (index == WHOLE_LINE) {
            out->s[k] = lines[k];
        } else if (!find_column(&lines[k], index, delimiter, &texts.s[k])) {
            return sx_error(SX_INVALID_ARGUMENT, "line %lld, %s, has no column %lld",
                            (long long)k + 1, SX_QUOTE(&lines[k]), (long long)index);
        }
    }
    if (index >= 0 && dtype == SX_STRING) {
        out->data = texts.data;
    } else if (index >= 0) {
        const sx_string_to_number_attrs number = {.out_type = dtype};
        return sx_host_run_carried(&sx_op_string_to_number, &number, &texts, 1, out, 1, c->arena,
                                   false);
    }
    return SX_OK;
}

static sx_status initialize_table_from_text_file_host(const sx_kernel_call *c)
{
    const sx_table_text_file_attrs *attrs = c->attrs;
    char *text = NULL;
    size_t size = 0, kept = 0;
    int64_t n = 0, at = 0;
    sx_table *t = NULL;
    SX_TRY(sx_require_table(c, &t));
    SX_TRY(sx_read_asset(c, "the table's file", &c->in[0].s[0], "", &text, &size));
    for (size_t i = 0; i < size; i++) {
        n += text[i] == '\n';
        if (text[i] != '\r') {
            text[kept++] = text[i];
        }
    }
    n += kept > 0 && text[kept - 1] != '\n';
    if (attrs->vocab_size > n) {
        return sx_error(SX_INVALID_ARGUMENT, "%s has %lld lines, expected %lld",
                        SX_QUOTE(&c->in[0].s[0]), (long long)n, (long long)attrs->vocab_size);
    }
    n = attrs->vocab_size > 0 ? attrs->vocab_size : n;
    sx_bytes *lines = sx_arena_array(c->arena, n + 1, sx_bytes);
    if (lines == NULL) {
        return sx_budget_error(c->arena->budget);
    }
    for (size_t i = 0; at < n; at++) {
        const char *end = i < kept ? memchr(text + i, '\n', kept - i) : NULL;
        const size_t length = (end != NULL ? (size_t)(end - text) : kept) - i;
        lines[at] = (sx_bytes){text + i, length};
        i += length + 1;
        if (length == 0) {
            return sx_error(SX_INVALID_ARGUMENT, "%s: line %lld is empty", SX_QUOTE(&c->in[0].s[0]),
                            (long long)at + 1);
        }
    }
    sx_host_tensor in[2];
    SX_TRY(read_column(c, lines, n, attrs->key_index, attrs->base.keys, &in[0]), "%s",
           SX_QUOTE(&c->in[0].s[0]));
    SX_TRY(read_column(c, lines, n, attrs->value_index, attrs->base.values, &in[1]), "%s",
           SX_QUOTE(&c->in[0].s[0]));
    sx_kernel_call call = *c;
    const sx_table_insert_attrs insert = {.base = attrs->base, .clear = true};
    call.attrs = &insert;
    call.in = in;
    call.n_in = 2;
    return sx_op_lookup_table_insert.host(&call);
}

const sx_op_def sx_op_initialize_table_from_text_file = {
    SX_OP_NAMED(initialize_table_from_text_file),
    .n_in = 1,
    .n_out = 1,
    .flags = SX_OP_HOST | SX_OP_STATE | SX_OP_EFFECT | SX_OP_NO_GRAD | SX_OP_NO_TF,
    SX_OP_ATTRS(sx_table_text_file_attrs, initialize_table_from_text_file_attrs),
    .infer = initialize_table_from_text_file_infer,
    .host = initialize_table_from_text_file_host,
};
