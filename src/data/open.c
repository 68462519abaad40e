/* sx_data_open: opens the dataset named by --data. Files are recognized by their first bytes
 * (sniff.h), not by their names; folders by their contents. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/args.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "data/set_info.h"
#include "data/sniff.h"
#include "data/sources.h"
#include "io/path.h"

enum { MAX_PARTS = 4096 };

struct opening {
    const char *spec;
    const sx_data_options *options;
    sx_buf text;
    sx_arena arena;
    sx_paths paths; /* the files, or the one folder */
    sx_dataset *dataset;
};

/* ---- From a specification to paths ---- */

static sx_status suggest(const struct opening *o, const char *dir, const char *part, sx_buf *near)
{
    sx_paths names = {0};
    sx_status status = sx_dir_list(dir, &names);
    if (status != SX_OK) { /* the folder's own error is more helpful */
        return status;
    }
    const char *name = sx_path_basename(part);
    int found = sx_nearest_names(name, (const char *const *)names.items, names.count, near);
    size_t count = names.count;
    for (size_t i = 0; found == 0 && i < names.count && i < 3; i++) {
        sx_buf_printf(near, "%s\"%s\"", i == 0 ? "" : ", ", names.items[i]);
    }
    sx_paths_deinit(&names);
    if (count == 0) {
        return sx_error(SX_NOT_FOUND, "%s: no file matches \"%s\": directory %s is empty", o->spec,
                        part, dir);
    }
    return sx_error(SX_NOT_FOUND, "%s: no file matches \"%s\"; %s %s%s", o->spec, part,
                    found > 0 ? "similar names:" : "the directory contains", sx_buf_text(near),
                    found == 0 && count > 3 ? ", ..." : "");
}

/* The error for a part that matches nothing. */
static sx_status nothing_matches(const struct opening *o, const char *part)
{
    char *dir = NULL;
    sx_buf near;
    sx_buf_init(&near, 1 << 16);
    sx_status status = sx_path_dirname(part, &dir);
    if (status == SX_OK) {
        status = suggest(o, dir, part, &near);
    }
    sx_free(dir);
    sx_buf_deinit(&near);
    return status;
}

/* Splits at commas, unless the whole text is a path. The parts are in the arena. */
static sx_status split(struct opening *o, const char ***out_parts, size_t *out_count)
{
    size_t count = 1;
    bool whole = sx_path_exists(o->spec);
    for (const char *p = o->spec; !whole && *p != '\0'; p++) {
        count += *p == ',';
    }
    if (count > MAX_PARTS) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: more than %d names", o->spec, (int)MAX_PARTS);
    }
    const char **parts = sx_arena_array(&o->arena, count, const char *);
    const char *begin = o->spec;
    for (size_t i = 0; parts != NULL && i < count; i++) {
        size_t length = whole ? strlen(begin) : strcspn(begin, ",");
        parts[i] = sx_arena_strndup(&o->arena, begin, length);
        if (parts[i] == NULL) {
            return sx_no_memory("reading %s", o->spec);
        }
        begin += length + 1;
    }
    *out_parts = parts;
    *out_count = count;
    return parts == NULL ? sx_no_memory("reading %s", o->spec) : SX_OK;
}

static sx_status find_paths(struct opening *o)
{
    const char **parts = NULL;
    size_t count = 0;
    if (o->spec[0] == '\0') {
        return sx_error(SX_INVALID_ARGUMENT, "empty data name; expected a TFRecord "
                                             "pattern, a directory, an archive, an IDX pair or "
                                             "generated:digits");
    }
    SX_TRY(split(o, &parts, &count));
    sx_status status = sx_paths_glob(parts, count, &o->paths);
    if (sx_status_code(status) != SX_NOT_FOUND) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        sx_paths one = {0};
        sx_status again = sx_paths_glob(&parts[i], 1, &one);
        sx_paths_deinit(&one);
        if (again != SX_OK) {
            sx_status_free(again);
            sx_status_free(status);
            return nothing_matches(o, parts[i]);
        }
    }
    return status;
}

/* ---- Files ---- */

static sx_status open_tfrecords(struct opening *o)
{
    return sx_source_examples((const char *const *)o->paths.items, o->paths.count, o->options,
                              &o->text, &o->dataset);
}

static sx_status open_archive(struct opening *o)
{
    if (o->paths.count != 1) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: %zu archives; expected one", o->spec,
                        o->paths.count);
    }
    return sx_source_classed(o->paths.items[0], o->options, &o->text, &o->dataset);
}

/* The name of the labels file for an images file, as in MNIST; NULL if it does not exist. */
static const char *labels_beside(struct opening *o, const char *images)
{
    const char *at = strstr(sx_path_basename(images), "images");
    if (at == NULL) {
        return NULL;
    }
    const char *rest = at + 6;
    char *path = sx_arena_printf(&o->arena, "%.*slabels%s", (int)(at - images), images, rest);
    char *idx3 = path == NULL ? NULL : strstr(path + (at - images), "idx3");
    if (idx3 != NULL) {
        idx3[3] = '1';
    }
    return path != NULL && sx_path_exists(path) ? path : NULL;
}

static sx_status open_idx(struct opening *o)
{
    const char *first = o->paths.items[0];
    const char *second = o->paths.count > 1 ? o->paths.items[1] : labels_beside(o, first);
    if (o->paths.count > 2) {
        const char *name = sx_path_basename(first);
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s: %zu IDX files; expected one pair, images and labels, as in "
                        "'%.*s%.*s-*'",
                        o->spec, o->paths.count, (int)(name - first), first,
                        (int)strcspn(name, "-."), name);
    }
    return sx_source_idx(first, second, o->options, &o->text, &o->dataset);
}

static sx_status open_npy(struct opening *o)
{
    if (o->paths.count > 2) {
        return sx_error(SX_INVALID_ARGUMENT, "%s: %zu .npy files; expected features and labels",
                        o->spec, o->paths.count);
    }
    return sx_source_npy(o->paths.items[0], o->paths.count > 1 ? o->paths.items[1] : NULL,
                         o->options, &o->text, &o->dataset);
}

static sx_status open_image(struct opening *o)
{
    return sx_error(
        SX_INVALID_ARGUMENT,
        "%s is a single image, not a data set; expected a directory of class folders (for "
        "predictions of single images use `predict --image`)",
        o->paths.items[0]);
}

static sx_status open_empty(struct opening *o)
{
    return sx_error(SX_INVALID_ARGUMENT, "%s is an empty file", o->paths.items[0]);
}

static sx_status open_unknown(struct opening *o)
{
    return sx_error(
        SX_INVALID_ARGUMENT,
        "%s: unknown format; expected TFRecords, a .tar or .zip of class folders, an IDX "
        "pair, .npy arrays, CSV with a header or JSON lines that begin with [ or { (for damaged or "
        "compressed TFRecords, use --compression)",
        o->paths.items[0]);
}

static sx_status open_named_tfrecords(struct opening *o)
{
    return sx_source_named_examples((const char *const *)o->paths.items, o->paths.count, o->options,
                                    &o->text, &o->dataset);
}

static sx_status open_named_npy(struct opening *o)
{
    return sx_source_named_npy((const char *const *)o->paths.items, o->paths.count, o->options,
                               &o->text, &o->dataset);
}

static sx_status open_csv(struct opening *o)
{
    return sx_source_csv((const char *const *)o->paths.items, o->paths.count, o->options, &o->text,
                         &o->dataset);
}

static sx_status open_lines(struct opening *o)
{
    return sx_source_lines((const char *const *)o->paths.items, o->paths.count, o->options,
                           &o->text, &o->dataset);
}

static sx_status open_records(struct opening *o)
{
    SX_TRY(sx_dataset_from_records((const char *const *)o->paths.items, (int)o->paths.count,
                                   o->options, &o->dataset));
    sx_buf_printf(&o->text, "%s%s: TFRecords, %lld\n", o->paths.items[0],
                  o->paths.count > 1 ? ", …" : "", (long long)sx_dataset_count(o->dataset));
    return SX_OK;
}

static sx_status has_no_names(struct opening *o)
{
    return sx_error(
        SX_INVALID_ARGUMENT,
        "%s: the model's features (\"%s\"%s) are read from TFRecords, CSV, .npy files or "
        "an .npz archive; this data has only images or arrays without names",
        o->spec, o->options->features[0].name, o->options->n_features > 1 ? ", …" : "");
}

typedef sx_status open_fn(struct opening *o);

static const struct {
    open_fn *open;          /* as an image and a label */
    open_fn *open_named;    /* as the features that the options name */
    open_fn *open_unparsed; /* records as they are */
} kinds[SX_FILE_KINDS] = {
    [SX_FILE_UNKNOWN] = {open_unknown, open_unknown, open_unknown},
    [SX_FILE_EMPTY] = {open_empty, open_empty, open_empty},
    [SX_FILE_TFRECORD] = {open_tfrecords, open_named_tfrecords, open_records},
    [SX_FILE_ARCHIVE] = {open_archive, open_named_npy, open_archive}, /* an .npz */
    [SX_FILE_IDX] = {open_idx, has_no_names, open_idx},
    [SX_FILE_NPY] = {open_npy, open_named_npy, open_npy},
    [SX_FILE_IMAGE] = {open_image, has_no_names, open_image},
    [SX_FILE_CSV] = {open_csv, open_csv, open_csv},
    [SX_FILE_JSON_LINES] = {open_lines, open_lines, open_lines},
};

static sx_status open_kind(struct opening *o, sx_file_kind kind)
{
    if (o->options->unparsed) {
        return kinds[kind].open_unparsed(o);
    }
    return o->options->n_features > 0 ? kinds[kind].open_named(o) : kinds[kind].open(o);
}

/* A file listed in a schema is a record file even if its first bytes are wrong: then reading it
 * reports the error. */
static bool known_by_schema(struct opening *o, const char *path)
{
    sx_set_info info;
    sx_status status = sx_set_info_find(path, &o->arena, &info);
    sx_status_free(status);
    return status == SX_OK;
}

/* The kind of the first file whose kind is known. */
static sx_status sniff_paths(struct opening *o, sx_file_kind *out_kind)
{
    *out_kind = SX_FILE_EMPTY;
    for (size_t i = 0; i < o->paths.count; i++) {
        sx_file_kind kind;
        if (sx_path_is_dir(o->paths.items[i])) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "%s: %s is a directory; expected one directory, or only files", o->spec,
                            o->paths.items[i]);
        }
        SX_TRY(sx_sniff_file(o->paths.items[i], &kind));
        if (kind != SX_FILE_UNKNOWN && kind != SX_FILE_EMPTY) {
            *out_kind = kind;
            return SX_OK;
        }
        *out_kind = kind == SX_FILE_UNKNOWN ? kind : *out_kind;
    }
    if (o->options->compression != NULL || known_by_schema(o, o->paths.items[0])) {
        *out_kind = SX_FILE_TFRECORD;
    }
    return SX_OK;
}

static sx_status open_files(struct opening *o)
{
    sx_file_kind kind;
    SX_TRY(sniff_paths(o, &kind));
    return open_kind(o, kind);
}

/* ---- Folders ---- */

/* The files of one folder, by kind, without those that are not data. */
static sx_status files_of_kind(const char *dir, const sx_paths *names, sx_file_kind kind,
                               sx_paths *out_paths)
{
    out_paths->items = sx_alloc(SX_MAX(names->count, (size_t)1), sizeof(*out_paths->items));
    if (out_paths->items == NULL) {
        return sx_no_memory("reading %s", dir);
    }
    for (size_t i = 0; i < names->count; i++) {
        char *path = NULL;
        sx_file_kind is = SX_FILE_UNKNOWN;
        SX_TRY(sx_path_join(dir, names->items[i], &path));
        sx_status status = sx_path_is_dir(path) ? SX_OK : sx_sniff_file(path, &is);
        if (status != SX_OK || is != kind) {
            sx_free(path);
            SX_TRY(status);
            continue;
        }
        out_paths->items[out_paths->count++] = path;
    }
    return SX_OK;
}

/* The part of a shard's name before "-00003-of-00008"; of other names, the whole name. */
static size_t set_name_length(const char *name)
{
    size_t length = strlen(name);
    const char *of = strstr(name, "-of-");
    return of == NULL || of - name < 6 ? length : (size_t)(of - name) - 6;
}

/* An error if the folder contains several sets. */
static sx_status check_one_set(const struct opening *o, const sx_paths *files, const char *dir)
{
    const char *first = sx_path_basename(files->items[0]);
    size_t length = set_name_length(first);
    for (size_t i = 1; i < files->count; i++) {
        const char *name = sx_path_basename(files->items[i]);
        size_t other = set_name_length(name);
        bool sharded = length != strlen(first) || other != strlen(name);
        if (sharded && (other != length || memcmp(name, first, length) != 0)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "%s contains several sets (\"%.*s\", \"%.*s\", ...); name one, as in "
                            "'%s/%.*s-*'",
                            o->spec, (int)length, first, (int)other, name, dir, (int)length, first);
        }
    }
    return SX_OK;
}

/* Opens the folder's files of one kind; *out_done is false if it has none. */
static sx_status try_kind(struct opening *o, const char *dir, const sx_paths *names,
                          sx_file_kind kind, bool *out_done)
{
    sx_paths files = {0};
    sx_status status = files_of_kind(dir, names, kind, &files);
    *out_done = false;
    if (status == SX_OK && files.count > 0) {
        status = check_one_set(o, &files, dir);
        sx_paths folder = o->paths;
        o->paths = files;
        if (status == SX_OK) {
            status = open_kind(o, kind);
        }
        o->paths = folder;
        *out_done = true;
    }
    sx_paths_deinit(&files);
    return status;
}

static sx_status open_folder(struct opening *o)
{
    const char *dir = o->paths.items[0];
    sx_paths names = {0};
    SX_TRY(sx_dir_list(dir, &names));
    bool done = names.count == 0;
    sx_status status =
        done ? sx_error(SX_INVALID_ARGUMENT, "%s is an empty directory", o->spec) : SX_OK;
    const bool named = o->options->n_features > 0;
    const sx_file_kind tried[] = {SX_FILE_TFRECORD, named ? SX_FILE_NPY : SX_FILE_IDX, SX_FILE_CSV,
                                  SX_FILE_JSON_LINES};
    for (size_t i = 0; i < SX_COUNT(tried) && status == SX_OK && !done; i++) {
        status = try_kind(o, dir, &names, tried[i], &done);
    }
    sx_paths_deinit(&names);
    if (status == SX_OK && !done) {
        status =
            named ? has_no_names(o) : sx_source_classed(dir, o->options, &o->text, &o->dataset);
    }
    return status;
}

/* ---- The whole ---- */

static sx_status open_spec(struct opening *o)
{
    static const char generated[] = "generated:";
    if (strncmp(o->spec, generated, sizeof(generated) - 1) == 0) {
        if (o->options->n_features > 0) {
            return has_no_names(o);
        }
        return sx_source_generated(o->spec + sizeof(generated) - 1, o->options, &o->text,
                                   &o->dataset);
    }
    SX_TRY(find_paths(o));
    if (o->paths.count == 1 && sx_path_is_dir(o->paths.items[0])) {
        return open_folder(o);
    }
    return open_files(o);
}

sx_status sx_data_open(const char *spec, const sx_data_options *options, sx_dataset **out_dataset,
                       char **out_description)
{
    SX_TAKE_ARGS(sx_data_options, options);
    struct opening o = {.spec = spec, .options = options};
    sx_buf_init(&o.text, 1 << 20);
    sx_arena_init(&o.arena, 0);
    sx_status status = open_spec(&o);
    if (status == SX_OK && o.dataset->count == 0) {
        status = sx_error(SX_INVALID_ARGUMENT, "%s has no examples", spec);
    }
    char *text = NULL;
    if (status == SX_OK && out_description != NULL) {
        sx_buf_puts(&o.text, "");
        text = sx_strdup(sx_buf_text(&o.text));
        status = text == NULL ? sx_no_memory("reading %s", o.spec) : SX_OK;
    }
    if (status == SX_OK) {
        *out_dataset = o.dataset;
        if (out_description != NULL) {
            *out_description = text;
        }
    } else {
        sx_dataset_release(o.dataset);
    }
    sx_paths_deinit(&o.paths);
    sx_arena_deinit(&o.arena);
    sx_buf_deinit(&o.text);
    return status;
}
