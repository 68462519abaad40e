/* JSON lines: each line of text files that is not blank, a string. Lines are found when the files
 * are opened, and read where they are: only what is compressed is held in memory. */
#include <string.h>

#include "base/arena.h"
#include "base/checked.h"
#include "base/memory.h"
#include "data/sources.h"
#include "data/text_file.h"
#include "io/compress.h"
#include "io/file.h"
#include "io/window.h"

struct file {
    const char *path;
    sx_file *open; /* NULL: it is compressed */
    char *data;    /* then; owned */
    sx_bytes text;
};

struct line {
    uint64_t at, number; /* in its file */
    uint32_t size, file;
};

struct lines_source {
    sx_source head;
    sx_arena arena; /* paths, files */
    struct file *files;
    size_t n_files;
    struct line *lines;
    int64_t capacity;
};

static sx_status lines_read_run(sx_source *source, int64_t first, int64_t count,
                                sx_scratch *scratch, sx_bytes *out_records, int64_t *out_count)
{
    enum { RUN_BYTES = 256 * 1024 };
    const struct lines_source *self = (const struct lines_source *)source;
    const struct line *line = &self->lines[first];
    const struct file *f = &self->files[line->file];
    int64_t n = 1;
    while (n < count && line[n].file == line->file &&
           line[n].at + line[n].size - line->at <= RUN_BYTES) {
        n++;
    }
    const char *text = (const char *)f->text.data + line->at;
    if (f->open != NULL) {
        const size_t size = (size_t)(line[n - 1].at + line[n - 1].size - line->at);
        char *copy = sx_scratch_alloc(scratch, size);
        if (copy == NULL) {
            return sx_no_memory("for a line of %zu bytes", size);
        }
        SX_TRY(sx_file_read_at(f->open, line->at, copy, size));
        text = copy;
    }
    for (int64_t i = 0; i < n; i++) {
        out_records[i] = (sx_bytes){text + (line[i].at - line->at), line[i].size};
    }
    *out_count = n;
    return SX_OK;
}

static sx_status lines_read(sx_source *source, int64_t record, sx_scratch *scratch, sx_tensor *out)
{
    int64_t one = 1;
    sx_bytes *text = sx_scratch_alloc(scratch, sizeof(*text));
    if (text == NULL) {
        return sx_no_memory("for a line");
    }
    out[0].data = text;
    return lines_read_run(source, record, 1, scratch, text, &one);
}

static void lines_name(const sx_source *source, int64_t record, sx_buf *out)
{
    const struct lines_source *self = (const struct lines_source *)source;
    const struct line *line = &self->lines[record];
    sx_buf_printf(out, "%s: line %lld", self->files[line->file].path, (long long)line->number);
}

static void lines_destroy(sx_source *source)
{
    struct lines_source *self = (struct lines_source *)source;
    for (size_t i = 0; i < self->n_files; i++) {
        sx_file_close(self->files[i].open);
        sx_free(self->files[i].data);
    }
    sx_free(self->lines);
    sx_arena_deinit(&self->arena);
    sx_free(self);
}

static const sx_source_def lines_def = {
    .kind = "lines",
    .read = lines_read,
    .read_run = lines_read_run,
    .name_record = lines_name,
    .destroy = lines_destroy,
};

static bool is_blank(const char *text, size_t size)
{
    size_t i = 0;
    while (i < size && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r')) {
        i++;
    }
    return i == size;
}

static sx_status add_line(struct lines_source *self, const struct line *line)
{
    if (self->head.count == self->capacity) {
        const int64_t capacity = SX_MAX(self->capacity * 2, (int64_t)1024);
        struct line *lines = sx_realloc(self->lines, (size_t)capacity, sizeof(*lines));
        if (lines == NULL) {
            return sx_no_memory("for the lines of %s", self->files[line->file].path);
        }
        self->lines = lines;
        self->capacity = capacity;
    }
    self->lines[self->head.count++] = *line;
    return SX_OK;
}

/* Of what lies from byte `at` on. */
static sx_status find_lines(struct lines_source *self, size_t file, sx_window *window, uint64_t at)
{
    enum { PIECE = 1 << 20 };
    struct line line = {.at = at, .number = 1, .file = (uint32_t)file};
    bool blank = true;
    while (at < window->size) {
        const size_t size = (size_t)SX_MIN(window->size - at, (uint64_t)PIECE);
        const void *piece = NULL;
        SX_TRY(sx_window_look(window, at, size, &piece));
        const char *p = piece, *end = p + size;
        while (p < end) {
            const char *newline = memchr(p, '\n', (size_t)(end - p));
            const char *stop = newline != NULL ? newline : end;
            blank = blank && is_blank(p, (size_t)(stop - p));
            const uint64_t line_end = at + (uint64_t)(stop - (const char *)piece);
            const bool ends = newline != NULL || line_end == window->size;
            if (line_end - line.at > UINT32_MAX) {
                return sx_error(SX_INVALID_ARGUMENT, "%s: line %lld has more than 4 GiB",
                                self->files[file].path, (long long)line.number);
            }
            line.size = (uint32_t)(line_end - line.at);
            if (ends && !blank) {
                SX_TRY(add_line(self, &line));
            }
            if (newline != NULL) {
                line.at = line_end + 1;
                line.number++;
                blank = true;
            }
            p = stop + 1;
        }
        at += size;
    }
    return SX_OK;
}

/* Opens file `i`; what is compressed is read, of at most *budget bytes. */
static sx_status open_file(struct lines_source *self, size_t i, size_t *budget)
{
    enum { HEAD = 4 };
    static const char mark[] = "\xef\xbb\xbf";
    struct file *f = &self->files[i];
    sx_window window;
    const void *head = NULL;
    SX_TRY(sx_file_open(f->path, &f->open));
    sx_window_init(&window, f->open);
    const size_t size = (size_t)SX_MIN(window.size, (uint64_t)HEAD);
    sx_status status = sx_window_look(&window, 0, size, &head);
    const sx_codec codec = status == SX_OK ? sx_codec_guess((sx_bytes){head, size}) : SX_CODEC_NONE;
    if (codec == SX_CODEC_GZIP || codec == SX_CODEC_ZLIB) {
        sx_window_deinit(&window);
        sx_file_close(f->open);
        f->open = NULL;
        SX_TRY(sx_text_file_read(f->path, *budget, &f->data, &f->text));
        *budget -= SX_MIN(f->text.size, *budget);
        sx_window_init_bytes(&window, f->text);
        head = NULL;
    }
    const bool marked = head != NULL && size >= 3 && memcmp(head, mark, 3) == 0;
    status = status == SX_OK ? find_lines(self, i, &window, marked ? 3 : 0) : status;
    sx_window_deinit(&window);
    return status;
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
        self->files[i] = (struct file){.path = sx_arena_strdup(&self->arena, paths[i])};
        self->n_files++;
        SX_TRY(self->files[i].path == NULL ? sx_no_memory("reading %s", paths[i])
                                           : open_file(self, i, &budget));
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
