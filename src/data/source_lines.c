/* JSON lines: each line of text files that is not blank, a string. Lines are found when the files
 * are opened. */
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/memory.h"
#include "data/sources.h"
#include "data/text_file.h"

struct file {
    const char *path;
    char *data; /* owned */
    sx_bytes text;
};

struct line {
    sx_bytes text; /* of its file */
    size_t file;
};

struct lines_source {
    sx_source head;
    sx_arena arena; /* paths, files */
    struct file *files;
    size_t n_files;
    struct line *lines;
    int64_t capacity;
};

static sx_status lines_read(sx_source *source, int64_t record, sx_scratch *scratch, sx_tensor *out)
{
    (void)scratch;
    out[0].data = &((struct lines_source *)source)->lines[record].text;
    return SX_OK;
}

static void lines_name(const sx_source *source, int64_t record, sx_buf *out)
{
    const struct lines_source *self = (const struct lines_source *)source;
    const struct line *line = &self->lines[record];
    const struct file *f = &self->files[line->file];
    sx_buf_printf(out, "%s: line %lld", f->path,
                  (long long)sx_count_lines(f->text.data, line->text.data) + 1);
}

static void lines_destroy(sx_source *source)
{
    struct lines_source *self = (struct lines_source *)source;
    for (size_t i = 0; i < self->n_files; i++) {
        sx_free(self->files[i].data);
    }
    sx_free(self->lines);
    sx_arena_deinit(&self->arena);
    sx_free(self);
}

static const sx_source_def lines_def = {
    .kind = "lines",
    .stable = true,
    .read = lines_read,
    .name_record = lines_name,
    .destroy = lines_destroy,
};

static bool is_blank(sx_bytes text)
{
    const char *p = text.data;
    size_t i = 0;
    while (i < text.size && (p[i] == ' ' || p[i] == '\t' || p[i] == '\r')) {
        i++;
    }
    return i == text.size;
}

static sx_status find_lines(struct lines_source *self, size_t file)
{
    const struct file *f = &self->files[file];
    const char *at = f->text.data, *end = at + f->text.size;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline != NULL ? newline : end;
        const sx_bytes text = {at, (size_t)(stop - at)};
        at = newline != NULL ? newline + 1 : end;
        if (is_blank(text)) {
            continue;
        }
        if (self->head.count == self->capacity) {
            const int64_t capacity = SX_MAX(self->capacity * 2, (int64_t)1024);
            struct line *lines = sx_realloc(self->lines, (size_t)capacity, sizeof(*lines));
            if (lines == NULL) {
                return sx_no_memory("reading %s", f->path);
            }
            self->lines = lines;
            self->capacity = capacity;
        }
        self->lines[self->head.count++] = (struct line){text, file};
    }
    return SX_OK;
}

static sx_status open_all(struct lines_source *self, const char *const *paths, size_t count,
                          const sx_data_options *options, sx_buf *text)
{
    size_t budget =
        options->memory_budget > 0 ? (size_t)options->memory_budget : (size_t)sx_ram_bytes() / 2;
    self->files = sx_arena_array(&self->arena, count, struct file);
    if (self->files == NULL) {
        return sx_no_memory("reading %s", paths[0]);
    }
    for (size_t i = 0; i < count; i++) {
        struct file *f = &self->files[i];
        *f = (struct file){.path = sx_arena_strdup(&self->arena, paths[i])};
        SX_TRY(f->path == NULL ? sx_no_memory("reading %s", paths[i])
                               : sx_text_file_read(f->path, budget, &f->data, &f->text));
        self->n_files++;
        budget -= SX_MIN(f->text.size, budget);
        SX_TRY(find_lines(self, i));
    }
    sx_buf_printf(text, "%s%s: JSON lines, %lld\n", paths[0], count > 1 ? ", …" : "",
                  (long long)self->head.count);
    return SX_OK;
}

sx_status sx_source_lines(const char *const *paths, size_t count, const sx_data_options *options,
                          sx_buf *text, sx_dataset **out_dataset)
{
    struct lines_source *self = sx_alloc(1, sizeof(*self));
    if (self == NULL) {
        return sx_no_memory("reading %s", paths[0]);
    }
    self->head.def = &lines_def;
    self->head.schema = (sx_schema){1, {{"line", sx_scalar_type(SX_STRING)}}};
    sx_arena_init(&self->arena, 0);
    sx_status status = open_all(self, paths, count, options, text);
    if (status != SX_OK) {
        lines_destroy(&self->head);
        return status;
    }
    return sx_dataset_from_source(&self->head, out_dataset);
}
