#include "run_inputs.h"

#include <math.h>
#include <string.h>

#include <sextant/complex.h>

#include "base/checked.h"
#include "base/memory.h"
#include "command.h"
#include "graph/host.h"
#include "image/format.h"
#include "io/archive.h"
#include "io/file.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/path.h"
#include "python_literal.h"

static const size_t max_file_bytes = (size_t)8 << 30;

/* ---- Conversion ---- */

/* Numbers in the dtype of the input, as numpy.asarray(x, dtype) converts them. */
static sx_status convert(const sx_tensor *in, sx_dtype dtype, sx_arena *arena, sx_tensor *out)
{
    const sx_dtype from = in->type.dtype;
    *out = *in;
    if (from == dtype) {
        return SX_OK;
    }
    if (from == SX_STRING || dtype == SX_STRING || sx_dtype_is_complex(from) ||
        sx_dtype_is_complex(dtype)) {
        return sx_error(SX_INVALID_ARGUMENT, "expected %s, got %s", sx_dtype_name(dtype),
                        sx_dtype_name(from));
    }
    const int64_t n = sx_type_elems(&in->type);
    const size_t old_bytes = sx_dtype_bytes(from), new_bytes = sx_dtype_bytes(dtype);
    char *data = sx_arena_alloc(arena, (size_t)n + 1, new_bytes);
    if (data == NULL) {
        return sx_no_memory("for an input");
    }
    const bool whole = sx_dtype_is_integer(from) && new_bytes == 8 && sx_dtype_is_integer(dtype);
    for (int64_t i = 0; i < n; i++) {
        const char *old = (const char *)in->data + (size_t)i * old_bytes;
        if (whole && old_bytes == 8) { /* a double does not hold all of them */
            memcpy(data + (size_t)i * new_bytes, old, 8);
            continue;
        }
        const double value = sx_host_load_element(from, old);
        sx_host_store_element(dtype, sx_dtype_is_integer(dtype) ? trunc(value) : value,
                              data + (size_t)i * new_bytes);
    }
    out->type.dtype = dtype;
    out->data = data;
    return SX_OK;
}

/* ---- Files ---- */

/* Copies a tensor that sx_free() frees into the arena. */
static sx_status keep(const sx_tensor *read, sx_arena *arena, sx_tensor *out)
{
    const bool strings = read->type.dtype == SX_STRING;
    const int64_t n = sx_type_elems(&read->type);
    const size_t bytes =
        (size_t)n * (strings ? sizeof(sx_bytes) : sx_dtype_bytes(read->type.dtype));
    char *data = sx_arena_alloc(arena, bytes + 1, 1);
    sx_status status = data == NULL ? sx_no_memory("for an input") : SX_OK;
    if (status == SX_OK) {
        memcpy(data, read->data, bytes);
        *out = (sx_tensor){read->type, data};
    }
    for (int64_t i = 0; strings && i < n && status == SX_OK; i++) {
        sx_bytes *s = (sx_bytes *)data + i;
        char *text = sx_arena_alloc(arena, s->size + 1, 1);
        if (text == NULL) {
            status = sx_no_memory("for an input");
        } else if (s->size > 0) {
            memcpy(text, s->data, s->size);
        }
        s->data = text;
    }
    sx_free(read->data);
    return status;
}

/* The array `name` of a .npz, or the only one. `word`: both, as they were given. */
static sx_status read_npz(const char *word, const char *path, const char *name, sx_arena *arena,
                          sx_tensor *out)
{
    sx_archive *archive = NULL;
    sx_archive_member member;
    sx_buf known;
    bool more = true;
    int arrays = 0, found = 0;
    SX_TRY(sx_archive_open(path, NULL, &archive));
    sx_buf_init(&known, 4096);
    sx_status status = SX_OK;
    while (status == SX_OK) {
        status = sx_archive_next(archive, &member, &more);
        if (status != SX_OK || !more) {
            break;
        }
        const size_t n = strlen(member.name), end = strlen(".npy");
        const bool is_array = n > end && strcmp(member.name + n - end, ".npy") == 0;
        const size_t stem = is_array ? n - end : n;
        const bool wanted = name == NULL
                                ? is_array && arrays == 0
                                : (strlen(name) == stem && memcmp(name, member.name, stem) == 0);
        if (is_array) {
            sx_buf_printf(&known, "%s\"%.*s\"", arrays > 0 ? ", " : "", (int)stem, member.name);
        }
        arrays += is_array;
        found += wanted;
        if (wanted && !is_array) {
            status = sx_error(SX_INVALID_ARGUMENT, "\"%s\" in %s is not an array: it is no .npy",
                              member.name, path);
        } else if (wanted) {
            sx_tensor read;
            status = sx_npz_read(archive, name == NULL ? path : word, &read);
            if (status == SX_OK) {
                status = keep(&read, arena, out);
            }
        }
    }
    if (status == SX_OK && name == NULL && arrays > 1) {
        status = sx_error(SX_INVALID_ARGUMENT, "%s has %s; give one: %s[NAME]", path,
                          sx_buf_text(&known), path);
    } else if (status == SX_OK && found == 0) {
        status = name != NULL ? sx_error(SX_NOT_FOUND, "%s has no array \"%s\"; it has %s", path,
                                         name, arrays > 0 ? sx_buf_text(&known) : "none")
                              : sx_error(SX_NOT_FOUND,
                                         "%s has no arrays (members with names in .npy)", path);
    }
    sx_buf_deinit(&known);
    sx_archive_close(archive);
    return status;
}

/* The lines of a text file as strings, [n]. */
static sx_status read_lines(const char *path, sx_arena *arena, sx_tensor *out)
{
    char *text = NULL;
    size_t size = 0, n = 0;
    SX_TRY(sx_file_read_stream(path, max_file_bytes, sx_stop_flag(), &text, &size));
    for (size_t i = 0; i < size; i++) {
        n += text[i] == '\n' || i + 1 == size;
    }
    char *copy = sx_arena_alloc(arena, size + 1, 1);
    sx_bytes *lines = sx_arena_array(arena, n + 1, sx_bytes);
    if (copy == NULL || lines == NULL) {
        sx_free(text);
        return sx_no_memory("for an input");
    }
    memcpy(copy, text, size);
    sx_free(text);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        const char *end = memchr(copy + at, '\n', size - at);
        const size_t bytes = end != NULL ? (size_t)(end - copy) - at : size - at;
        lines[i] = (sx_bytes){copy + at, bytes - (bytes > 0 && copy[at + bytes - 1] == '\r')};
        at += bytes + 1;
    }
    *out = (sx_tensor){sx_type_of(SX_STRING, (int64_t)n), lines};
    return SX_OK;
}

/* One encoded image, [1]. */
static sx_status read_image(const char *path, sx_arena *arena, sx_tensor *out)
{
    char *data = NULL;
    size_t size = 0;
    sx_image_info info;
    SX_TRY(sx_file_read(path, max_file_bytes, &data, &size));
    sx_status status = sx_image_probe((sx_bytes){data, size}, &info);
    sx_bytes *row = sx_arena_new(arena, sx_bytes);
    char *copy = sx_arena_alloc(arena, size + 1, 1);
    if (status == SX_OK && (row == NULL || copy == NULL)) {
        status = sx_no_memory("for an input");
    }
    if (status == SX_OK) {
        memcpy(copy, data, size);
        *row = (sx_bytes){copy, size};
        *out = (sx_tensor){sx_type_of(SX_STRING, 1), row};
    }
    sx_free(data);
    return status;
}

/* "x.npy", "x.npz[name]", "@lines.txt", "photo.jpg" */
static sx_status read_file(const char *word, sx_arena *arena, sx_tensor *out)
{
    const size_t bytes = strlen(word), path_bytes = strcspn(word, "[");
    const bool named = path_bytes < bytes && word[bytes - 1] == ']';
    char *path = sx_arena_strndup(arena, word, named ? path_bytes : bytes),
         *name =
             named ? sx_arena_strndup(arena, word + path_bytes + 1, bytes - path_bytes - 2) : NULL;
    if (path == NULL || (named && name == NULL)) {
        return sx_no_memory("for an input");
    }
    if (*path == '@') {
        return read_lines(path + 1, arena, out);
    }
    const char *dot = strrchr(path, '.');
    if (dot != NULL && strcmp(dot, ".npz") == 0) {
        return read_npz(word, path, name, arena, out);
    }
    sx_tensor read;
    sx_status status = sx_npy_read(path, 0, &read);
    if (status == SX_OK) {
        return keep(&read, arena, out);
    }
    if (sx_status_code(status) == SX_DATA_LOSS && (dot == NULL || strcmp(dot, ".npy") != 0)) {
        sx_status image = read_image(path, arena, out);
        sx_status_free(status);
        return sx_status_annotate(image, __FILE__, __LINE__,
                                  "%s: expected .npy, .npz, an image, or @ and a text file", path);
    }
    return status;
}

/* ---- Options ---- */

typedef sx_status read_fn(const char *value, sx_dtype dtype, sx_arena *arena, sx_tensor *out);

static sx_status read_named_file(const char *value, sx_dtype dtype, sx_arena *arena, sx_tensor *out)
{
    sx_tensor read;
    SX_TRY(read_file(value, arena, &read));
    return convert(&read, dtype, arena, out);
}

static sx_status read_expression(const char *value, sx_dtype dtype, sx_arena *arena, sx_tensor *out)
{
    sx_literal literal;
    SX_TRY(sx_literal_parse(value, arena, &literal));
    return sx_literal_tensor(&literal, dtype, arena, out);
}

static sx_status read_examples(const char *value, sx_dtype dtype, sx_arena *arena, sx_tensor *out)
{
    sx_literal literal;
    if (dtype != SX_STRING) {
        return sx_error(SX_INVALID_ARGUMENT, "Examples are strings; the input is %s",
                        sx_dtype_name(dtype));
    }
    SX_TRY(sx_literal_parse(value, arena, &literal));
    return sx_literal_examples(&literal, arena, out);
}

sx_status sx_run_inputs_find(const sx_signature_info *s, const char *name, int *out)
{
    sx_buf known;
    sx_buf_init(&known, 4096);
    for (int i = 0; i < s->n_inputs; i++) {
        if (strcmp(s->inputs[i].name, name) == 0) {
            sx_buf_deinit(&known);
            *out = i;
            return SX_OK;
        }
        sx_buf_printf(&known, "%s\"%s\"", i > 0 ? ", " : "", s->inputs[i].name);
    }
    sx_status status = sx_error(SX_NOT_FOUND, "\"%s\" is not an input of signature %s; it has %s",
                                name, s->name, s->n_inputs > 0 ? sx_buf_text(&known) : "none");
    sx_buf_deinit(&known);
    return status;
}

/* Reads the inputs of one option: "key=value;key=value". A semicolon inside quotes is text. */
static sx_status read_option(const char *text, read_fn *read, const sx_signature_info *s,
                             sx_arena *arena, sx_tensor *out, bool *set)
{
    while (text != NULL && *text != '\0') {
        size_t bytes = 0;
        for (char quote = '\0'; text[bytes] != '\0' && (quote != '\0' || text[bytes] != ';');
             bytes++) {
            const char c = text[bytes];
            if (quote == '\0' && (c == '\'' || c == '"')) {
                quote = c;
            } else if (quote != '\0' && c == '\\' && text[bytes + 1] != '\0') {
                bytes++;
            } else if (c == quote) {
                quote = '\0';
            }
        }
        char *one = sx_arena_strndup(arena, text, bytes);
        text += bytes + (text[bytes] == ';');
        if (one == NULL) {
            return sx_no_memory("for an input");
        }
        if (*one == '\0') {
            continue;
        }
        char *value = strchr(one, '=');
        if (value == NULL || value[1] == '\0') {
            return sx_error(SX_INVALID_ARGUMENT, "\"%.200s\": expected INPUT=VALUE", one);
        }
        *value++ = '\0';
        int i = 0;
        SX_TRY(sx_run_inputs_find(s, one, &i));
        SX_TRY(read(value, s->inputs[i].type.dtype, arena, &out[i]), "input \"%s\"", one);
        set[i] = true;
    }
    return SX_OK;
}

sx_status sx_run_inputs_read(const sx_run_inputs *given, const sx_signature_info *s,
                             sx_arena *arena, sx_tensor *out)
{
    bool *set = sx_arena_array(arena, s->n_inputs + 1, bool);
    if (set == NULL) {
        return sx_no_memory("for the inputs");
    }
    memset(set, 0, (size_t)s->n_inputs + 1);
    SX_TRY(read_option(given->files, read_named_file, s, arena, out, set), "--inputs");
    SX_TRY(read_option(given->expressions, read_expression, s, arena, out, set), "--input_exprs");
    SX_TRY(read_option(given->examples, read_examples, s, arena, out, set), "--input_examples");
    for (int i = 0; i < s->n_inputs; i++) {
        if (!set[i]) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "signature %s: input \"%s\" is missing; give it with --inputs, "
                            "--input_exprs or --input_examples",
                            s->name, s->inputs[i].name);
        }
    }
    return SX_OK;
}
