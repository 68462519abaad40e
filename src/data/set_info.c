#include "data/set_info.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "io/commit.h"
#include "io/crc32c.h"
#include "io/file.h"
#include "io/json_text.h"
#include "io/path.h"
#include "io/sidecar.h"

enum { MAX_CLASSES = 1 << 20, MAX_FILES = 1 << 16 };
static const size_t max_file_bytes = (size_t)64 << 20;

/* ---- Reading ---- */

/* A sidecar's bytes as a JSON object. */
static sx_status parse(const char *path, sx_bytes bytes, json_t **out_json)
{
    json_error_t error;
    json_t *json = json_loadb(bytes.data, bytes.size, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL || !json_is_object(json_object_get(json, "sets"))) {
        json_decref(json);
        return sx_error(SX_DATA_LOSS,
                        "%s: invalid schema file (%s); delete it or write the data again", path,
                        json == NULL ? error.text : "no object \"sets\"");
    }
    *out_json = json;
    return SX_OK;
}

static sx_status load(const char *path, json_t **out_json)
{
    char *data = NULL;
    size_t size;
    SX_TRY(sx_file_read(path, max_file_bytes, &data, &size));
    sx_status status = parse(path, (sx_bytes){data, size}, out_json);
    sx_free(data);
    return status;
}

/* The set that lists a file of this name. */
static json_t *find_set(json_t *json, const char *name, const char **out_set)
{
    const char *set;
    json_t *info, *file;
    size_t i;
    json_object_foreach(json_object_get(json, "sets"), set, info)
    {
        json_array_foreach(json_object_get(info, "files"), i, file)
        {
            const char *text = json_string_value(json_object_get(file, "name"));
            if (text != NULL && strcmp(text, name) == 0) {
                *out_set = set;
                return info;
            }
        }
    }
    return NULL;
}

static sx_status bad(const char *path, const char *set, const char *field)
{
    return sx_error(SX_DATA_LOSS,
                    "%s: set \"%s\": invalid field \"%s\"; delete the file or write the data again",
                    path, set, field);
}

static sx_status read_text(const json_t *json, sx_arena *arena, const char **out_text)
{
    const char *text = json_string_value(json);
    if (text == NULL) {
        return SX_OK;
    }
    const char *copy = sx_arena_strdup(arena, text);
    if (copy == NULL) {
        return sx_no_memory("for a schema");
    }
    *out_text = copy;
    return SX_OK;
}

static sx_status read_classes(const json_t *json, sx_arena *arena, sx_set_info *info)
{
    size_t count = json_array_size(json);
    if (count == 0 || count > MAX_CLASSES) {
        return SX_OK;
    }
    const char **classes = sx_arena_array(arena, count, const char *);
    if (classes == NULL) {
        return sx_no_memory("for a schema");
    }
    for (size_t i = 0; i < count; i++) {
        classes[i] = "";
        SX_TRY(read_text(json_array_get(json, i), arena, &classes[i]));
    }
    info->classes = classes;
    info->class_count = (int)count;
    return SX_OK;
}

static sx_status read_files(const json_t *json, sx_arena *arena, sx_set_info *info)
{
    size_t count = json_array_size(json);
    if (count == 0 || count > MAX_FILES) {
        return SX_OK;
    }
    sx_set_file *files = sx_arena_array(arena, count, sx_set_file);
    if (files == NULL) {
        return sx_no_memory("for a schema");
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *file = json_array_get(json, i);
        const char *crc = json_string_value(json_object_get(file, "crc32c"));
        files[i].name = "";
        SX_TRY(read_text(json_object_get(file, "name"), arena, &files[i].name));
        files[i].records = json_integer_value(json_object_get(file, "records"));
        files[i].bytes = json_integer_value(json_object_get(file, "bytes"));
        files[i].crc32c = crc == NULL ? 0 : (uint32_t)strtoul(crc, NULL, 16);
    }
    info->files = files;
    info->file_count = (int)count;
    return SX_OK;
}

static sx_status read_set(const json_t *json, const char *path, const char *set, sx_arena *arena,
                          sx_set_info *out_info)
{
    sx_set_info info = {0};
    json_int_t base = json_integer_value(json_object_get(json, "label_base"));
    json_int_t count = json_integer_value(json_object_get(json, "count"));
    const json_t *features = json_object_get(json, "features");
    const json_t *shape = json_object_get(json, "shape");
    if (base < -1000000 || base > 1000000) {
        return bad(path, set, "label_base");
    }
    if (count < 0) {
        return bad(path, set, "count");
    }
    info.label_base = (int)base;
    info.count = count;
    const char *format = json_string_value(json_object_get(json, "format"));
    info.raw = format != NULL && strcmp(format, "raw") == 0;
    for (size_t i = 0; i < 3; i++) {
        info.shape[i] = json_integer_value(json_array_get(shape, i));
    }
    info.set = sx_arena_strdup(arena, set);
    SX_TRY(read_text(json_object_get(features, "image"), arena, &info.image_key));
    SX_TRY(read_text(json_object_get(features, "label"), arena, &info.label_key));
    SX_TRY(read_classes(json_object_get(json, "classes"), arena, &info));
    SX_TRY(read_files(json_object_get(json, "files"), arena, &info));
    *out_info = info;
    return SX_OK;
}

sx_status sx_set_info_parse(sx_bytes bytes, const char *path, const char *file, sx_arena *arena,
                            sx_set_info *out_info)
{
    const char *set = NULL;
    json_t *json = NULL;
    SX_TRY(parse(path, bytes, &json));
    const json_t *info = find_set(json, file, &set);
    sx_status status = info == NULL ? sx_error(SX_NOT_FOUND, "%s does not list %s", path, file)
                                    : read_set(info, path, set, arena, out_info);
    json_decref(json);
    return status;
}

/* The path to pass to the sidecar functions: "data/train-0" -> "data/schema". */
static sx_status schema_path(const char *path, char **out_path)
{
    char *dir = NULL;
    SX_TRY(sx_path_dirname(path, &dir));
    sx_status status = sx_path_join(dir, "schema", out_path);
    sx_free(dir);
    return status;
}

sx_status sx_set_info_find(const char *path, sx_arena *arena, sx_set_info *out_info)
{
    char *schema = NULL, *sidecar = NULL, *data = NULL;
    size_t size;
    sx_status status;
    SX_TRY(schema_path(path, &schema));
    SX_TRY_GOTO(status, sx_sidecar_find(schema, ".json", &sidecar), done);
    SX_TRY_GOTO(status, sx_file_read(sidecar, max_file_bytes, &data, &size), done);
    status =
        sx_set_info_parse((sx_bytes){data, size}, sidecar, sx_path_basename(path), arena, out_info);
done:
    sx_free(data);
    sx_free(sidecar);
    sx_free(schema);
    return status;
}

/* ---- Writing ---- */

static json_t *hex(uint32_t x)
{
    return json_sprintf("%08x", x);
}

static json_t *files_json(const sx_set_info *info)
{
    json_t *files = json_array();
    for (int i = 0; i < info->file_count; i++) {
        const sx_set_file *file = &info->files[i];
        json_array_append_new(files,
                              json_pack("{s:s, s:I, s:I, s:o}", "name", file->name, "records",
                                        (json_int_t)file->records, "bytes", (json_int_t)file->bytes,
                                        "crc32c", hex(file->crc32c)));
    }
    return files;
}

/* The CRC of the files' CRCs, each as 4 bytes little-endian. */
static uint32_t checksum(const sx_set_info *info)
{
    uint32_t crc = 0;
    for (int i = 0; i < info->file_count; i++) {
        uint32_t c = info->files[i].crc32c;
        uint8_t bytes[4] = {(uint8_t)c, (uint8_t)(c >> 8), (uint8_t)(c >> 16), (uint8_t)(c >> 24)};
        crc = sx_crc32c(crc, bytes, sizeof(bytes));
    }
    return crc;
}

static json_t *set_json(const sx_set_info *info)
{
    json_t *classes = json_array(), *features = json_object(), *json = json_object();
    for (int i = 0; i < info->class_count; i++) {
        json_array_append_new(classes, json_string(info->classes[i]));
    }
    json_object_set_new(features, "image", json_string(info->image_key));
    json_object_set_new(features, "label", json_string(info->label_key));
    json_object_set_new(json, "count", json_integer(info->count));
    json_object_set_new(json, "label_base", json_integer(info->label_base));
    json_object_set_new(json, "classes", classes);
    json_object_set_new(json, "features", features);
    json_object_set_new(json, "format", json_string(info->raw ? "raw" : "encoded"));
    if (info->raw) {
        json_object_set_new(json, "shape",
                            json_pack("[I, I, I]", (json_int_t)info->shape[0],
                                      (json_int_t)info->shape[1], (json_int_t)info->shape[2]));
    }
    json_object_set_new(json, "files", files_json(info));
    json_object_set_new(json, "checksum", hex(checksum(info)));
    return json;
}

/* The directory's current schema; an empty one if there is none or it is invalid. */
static json_t *load_or_begin(const char *path)
{
    json_t *json = NULL;
    sx_status status = sx_path_exists(path) ? load(path, &json) : SX_OK;
    sx_status_free(status);
    return json != NULL ? json : json_pack("{s:i, s:{}}", "version", 1, "sets");
}

sx_status sx_set_info_save(const char *prefix, const sx_set_info *info)
{
    char *schema = NULL, *sidecar = NULL, *text = NULL;
    json_t *json = NULL;
    sx_status status;
    SX_TRY(schema_path(prefix, &schema));
    SX_TRY_GOTO(status, sx_sidecar_place(schema, ".json", &sidecar), done);
    json = load_or_begin(sidecar);
    json_object_set_new(json_object_get(json, "sets"), info->set, set_json(info));
    SX_TRY_GOTO(status, sx_json_text(json, JSON_INDENT(1), &text), done);
    status = sx_commit_bytes(sidecar, text, strlen(text));
done:
    sx_free(text);
    json_decref(json);
    sx_free(sidecar);
    sx_free(schema);
    return status;
}
