/* Reads every byte of record files, every row of CSV files: `sextant data verify`. */
#include <string.h>

#include "base/arena.h"
#include "base/memory.h"
#include "base/ram.h"
#include "data/csv_file.h"
#include "data/prepare.h"
#include "data/set_info.h"
#include "data/sniff.h"
#include "image/decode.h"
#include "io/path.h"
#include "io/tfrecord.h"
#include "io/window.h"
#include "proto/example.h"

enum { NAME_FAULTS = 20 };

struct verifying {
    const sx_verify_args *args;
    const sx_data_options *options;
    sx_buf *text;
    sx_verify_result result;
    sx_arena arena;
    sx_set_info info; /* of the current file; zeroed if there is none */
    sx_example example;
    sx_image image;
    int64_t faults; /* reported so far */
};

/* With skip_corrupt, a fault is reported and counted; else it is the result. */
static sx_status fault(struct verifying *v, sx_status status, int64_t *counter)
{
    if (!v->options->skip_corrupt) {
        return status;
    }
    (*counter)++;
    if (v->faults++ < NAME_FAULTS) {
        sx_buf_printf(v->text, "%s\n", sx_status_message(status));
    }
    sx_status_free(status);
    return SX_OK;
}

/* ---- One record ---- */

static const char *image_key(const struct verifying *v)
{
    const char *key = v->options->image_key != NULL ? v->options->image_key : v->info.image_key;
    return key != NULL ? key : "image/encoded";
}

static const char *label_key(const struct verifying *v)
{
    const char *key = v->options->label_key != NULL ? v->options->label_key : v->info.label_key;
    return key != NULL ? key : "image/class/label";
}

static sx_status check_label(const struct verifying *v)
{
    int64_t label;
    const sx_example_feature *feature = sx_example_find(&v->example, label_key(v));
    bool said = v->options->label_base_set || v->options->label_base != 0;
    int64_t base = said ? v->options->label_base : v->info.label_base;
    if (feature == NULL || v->info.class_count == 0 || sx_feature_ints(feature, &label, 1) != 1) {
        return SX_OK;
    }
    if (label < base || label - base >= v->info.class_count) {
        return sx_error(SX_OUT_OF_RANGE, "label %lld out of range [%lld, %lld)", (long long)label,
                        (long long)base, (long long)(base + v->info.class_count));
    }
    return SX_OK;
}

static sx_status check_image(struct verifying *v)
{
    sx_bytes encoded;
    const sx_example_feature *feature = sx_example_find(&v->example, image_key(v));
    if (v->info.raw || feature == NULL || sx_feature_bytes(feature, &encoded, 1) != 1) {
        return SX_OK;
    }
    return sx_image_decode(encoded, NULL, &v->image);
}

static sx_status check_record(struct verifying *v, const char *path, int64_t number,
                              sx_bytes record)
{
    int64_t *counter = &v->result.corrupt;
    sx_status status = sx_example_parse(&v->example, record);
    if (status == SX_OK) {
        status = check_label(v);
    }
    if (status == SX_OK && v->args->decode) {
        status = check_image(v);
        counter = &v->result.undecodable;
    }
    if (status == SX_OK) {
        return SX_OK;
    }
    status =
        sx_status_annotate(status, __FILE__, __LINE__, "%s: record %lld", path, (long long)number);
    return fault(v, status, counter);
}

/* ---- One file ---- */

/* Every row of a CSV file has the fields of its header. */
static sx_status check_rows(struct verifying *v, const char *path, int64_t *out_count)
{
    const size_t max_bytes = v->options->memory_budget > 0 ? (size_t)v->options->memory_budget
                                                           : (size_t)sx_ram_bytes() / 2;
    sx_csv_file file;
    SX_TRY(sx_csv_file_read(path, max_bytes, &v->arena, &file));
    sx_csv_place at = sx_csv_file_begin(&file);
    sx_status status = SX_OK;
    while (status == SX_OK && at.at < file.text.size) {
        sx_bytes row;
        status = sx_csv_file_row(&file, &at, &row);
        if (status != SX_OK || row.size > 0) {
            v->result.records++;
            ++*out_count;
        }
        if (status != SX_OK) {
            status = fault(v, status, &v->result.corrupt);
        }
    }
    sx_csv_file_deinit(&file);
    return status;
}

/* Files of other kinds are recognized, for the message; damaged record files are not. */
static sx_status check_kind(const char *path, bool *out_csv)
{
    sx_file_kind kind = SX_FILE_UNKNOWN;
    if (sx_path_is_dir(path)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s is a directory; expected TFRecord or CSV files, such as '%s%s*'", path,
                        path, path[strlen(path) - 1] == '/' ? "" : "/");
    }
    SX_TRY(sx_sniff_file(path, &kind));
    *out_csv = kind == SX_FILE_CSV;
    static const char *const kinds[SX_FILE_KINDS] = {
        [SX_FILE_ARCHIVE] = "an archive", [SX_FILE_IDX] = "an IDX file",
        [SX_FILE_NPY] = "a .npy array",   [SX_FILE_IMAGE] = "an image",
        [SX_FILE_JSON_LINES] = "JSON",
    };
    return kinds[kind] == NULL ? SX_OK
                               : sx_error(SX_INVALID_ARGUMENT,
                                          "%s is %s; only TFRecord and CSV files can be verified",
                                          path, kinds[kind]);
}

static sx_status open_reader(const struct verifying *v, const char *path, sx_tfrecord_reader **out)
{
    sx_tfrecord_options options = {.skip_corrupt = v->options->skip_corrupt};
    if (v->options->compression != NULL &&
        !sx_codec_parse(v->options->compression, &options.codec)) {
        return sx_error(SX_INVALID_ARGUMENT, "compression \"%s\": expected none, gzip or zlib",
                        v->options->compression);
    }
    return sx_tfrecord_reader_open(path, &options, out);
}

static sx_status check_records(struct verifying *v, const char *path, int64_t *out_count)
{
    sx_tfrecord_reader *reader = NULL;
    bool is_csv = false;
    *out_count = 0;
    SX_TRY(check_kind(path, &is_csv));
    if (is_csv) {
        return check_rows(v, path, out_count);
    }
    SX_TRY(open_reader(v, path, &reader));
    sx_status status = SX_OK;
    bool more = true;
    int64_t number = 0;
    while (status == SX_OK && more) {
        sx_bytes record;
        status = sx_tfrecord_next(reader, &record, &more);
        if (status == SX_OK && more) {
            v->result.records++;
            status = check_record(v, path, number++, record);
        }
    }
    sx_tfrecord_damage damage = sx_tfrecord_reader_damage(reader);
    sx_tfrecord_reader_destroy(reader);
    if (damage.places > 0) {
        sx_buf_printf(v->text, "%s: %llu damaged region%s, %llu bytes\n", path,
                      (unsigned long long)damage.places, damage.places == 1 ? "" : "s",
                      (unsigned long long)damage.bytes);
        v->result.corrupt += (int64_t)damage.places;
    }
    *out_count = number;
    return status;
}

/* The schema's entry for this file; NULL if there is none. */
static const sx_set_file *noted_file(const struct verifying *v, const char *path)
{
    for (int i = 0; i < v->info.file_count; i++) {
        if (strcmp(v->info.files[i].name, sx_path_basename(path)) == 0) {
            return &v->info.files[i];
        }
    }
    return NULL;
}

static sx_status check_against_schema(struct verifying *v, const char *path, uint64_t bytes,
                                      uint32_t crc, int64_t count)
{
    const sx_set_file *noted = noted_file(v, path);
    if (noted == NULL) {
        return SX_OK;
    }
    sx_status status = SX_OK;
    if (noted->records != count || noted->bytes != (int64_t)bytes) {
        status = sx_error(SX_DATA_LOSS,
                          "%s: %lld records in %llu bytes, but its schema file lists %lld in %lld",
                          path, (long long)count, (unsigned long long)bytes,
                          (long long)noted->records, (long long)noted->bytes);
    } else if (noted->crc32c != crc) {
        status = sx_error(SX_DATA_LOSS, "%s: checksum %08x, but its schema file lists %08x", path,
                          crc, noted->crc32c);
    }
    return status == SX_OK ? SX_OK : fault(v, status, &v->result.corrupt);
}

static sx_status check_file(struct verifying *v, const char *path)
{
    int64_t count = 0, corrupt = v->result.corrupt;
    uint64_t bytes;
    uint32_t crc;
    memset(&v->info, 0, sizeof(v->info));
    sx_status status = sx_set_info_find(path, &v->arena, &v->info);
    if (status != SX_OK && sx_status_code(status) != SX_NOT_FOUND) {
        return status;
    }
    sx_status_free(status);
    SX_TRY(check_records(v, path, &count));
    SX_TRY(sx_file_crc32c(path, &bytes, &crc));
    v->result.files++;
    v->result.bytes += (int64_t)bytes;
    return v->result.corrupt > corrupt ? SX_OK /* already reported */
                                       : check_against_schema(v, path, bytes, crc, count);
}

static sx_status check_files(struct verifying *v)
{
    const sx_verify_args *args = v->args;
    for (size_t i = 0; i < args->path_count; i++) {
        SX_TRY(check_file(v, args->paths[i]));
        if (args->progress != NULL &&
            !args->progress(args->user, (int64_t)i + 1, (int64_t)args->path_count)) {
            return sx_error(SX_CANCELLED, "interrupted after %zu of %zu files", i + 1,
                            args->path_count);
        }
    }
    return SX_OK;
}

sx_status sx_data_verify(const sx_verify_args *args, sx_buf *text, sx_verify_result *out_result)
{
    static const sx_data_options defaults = {.struct_size = sizeof(defaults)};
    struct verifying v = {
        .args = args, .options = args->options != NULL ? args->options : &defaults, .text = text};
    sx_arena_init(&v.arena, 0);
    sx_example_init(&v.example);
    sx_status status = check_files(&v);
    if (status == SX_OK) {
        if (v.faults > NAME_FAULTS) {
            sx_buf_printf(text, "... and %lld more\n", (long long)(v.faults - NAME_FAULTS));
        }
        *out_result = v.result;
    }
    sx_image_deinit(&v.image);
    sx_example_deinit(&v.example);
    sx_arena_deinit(&v.arena);
    return status;
}
