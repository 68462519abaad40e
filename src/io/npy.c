#include "io/npy.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <sextant/complex.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "io/array.h"
#include "io/commit.h"
#include "io/file.h"

static const char magic[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

/* ---- The header ---- */

/* A parser for the dict that numpy writes, with its keys in any order. */
struct text {
    const char *at, *end;
};

static void skip_spaces(struct text *t)
{
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\n' || *t->at == '\t')) {
        t->at++;
    }
}

static bool take(struct text *t, char c)
{
    skip_spaces(t);
    bool found = t->at < t->end && *t->at == c;
    t->at += found;
    return found;
}

static bool take_word(struct text *t, const char *word)
{
    size_t length = strlen(word);
    skip_spaces(t);
    bool found = (size_t)(t->end - t->at) >= length && memcmp(t->at, word, length) == 0;
    t->at += found ? length : 0;
    return found;
}

/* A quoted string without escapes; at most `capacity` - 1 characters. */
static bool take_string(struct text *t, char *out, size_t capacity)
{
    skip_spaces(t);
    char quote = t->at < t->end ? *t->at : '\0';
    if (quote != '\'' && quote != '"') {
        return false;
    }
    const char *start = ++t->at;
    while (t->at < t->end && *t->at != quote && *t->at != '\\') {
        t->at++;
    }
    size_t length = (size_t)(t->at - start);
    if (t->at == t->end || *t->at != quote || length >= capacity) {
        return false;
    }
    memcpy(out, start, length);
    out[length] = '\0';
    t->at++;
    return true;
}

static bool take_size(struct text *t, int64_t *out)
{
    skip_spaces(t);
    int64_t value = 0;
    const char *start = t->at;
    for (; t->at < t->end && isdigit((unsigned char)*t->at); t->at++) {
        if (!sx_mul_i64(value, 10, &value) || !sx_add_i64(value, *t->at - '0', &value)) {
            return false;
        }
    }
    bool any = t->at > start;
    if (t->at < t->end && *t->at == 'L') { /* a long integer of Python 2 */
        t->at++;
    }
    *out = value;
    return any;
}

/* "()", "(3,)", "(3, 4)" */
static bool take_shape(struct text *t, sx_type *type)
{
    if (!take(t, '(')) {
        return false;
    }
    type->rank = 0;
    while (!take(t, ')')) {
        if (type->rank == SX_MAX_RANK || !take_size(t, &type->dims[type->rank])) {
            return false;
        }
        type->rank++;
        if (!take(t, ',')) {
            return take(t, ')');
        }
    }
    return true;
}

/* "[('x', '<f4'), ('y', '<i8', (3,))]": the fields of a structured array */
static bool skip_list(struct text *t)
{
    char quote = '\0';
    int depth = 0;
    skip_spaces(t);
    if (t->at == t->end || *t->at != '[') {
        return false;
    }
    do {
        const char c = *t->at++;
        if (quote != '\0') {
            quote = c == quote ? '\0' : quote;
        } else if (c == '\'' || c == '"') {
            quote = c;
        } else {
            depth += (c == '[') - (c == ']');
        }
    } while (depth > 0 && t->at < t->end);
    return depth == 0;
}

struct header {
    char descr[64];
    bool fields; /* of a structured array, and so without `descr` */
    bool fortran_order;
    sx_type type;
};

enum { GOT_DESCR = 1, GOT_ORDER = 2, GOT_SHAPE = 4, GOT_ALL = 7 };

/* Parses a "key: value"; returns the bit of the key, or 0 if invalid. */
static int take_item(struct text *t, struct header *header)
{
    char key[32];
    if (!take_string(t, key, sizeof key) || !take(t, ':')) {
        return 0;
    }
    if (strcmp(key, "descr") == 0) {
        header->fields = skip_list(t);
        return header->fields || take_string(t, header->descr, sizeof header->descr) ? GOT_DESCR
                                                                                     : 0;
    }
    if (strcmp(key, "shape") == 0) {
        return take_shape(t, &header->type) ? GOT_SHAPE : 0;
    }
    if (strcmp(key, "fortran_order") != 0) {
        return 0;
    }
    header->fortran_order = take_word(t, "True");
    return header->fortran_order || take_word(t, "False") ? GOT_ORDER : 0;
}

static bool take_dict(struct text *t, struct header *header)
{
    int got = 0;
    if (!take(t, '{')) {
        return false;
    }
    while (!take(t, '}')) {
        int item = take_item(t, header);
        if (item == 0 || (got & item) != 0) {
            return false;
        }
        got |= item;
        if (!take(t, ',')) {
            if (!take(t, '}')) {
                return false;
            }
            break;
        }
    }
    skip_spaces(t);
    return got == GOT_ALL && t->at == t->end;
}

/* "<f4" -> SX_F32, and whether the byte order differs from ours. */
static bool find_dtype(const char *descr, sx_dtype *out_dtype, bool *out_swap)
{
    static const sx_dtype dtypes[] = {
#define ROW(symbol, name, tf, bytes, numpy) symbol,
        SX_DTYPES(ROW)
#undef ROW
            SX_C64,
        SX_C128,
    };
    for (size_t i = 0; i < SX_COUNT(dtypes); i++) {
        const char *numpy = sx_dtype_numpy(dtypes[i]);
        if (numpy[0] != '\0' && strcmp(numpy + 1, descr + 1) == 0 &&
            strchr("<>|=", descr[0]) != NULL) {
            *out_dtype = dtypes[i];
            *out_swap = descr[0] == '>' && dtypes[i] != SX_BF16;
            return true;
        }
    }
    return false;
}

/* ---- Reading ---- */

/* Finds the header's text, whose position depends on the version. */
static sx_status find_header(sx_bytes bytes, const char *name, struct text *out_text)
{
    const uint8_t *b = bytes.data;
    enum { PICKLE = 0x80, OLDEST = 2, NEWEST = 5 };
    if (bytes.size == 0) {
        return sx_error(SX_DATA_LOSS, "%s is an empty file, not a .npy file", name);
    }
    if (bytes.size > 1 && b[0] == PICKLE && b[1] >= OLDEST && b[1] <= NEWEST) {
        return sx_error(SX_UNIMPLEMENTED,
                        "%s is a pickle of Python, which only Python can read; save the array with "
                        "numpy.save",
                        name);
    }
    if (bytes.size < 12 || memcmp(b, magic, sizeof magic) != 0) {
        return sx_error(SX_DATA_LOSS, "%s is not a .npy file", name);
    }
    if (b[6] < 1 || b[6] > 3) {
        return sx_error(SX_UNIMPLEMENTED, "%s: .npy version %d.%d, expected 1 to 3", name, b[6],
                        b[7]);
    }
    size_t start = b[6] == 1 ? 10 : 12;
    size_t size = b[8] | (size_t)b[9] << 8;
    if (b[6] > 1) {
        size |= (size_t)b[10] << 16 | (size_t)b[11] << 24;
    }
    if (size > SX_NPY_MAX_HEADER || size > bytes.size - start) {
        return sx_error(SX_DATA_LOSS, "%s: .npy header of %zu bytes is truncated or too large",
                        name, size);
    }
    *out_text = (struct text){(const char *)b + start, (const char *)b + start + size};
    return SX_OK;
}

/* How many strings of how many bytes: 'S5', 5 bytes each, or 'U5', 5 code points of 4 bytes each.
 */
static sx_status measure_strings(const struct header *header, const char *name, int64_t *out_width,
                                 int64_t *out_bytes)
{
    struct text digits = {header->descr + 2, header->descr + strlen(header->descr)};
    const int64_t n = sx_type_elems(&header->type);
    if (!take_size(&digits, out_width) || digits.at != digits.end) {
        return sx_error(SX_DATA_LOSS, "%s: invalid element type '%s'", name, header->descr);
    }
    if (n < 0 || !sx_mul_i64(*out_width, header->descr[1] == 'U' ? 4 : 1, out_bytes) ||
        !sx_mul_i64(n, *out_bytes, out_bytes)) {
        return sx_error(SX_DATA_LOSS, "%s: %lld strings of type '%s' do not fill the file", name,
                        (long long)n, header->descr);
    }
    return SX_OK;
}

/* Shorter strings end in zeros. The tensor's data are the sx_bytes and then their text, in one
 * block. */
static sx_status parse_strings(sx_window *window, uint64_t start, const struct header *header,
                               size_t max_bytes, const char *name, sx_tensor *out_tensor)
{
    const bool wide = header->descr[1] == 'U', swap = header->descr[0] == '>';
    const int64_t n = sx_type_elems(&header->type);
    int64_t width = 0, file_bytes = 0, bytes = 0;
    SX_TRY(measure_strings(header, name, &width, &file_bytes));
    const int64_t item_bytes = width * (wide ? 4 : 1);
    if (header->fortran_order && header->type.rank > 1) {
        return sx_error(SX_UNIMPLEMENTED, "%s: strings in Fortran order", name);
    }
    if ((uint64_t)file_bytes != window->size - start) {
        return sx_error(SX_DATA_LOSS, "%s: %lld strings of type '%s' do not fill the file", name,
                        (long long)n, header->descr);
    }
    if (!sx_mul_i64(n, (int64_t)sizeof(sx_bytes), &bytes) ||
        !sx_add_i64(bytes, file_bytes, &bytes) || (uint64_t)bytes > max_bytes) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "%s: strings of more than %zu bytes", name,
                        max_bytes);
    }
    const void *in = ""; /* of strings without bytes */
    if (file_bytes > 0) {
        SX_TRY(sx_window_look(window, start, (size_t)file_bytes, &in));
    }
    sx_bytes *strings = sx_alloc((size_t)bytes + 1, 1);
    if (strings == NULL) {
        return sx_no_memory("reading a .npy file");
    }
    char *at = (char *)(strings + n);
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *item = (const uint8_t *)in + i * item_bytes;
        char *end = at;
        for (int64_t k = 0; k < width; k++) {
            uint32_t code = item[k];
            if (wide) {
                const uint8_t *c = item + 4 * k;
                code =
                    swap ? (uint32_t)c[0] << 24 | (uint32_t)c[1] << 16 | (uint32_t)c[2] << 8 | c[3]
                         : (uint32_t)c[3] << 24 | (uint32_t)c[2] << 16 | (uint32_t)c[1] << 8 | c[0];
            }
            if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000 && wide)) {
                sx_free(strings);
                return sx_error(SX_DATA_LOSS, "%s: string %lld is not text", name, (long long)i);
            }
            if (wide) {
                end = sx_utf8_put(end, code);
            } else {
                *end++ = (char)code;
            }
        }
        while (end > at && end[-1] == '\0') {
            end--;
        }
        strings[i] = (sx_bytes){at, (size_t)(end - at)};
        at = end;
    }
    *out_tensor = (sx_tensor){header->type, strings};
    out_tensor->type.dtype = SX_STRING;
    return SX_OK;
}

static sx_status read_header(sx_bytes head, const char *name, struct header *out_header,
                             uint64_t *out_start)
{
    struct text text = {0};
    SX_TRY(find_header(head, name, &text));
    *out_start = (uint64_t)(text.end - (const char *)head.data);
    if (!take_dict(&text, out_header)) {
        return sx_error(SX_DATA_LOSS,
                        "%s: invalid .npy header: expected a dict of descr, "
                        "fortran_order and shape (rank <= %d)",
                        name, SX_MAX_RANK);
    }
    return SX_OK;
}

static bool is_strings(const struct header *header)
{
    return header->descr[0] != '\0' && strchr("|<>", header->descr[0]) != NULL &&
           (header->descr[1] == 'S' || header->descr[1] == 'U');
}

static sx_status parse(sx_window *window, size_t max_bytes, const char *name, sx_tensor *out_tensor)
{
    sx_bytes head = {NULL, (size_t)SX_MIN(window->size, (uint64_t)SX_NPY_MAX_HEAD)};
    struct header header = {0};
    bool swap = false;
    uint64_t start = 0;
    SX_TRY(sx_window_look(window, 0, head.size, &head.data));
    SX_TRY(read_header(head, name, &header, &start));
    if (is_strings(&header)) {
        return parse_strings(window, start, &header,
                             max_bytes == 0 ? SX_ARRAY_DEFAULT_MAX : max_bytes, name, out_tensor);
    }
    if (header.fields) {
        return sx_error(SX_UNIMPLEMENTED,
                        "%s is a structured array, whose elements have several fields; save each "
                        "field as an array of its own: numpy.save(FILE, x[FIELD])",
                        name);
    }
    if (header.descr[0] == '\0' || !find_dtype(header.descr, &header.type.dtype, &swap)) {
        return strchr(header.descr, 'O') != NULL
                   ? sx_error(SX_UNIMPLEMENTED,
                              "%s is an array of Python objects (a pickle), which only Python can "
                              "read; save strings as numpy.array(x, 'S'), numbers with a dtype of "
                              "numbers",
                              name)
                   : sx_error(SX_UNIMPLEMENTED,
                              "%s: elements of type '%s' are not supported; save numbers, booleans "
                              "or strings",
                              name, header.descr);
    }
    int64_t size = sx_type_bytes(&header.type);
    uint64_t left = window->size - start;
    if (size < 0 || (uint64_t)size != left) {
        char words[SX_TYPE_TEXT];
        sx_type_format(&header.type, words, sizeof words);
        return size < 0 ? sx_error(SX_DATA_LOSS, "%s: %s is larger than any file", name, words)
                        : sx_error(SX_DATA_LOSS, "%s: %s needs %lld bytes, the file has %" PRIu64,
                                   name, words, (long long)size, left);
    }
    sx_tensor tensor = {.data = NULL};
    SX_TRY(sx_array_alloc(&header.type, max_bytes == 0 ? SX_ARRAY_DEFAULT_MAX : max_bytes, name,
                          &tensor));
    sx_status status;
    if (header.fortran_order) {
        const void *columns;
        status = sx_window_look(window, start, (size_t)size, &columns);
        if (status == SX_OK) {
            sx_array_copy_columns(&header.type, tensor.data, columns, swap);
        }
    } else {
        status = sx_array_read(window, start, &header.type, swap, tensor.data);
    }
    if (status != SX_OK) {
        sx_free(tensor.data);
        return status;
    }
    *out_tensor = tensor;
    return SX_OK;
}

sx_status sx_npy_size(sx_bytes head, const char *name, uint64_t *out_bytes)
{
    struct header header = {0};
    int64_t width, bytes;
    bool swap;
    SX_TRY(read_header(head, name, &header, out_bytes));
    if (is_strings(&header)) {
        SX_TRY(measure_strings(&header, name, &width, &bytes));
    } else {
        bytes = !header.fields && header.descr[0] != '\0' &&
                        find_dtype(header.descr, &header.type.dtype, &swap)
                    ? sx_type_bytes(&header.type)
                    : 0; /* sx_npy_parse() says what is wrong with it */
    }
    *out_bytes = bytes < 0 ? UINT64_MAX : *out_bytes + (uint64_t)bytes;
    return SX_OK;
}

sx_status sx_npy_parse(sx_bytes bytes, size_t max_bytes, const char *name, sx_tensor *out_tensor)
{
    sx_window window;
    sx_window_init_bytes(&window, bytes);
    return parse(&window, max_bytes, name, out_tensor);
}

sx_status sx_npy_read(const char *path, size_t max_bytes, sx_tensor *out_tensor)
{
    sx_file *file = NULL;
    sx_window window;
    SX_TRY(sx_file_open(path, &file));
    sx_window_init(&window, file);
    sx_status status = parse(&window, max_bytes, path, out_tensor);
    sx_window_deinit(&window);
    sx_file_close(file);
    return status;
}

/* ---- Writing ---- */

/* numpy leaves room for 21 digits of the first dimension, so that files can be appended to. */
static void put_growth_room(const sx_type *type, sx_buf *text)
{
    enum { GROWTH_DIGITS = 21 };
    if (type->rank > 0) {
        char digits[32];
        int length = snprintf(digits, sizeof digits, "%lld", (long long)type->dims[0]);
        sx_buf_printf(text, "%*s", GROWTH_DIGITS - length, "");
    }
}

/* The bytes of an element of an array of strings: those of the longest; NumPy has no 'S0'. */
static size_t string_width(const sx_tensor *tensor)
{
    const sx_bytes *strings = tensor->data;
    size_t width = 1;
    for (int64_t i = 0; i < sx_type_elems(&tensor->type); i++) {
        width = SX_MAX(width, strings[i].size);
    }
    return width;
}

static sx_status write_strings(sx_commit_file *file, const sx_tensor *tensor)
{
    const sx_bytes *strings = tensor->data;
    const size_t width = string_width(tensor);
    char *row = sx_alloc(width, 1);
    sx_status status = row == NULL ? sx_no_memory("writing a .npy file") : SX_OK;
    for (int64_t i = 0; i < sx_type_elems(&tensor->type) && status == SX_OK; i++) {
        memset(row, 0, width);
        if (strings[i].size > 0) {
            memcpy(row, strings[i].data, strings[i].size);
        }
        status = sx_commit_write(file, row, width);
    }
    sx_free(row);
    return status;
}

static sx_status put_header(const sx_type *type, const char *descr, sx_buf *out)
{
    if (descr == NULL || descr[0] == '\0' || !sx_type_is_static(type)) {
        char words[SX_TYPE_TEXT];
        return sx_error(SX_UNIMPLEMENTED, "cannot write %s as .npy",
                        sx_type_format(type, words, sizeof words));
    }
    sx_buf text;
    sx_buf_init(&text, SX_NPY_MAX_HEADER);
    sx_buf_printf(&text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int d = 0; d < type->rank; d++) {
        sx_buf_printf(&text, "%s%lld%s", d == 0 ? "" : " ", (long long)type->dims[d],
                      d + 1 < type->rank || type->rank == 1 ? "," : "");
    }
    sx_buf_puts(&text, "), }");
    put_growth_room(type, &text);
    size_t unpadded = sizeof magic + 4 + text.size + 1;
    sx_buf_printf(&text, "%*s\n", (int)(64 - unpadded % 64), "");
    const uint8_t head[] = {1, 0, (uint8_t)text.size, (uint8_t)(text.size >> 8)};
    sx_buf_append(out, magic, sizeof magic);
    sx_buf_append(out, head, sizeof head);
    sx_buf_append(out, sx_buf_text(&text), text.size);
    sx_status status = sx_buf_status(&text);
    sx_buf_deinit(&text);
    SX_TRY(status);
    return sx_buf_status(out);
}

sx_status sx_npy_header(const sx_type *type, sx_buf *out)
{
    return put_header(type, sx_dtype_numpy(type->dtype), out);
}

sx_status sx_npy_write(const char *path, const sx_tensor *tensor)
{
    const bool strings = tensor->type.dtype == SX_STRING;
    char descr[32];
    sx_commit *commit = NULL;
    sx_commit_file *file = NULL;
    sx_buf header;
    snprintf(descr, sizeof descr, "|S%zu", strings ? string_width(tensor) : 0);
    sx_buf_init(&header, 0);
    sx_status status =
        put_header(&tensor->type, strings ? descr : sx_dtype_numpy(tensor->type.dtype), &header);
    if (status == SX_OK) {
        status = sx_commit_create(&commit);
    }
    if (status == SX_OK) {
        status = sx_commit_add(commit, path, &file);
    }
    if (status == SX_OK) {
        status = sx_commit_write(file, header.data, header.size);
    }
    if (status == SX_OK && tensor->type.dtype == SX_STRING) {
        status = write_strings(file, tensor);
    } else if (status == SX_OK) {
        status = sx_commit_write(file, tensor->data, (size_t)sx_type_bytes(&tensor->type));
    }
    if (status == SX_OK) {
        status = sx_commit_finish(commit);
    }
    sx_commit_destroy(commit);
    sx_buf_deinit(&header);
    return sx_status_annotate(status, __FILE__, __LINE__, "writing %s", path);
}
