/* CSV files with a header as the declared features, each a field of a row, or without a declaration
 * as strings. Rows are found when the files are opened and parsed when they are read. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "data/csv_file.h"
#include "data/feature_spec.h"
#include "data/sources.h"

enum { NOT_READ = -1 };

struct row {
    uint32_t file;
    uint32_t size;
    size_t at; /* offset in the file's text */
};

struct csv_source {
    sx_source head;
    sx_arena arena; /* names, texts */
    sx_csv_file *files;
    int **column_of; /* [files][the file's names]: the component, or NOT_READ */
    size_t n_files;
    sx_feature_spec columns[SX_MAX_COMPONENTS]; /* [schema.count] */
    struct row *rows;
    int64_t capacity;
};

/* ---- Fields ---- */

static sx_status bad_field(const sx_feature_spec *c, const sx_csv_field *field)
{
    sx_buf text;
    sx_buf_init(&text, 1 << 12);
    sx_buf_put_utf8(&text, field->text.data, SX_MIN(field->text.size, (size_t)40));
    sx_status status =
        field->text.size == 0
            ? sx_error(SX_INVALID_ARGUMENT,
                       "column \"%s\" is empty, expected %s; declare it .optional to use a default "
                       "value",
                       c->key, sx_dtype_name(c->dtype))
            : sx_error(SX_INVALID_ARGUMENT, "column \"%s\": \"%s\"%s, expected %s", c->key,
                       sx_buf_text(&text), field->text.size > 40 ? "…" : "",
                       sx_dtype_name(c->dtype));
    sx_buf_deinit(&text);
    return status;
}

static void put_number(sx_dtype dtype, double value, int64_t integer, void *out)
{
    switch (dtype) {
    case SX_F32:
        *(float *)out = (float)value;
        break;
    case SX_I32:
        *(int32_t *)out = (int32_t)integer;
        break;
    case SX_I64:
        *(int64_t *)out = integer;
        break;
    default:
        *(uint8_t *)out = (uint8_t)integer;
    }
}

/* A decimal number without spaces around it. */
static sx_status read_number(const sx_feature_spec *c, const sx_csv_field *field, const char *text,
                             void *out)
{
    char *end = NULL;
    if (c->dtype == SX_F32) {
        const float value = strtof(text, &end);
        if (text[strspn(text, "+-.0123456789eE")] != '\0' || end == text || *end != '\0' ||
            !(value - value == 0)) {
            return bad_field(c, field);
        }
        *(float *)out = value;
        return SX_OK;
    }
    const bool is_true = c->dtype == SX_BOOL && strcasecmp(text, "true") == 0;
    if (is_true || (c->dtype == SX_BOOL && strcasecmp(text, "false") == 0)) {
        *(bool *)out = is_true;
        return SX_OK;
    }
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (digits[0] == '\0' || digits[strspn(digits, "0123456789")] != '\0' || errno != 0 ||
        (c->dtype != SX_I64 && !sx_dtype_holds(c->dtype, (double)value))) {
        return bad_field(c, field);
    }
    put_number(c->dtype, 0, value, out);
    return SX_OK;
}

static sx_status read_field(const sx_feature_spec *c, const sx_csv_field *field,
                            sx_scratch *scratch, void *out)
{
    const bool missing = field->text.size == 0 && !field->quoted;
    if (c->dtype == SX_STRING) {
        sx_bytes *text = out;
        *text = field->text;
        if (missing && c->optional) {
            *text = (sx_bytes){c->default_text, strlen(c->default_text)};
        } else if (field->doubled) {
            char *copy = sx_scratch_alloc(scratch, field->text.size);
            if (copy == NULL) {
                return sx_no_memory("for a row");
            }
            *text = (sx_bytes){copy, sx_csv_field_copy(field, copy)};
        }
        return SX_OK;
    }
    enum { MAX_NUMBER = 64 };
    char text[MAX_NUMBER + 1];
    const char *p = field->text.data;
    size_t size = field->text.size;
    while (size > 0 && (*p == ' ' || *p == '\t')) {
        p++;
        size--;
    }
    while (size > 0 && (p[size - 1] == ' ' || p[size - 1] == '\t')) {
        size--;
    }
    if (size == 0 && c->optional) {
        put_number(c->dtype, c->default_value, (int64_t)c->default_value, out);
        return SX_OK;
    }
    if (size == 0 || size > MAX_NUMBER) {
        return bad_field(c, size == 0 ? &(sx_csv_field){.quoted = field->quoted} : field);
    }
    memcpy(text, p, size);
    text[size] = '\0';
    return strlen(text) == size ? read_number(c, field, text, out) : bad_field(c, field);
}

static sx_status csv_read(sx_source *source, int64_t record, sx_scratch *scratch, sx_tensor *out)
{
    const struct csv_source *self = (const struct csv_source *)source;
    const struct row *r = &self->rows[record];
    const sx_bytes row = {(const char *)self->files[r->file].text.data + r->at, r->size};
    const int *column_of = self->column_of[r->file];
    sx_csv_field field;
    size_t at = 0;
    for (int64_t i = 0; sx_csv_field_next(row, &at, &field); i++) {
        const int c = column_of[i];
        if (c == NOT_READ) {
            continue;
        }
        const size_t bytes =
            out[c].type.dtype == SX_STRING ? sizeof(sx_bytes) : sx_dtype_bytes(out[c].type.dtype);
        out[c].data = sx_scratch_alloc(scratch, bytes);
        if (out[c].data == NULL) {
            return sx_no_memory("for a row");
        }
        SX_TRY(read_field(&self->columns[c], &field, scratch, out[c].data));
    }
    return SX_OK;
}

static void csv_name(const sx_source *source, int64_t record, sx_buf *out)
{
    const struct csv_source *self = (const struct csv_source *)source;
    const struct row *r = &self->rows[record];
    const sx_csv_file *f = &self->files[r->file];
    sx_buf_printf(out, "%s: line %lld", f->path,
                  (long long)sx_csv_file_line(f, (const char *)f->text.data + r->at));
}

static void csv_destroy(sx_source *source)
{
    struct csv_source *self = (struct csv_source *)source;
    for (size_t i = 0; i < self->n_files; i++) {
        sx_csv_file_deinit(&self->files[i]);
    }
    sx_free(self->rows);
    sx_arena_deinit(&self->arena);
    sx_free(self);
}

static const sx_source_def csv_def = {
    .kind = "csv",
    .read = csv_read,
    .name_record = csv_name,
    .destroy = csv_destroy,
};

/* ---- Columns ---- */

static sx_status add_column(struct csv_source *self, const sx_feature_spec *spec)
{
    const int k = self->head.schema.count++;
    sx_feature_spec *c = &self->columns[k];
    *c = *spec;
    c->name = sx_arena_strdup(&self->arena, spec->name);
    c->key = sx_arena_strdup(&self->arena, spec->key != NULL ? spec->key : spec->name);
    c->default_text =
        sx_arena_strdup(&self->arena, spec->default_text != NULL ? spec->default_text : "");
    self->head.schema.components[k] = (sx_component){c->name, sx_scalar_type(c->dtype)};
    return c->name != NULL && c->key != NULL && c->default_text != NULL
               ? SX_OK
               : sx_no_memory("reading CSV");
}

static sx_status add_declared(struct csv_source *self, const sx_data_options *options)
{
    if (options->n_features > SX_MAX_COMPONENTS) {
        return sx_error(SX_INVALID_ARGUMENT, "more than %d features", (int)SX_MAX_COMPONENTS);
    }
    for (int i = 0; i < options->n_features; i++) {
        sx_type type, mask;
        char text[SX_TYPE_TEXT];
        sx_feature_spec spec = options->features[i];
        SX_TRY(sx_feature_spec_check(&spec, "feature", &type, &mask));
        if (type.rank != 0) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "feature \"%s\" is %s, but a column of a CSV file holds one value",
                            spec.name, sx_type_format(&type, text, sizeof(text)));
        }
        spec.dtype = type.dtype;
        SX_TRY(add_column(self, &spec));
    }
    return SX_OK;
}

/* Every column of the first file, as a string. */
static sx_status add_all(struct csv_source *self)
{
    const sx_csv_file *f = &self->files[0];
    if (f->n_names > SX_MAX_COMPONENTS) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s has %lld columns; at most %d can be read without a declaration, a "
                        "model's .inputs",
                        f->path, (long long)f->n_names, (int)SX_MAX_COMPONENTS);
    }
    for (int64_t i = 0; i < f->n_names; i++) {
        SX_TRY(add_column(self, &(sx_feature_spec){.name = f->names[i], .dtype = SX_STRING}));
    }
    return SX_OK;
}

/* Finds the components among a file's columns. */
static sx_status find_columns(struct csv_source *self, size_t file)
{
    const sx_csv_file *f = &self->files[file];
    int *column_of = sx_arena_array(&self->arena, f->n_names, int);
    if (column_of == NULL) {
        return sx_no_memory("reading %s", f->path);
    }
    for (int64_t i = 0; i < f->n_names; i++) {
        column_of[i] = NOT_READ;
    }
    for (int c = 0; c < self->head.schema.count; c++) {
        int64_t found = NOT_READ;
        for (int64_t i = 0; i < f->n_names; i++) {
            if (strcmp(f->names[i], self->columns[c].key) != 0) {
                continue;
            }
            if (found != NOT_READ) {
                return sx_error(SX_INVALID_ARGUMENT,
                                "%s: line 1: columns %lld and %lld are both \"%s\"", f->path,
                                (long long)found + 1, (long long)i + 1, f->names[i]);
            }
            found = i;
        }
        if (found == NOT_READ) {
            sx_buf known;
            sx_buf_init(&known, 1 << 16);
            sx_nearest_list(self->columns[c].key, f->names,
                            (size_t)SX_MIN(f->n_names, (int64_t)SX_MAX_COMPONENTS), &known);
            sx_status status = sx_error(SX_NOT_FOUND, "%s: line 1: there is no column \"%s\" %s",
                                        f->path, self->columns[c].key, sx_buf_text(&known));
            sx_buf_deinit(&known);
            return status;
        }
        column_of[found] = c;
    }
    self->column_of[file] = column_of;
    return SX_OK;
}

/* ---- Rows ---- */

static sx_status add_row(struct csv_source *self, size_t file, sx_bytes row)
{
    if (self->head.count == self->capacity) {
        const int64_t capacity = SX_MAX(self->capacity * 2, (int64_t)1024);
        struct row *rows = sx_realloc(self->rows, (size_t)capacity, sizeof(*rows));
        if (rows == NULL) {
            return sx_no_memory("reading %s", self->files[file].path);
        }
        self->rows = rows;
        self->capacity = capacity;
    }
    self->rows[self->head.count++] = (struct row){
        .file = (uint32_t)file,
        .size = (uint32_t)row.size,
        .at = (size_t)((const char *)row.data - (const char *)self->files[file].text.data)};
    return SX_OK;
}

/* Finds a file's rows; *skipped counts those that are left out. */
static sx_status find_rows(struct csv_source *self, size_t file, bool skip_corrupt,
                           int64_t *skipped)
{
    const sx_csv_file *f = &self->files[file];
    sx_csv_place at = sx_csv_file_begin(f);
    for (sx_bytes row = {"", 1}; row.size > 0;) {
        sx_status status = sx_csv_file_row(f, &at, &row);
        if (status != SX_OK && !skip_corrupt) {
            return sx_hint_skip_corrupt(status);
        }
        if (status != SX_OK) {
            ++*skipped;
            sx_status_free(status);
            row.size = at.at < f->text.size; /* go on */
        } else if (row.size > 0) {
            SX_TRY(add_row(self, file, row));
        }
    }
    return SX_OK;
}

static void describe(const struct csv_source *self, int64_t skipped, sx_buf *text)
{
    sx_buf_printf(text, "%s%s: CSV, %lld row%s; columns", self->files[0].path,
                  self->n_files > 1 ? ", …" : "", (long long)self->head.count,
                  self->head.count == 1 ? "" : "s");
    for (int c = 0; c < self->head.schema.count; c++) {
        sx_buf_puts(text, c == 0 ? " " : ", ");
        sx_buf_put_visible(text, self->columns[c].key, strlen(self->columns[c].key), "");
        if (self->columns[c].dtype != SX_STRING) {
            sx_buf_printf(text, " %s", sx_dtype_name(self->columns[c].dtype));
        }
    }
    sx_buf_putc(text, '\n');
    if (skipped > 0) {
        sx_buf_printf(text, "%lld corrupt row%s skipped\n", (long long)skipped,
                      skipped == 1 ? "" : "s");
    }
}

static sx_status open_all(struct csv_source *self, const char *const *paths, size_t count,
                          const sx_data_options *options, sx_buf *text)
{
    size_t budget =
        options->memory_budget > 0 ? (size_t)options->memory_budget : (size_t)sx_ram_bytes() / 2;
    int64_t skipped = 0;
    self->files = sx_arena_array(&self->arena, count, sx_csv_file);
    self->column_of = sx_arena_array(&self->arena, count, int *);
    if (self->files == NULL || self->column_of == NULL || count > UINT32_MAX) {
        return sx_no_memory("reading %s", paths[0]);
    }
    if (options->n_features > 0) {
        SX_TRY(add_declared(self, options));
    }
    for (size_t i = 0; i < count; i++) {
        const char *path = sx_arena_strdup(&self->arena, paths[i]);
        SX_TRY(path == NULL ? sx_no_memory("reading %s", paths[i])
                            : sx_csv_file_read(path, budget, &self->arena, &self->files[i]));
        self->n_files++;
        budget -= SX_MIN(self->files[i].text.size, budget);
        if (i == 0 && options->n_features == 0) {
            SX_TRY(add_all(self));
        }
        SX_TRY(find_columns(self, i));
        SX_TRY(find_rows(self, i, options->skip_corrupt, &skipped));
    }
    describe(self, skipped, text);
    return SX_OK;
}

sx_status sx_source_csv(const char *const *paths, size_t count, const sx_data_options *options,
                        sx_buf *text, sx_dataset **out_dataset)
{
    struct csv_source *self = sx_alloc(1, sizeof(*self));
    if (self == NULL) {
        return sx_no_memory("reading %s", paths[0]);
    }
    self->head.def = &csv_def;
    sx_arena_init(&self->arena, 0);
    sx_status status = open_all(self, paths, count, options, text);
    if (status != SX_OK) {
        csv_destroy(&self->head);
        return status;
    }
    return sx_dataset_from_source(&self->head, out_dataset);
}
