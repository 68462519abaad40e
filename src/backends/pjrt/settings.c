/* See settings.h. */
#include "backends/pjrt/settings.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/nearest.h"

enum { MAX_LIST = 256 };

/* What clients take; the sources are the plugins of XLA 0.81 to 0.116 and libtpu 0.0.44. */
static const struct known {
    sx_pjrt_kind kind;
    const char *name;
    int type;
} known[] = {
    {SX_PJRT_CPU, "cpu_device_count", SX_PJRT_INT64},
    {SX_PJRT_CPU, "asynchronous", SX_PJRT_BOOL},
    {SX_PJRT_CPU, "process_id", SX_PJRT_INT64},
    {SX_PJRT_CUDA, "platform_name", SX_PJRT_STRING},
    {SX_PJRT_CUDA, "allocator", SX_PJRT_STRING},
    {SX_PJRT_CUDA, "memory_fraction", SX_PJRT_FLOAT},
    {SX_PJRT_CUDA, "preallocate", SX_PJRT_BOOL},
    {SX_PJRT_CUDA, "collective_memory_size", SX_PJRT_INT64},
    {SX_PJRT_CUDA, "visible_devices", SX_PJRT_INT64_LIST},
    {SX_PJRT_CUDA, "node_id", SX_PJRT_INT64},
    {SX_PJRT_CUDA, "num_nodes", SX_PJRT_INT64},
    {SX_PJRT_CUDA, "should_stage_host_to_device_transfers", SX_PJRT_BOOL},
    {SX_PJRT_CUDA, "abort_collectives_on_failure", SX_PJRT_BOOL},
    {SX_PJRT_CUDA, "use_tfrt_gpu_client", SX_PJRT_BOOL},
    {SX_PJRT_CUDA, "enable_mock_nccl", SX_PJRT_BOOL},
    {SX_PJRT_CUDA, "mock_gpu_topology", SX_PJRT_STRING},
    {SX_PJRT_CUDA, "partition_index", SX_PJRT_INT64},
    {SX_PJRT_CUDA, "max_inflight_computations", SX_PJRT_INT64},
    {SX_PJRT_TPU, "ml_framework_name", SX_PJRT_STRING},
    {SX_PJRT_TPU, "ml_framework_version", SX_PJRT_STRING},
    {SX_PJRT_TPU, "max_inflight_computations", SX_PJRT_INT64},
    {SX_PJRT_TPU, "use_global_tpu_system", SX_PJRT_BOOL},
    {SX_PJRT_TPU, "premapped_buffer_size", SX_PJRT_INT64},
    {SX_PJRT_TPU, "tpu_allow_async_allocations", SX_PJRT_BOOL},
    {SX_PJRT_TPU, "skip_megascale_pjrt_client", SX_PJRT_BOOL},
};

static const char *const type_names[] = {[SX_PJRT_STRING] = "a string",
                                         [SX_PJRT_INT64] = "a whole number",
                                         [SX_PJRT_INT64_LIST] = "a list such as [0,1]",
                                         [SX_PJRT_FLOAT] = "a number",
                                         [SX_PJRT_BOOL] = "true or false"};

sx_pjrt_named sx_pjrt_setting(const char *name, int type)
{
    return (sx_pjrt_named){.struct_size = sizeof(sx_pjrt_named),
                           .name = name,
                           .name_size = strlen(name),
                           .type = type,
                           .value_size = 1};
}

bool sx_pjrt_has_setting(const sx_pjrt_settings *settings, const char *name)
{
    size_t i = 0;
    while (i < settings->n && strcmp(settings->rows[i].name, name) != 0) {
        i++;
    }
    return i < settings->n;
}

void sx_pjrt_default_setting(sx_pjrt_settings *settings, sx_pjrt_named row)
{
    if (!sx_pjrt_has_setting(settings, row.name)) {
        memmove(settings->rows + 1, settings->rows, settings->n++ * sizeof(row));
        settings->rows[0] = row;
    }
}

/* ---- Reading ---- */

/* A whole number of at most 64 bits; false: it is none. */
static bool read_int(const char *text, const char **out_end, int64_t *out)
{
    char *end = NULL;
    const char *digits = text + (*text == '-');
    errno = 0;
    *out = isdigit((unsigned char)*digits) ? strtoll(text, &end, 10) : 0;
    *out_end = end;
    return end != NULL && errno == 0;
}

/* The numbers of "[0,1]". */
static bool read_list(const char *text, sx_arena *arena, sx_pjrt_named *row)
{
    int64_t *list = sx_arena_array(arena, MAX_LIST, int64_t);
    size_t n = 0;
    const char *at = text + 1;
    while (list != NULL && n < MAX_LIST && read_int(at, &at, &list[n])) {
        n++;
        if (*at == ']' && at[1] == '\0') {
            row->type = SX_PJRT_INT64_LIST;
            row->int64_list = list;
            row->value_size = n;
            return true;
        }
        if (*at++ != ',') {
            return false;
        }
    }
    return false;
}

static sx_status read_value(const char *what, const char *name, char *text, sx_arena *arena,
                            sx_pjrt_named *row)
{
    const size_t size = strlen(text);
    const char *end = NULL;
    char *number_end = NULL;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        row->type = SX_PJRT_BOOL;
        row->boolean = text[0] == 't';
    } else if (text[0] == '[') {
        if (!read_list(text, arena, row)) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "%s: %s is \"%.100s\", expected at most %d whole numbers such as [0,1]",
                            what, name, text, MAX_LIST);
        }
    } else if (read_int(text, &end, &row->int64) && *end == '\0') {
        row->type = SX_PJRT_INT64;
    } else if ((isdigit((unsigned char)text[0]) || text[0] == '-' || text[0] == '.') &&
               isfinite(strtof(text, &number_end)) && *number_end == '\0') {
        row->type = SX_PJRT_FLOAT;
        row->real = strtof(text, NULL);
    } else {
        const bool quoted = size >= 2 && text[0] == '"' && text[size - 1] == '"';
        if (quoted) {
            text[size - 1] = '\0';
        }
        row->type = SX_PJRT_STRING;
        row->string = text + quoted;
        row->value_size = size - 2 * quoted;
    }
    return SX_OK;
}

/* Where the setting that begins at `text` ends: at a comma outside of brackets and quotes. */
static size_t length_of(const char *text)
{
    bool quoted = false, listed = false;
    size_t n = 0;
    for (; text[n] != '\0' && (quoted || listed || text[n] != ','); n++) {
        quoted = quoted != (text[n] == '"');
        listed = !quoted && (text[n] == '[' || (listed && text[n] != ']'));
    }
    return n;
}

sx_status sx_pjrt_read_settings(const char *what, const char *text, sx_arena *arena,
                                sx_pjrt_settings *out)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    *out = (sx_pjrt_settings){.n = 0};
    while (text != NULL && *text != '\0') {
        const size_t size = length_of(text), name_size = strspn(text, letters);
        if (name_size == 0 || text[name_size] != '=' || name_size + 1 == size) {
            return sx_error(SX_INVALID_ARGUMENT, "%s: \"%.*s\": expected NAME=VALUE", what,
                            (int)SX_MIN(size, 100), text);
        }
        const char *name = sx_arena_strndup(arena, text, name_size);
        char *value = sx_arena_strndup(arena, text + name_size + 1, size - name_size - 1);
        if (name == NULL || value == NULL) {
            return sx_no_memory("for options of a plugin");
        }
        if (sx_pjrt_has_setting(out, name)) {
            return sx_error(SX_INVALID_ARGUMENT, "%s: %s is given twice", what, name);
        }
        if (out->n == SX_PJRT_MAX_SETTINGS) {
            return sx_error(SX_INVALID_ARGUMENT, "%s: more than %d options", what,
                            SX_PJRT_MAX_SETTINGS);
        }
        sx_pjrt_named *row = &out->rows[out->n++];
        *row = sx_pjrt_setting(name, SX_PJRT_STRING);
        SX_TRY(read_value(what, name, value, arena, row));
        text += size + (text[size] == ',');
    }
    return SX_OK;
}

sx_status sx_pjrt_read_xla_settings(const char *text, sx_arena *arena, sx_pjrt_settings *out)
{
    static const char what[] = "xla_options";
    SX_TRY(sx_pjrt_read_settings(what, text, arena, out));
    for (size_t i = 0; i < out->n; i++) {
        if (out->rows[i].type == SX_PJRT_INT64_LIST) {
            return sx_error(SX_INVALID_ARGUMENT, "%s: %s is a list, which XLA's options cannot be",
                            what, out->rows[i].name);
        }
    }
    return SX_OK;
}

/* ---- Checking ---- */

sx_status sx_pjrt_check_settings(sx_pjrt_kind kind, const char *what, sx_pjrt_settings *settings)
{
    const char *names[SX_COUNT(known)];
    size_t n = 0;
    for (size_t k = 0; k < SX_COUNT(known); k++) {
        if (known[k].kind == kind) {
            names[n++] = known[k].name;
        }
    }
    for (size_t i = 0; n > 0 && i < settings->n; i++) {
        sx_pjrt_named *row = &settings->rows[i];
        size_t k = 0;
        while (k < SX_COUNT(known) &&
               (known[k].kind != kind || strcmp(known[k].name, row->name) != 0)) {
            k++;
        }
        if (k == SX_COUNT(known)) {
            sx_buf list;
            sx_buf_init(&list, 4096);
            sx_nearest_list(row->name, names, n, &list);
            sx_status status = sx_error(SX_INVALID_ARGUMENT, "%s: this plugin has no option %s %s",
                                        what, row->name, sx_buf_text(&list));
            sx_buf_deinit(&list);
            return status;
        }
        if (known[k].type == SX_PJRT_FLOAT && row->type == SX_PJRT_INT64) {
            row->type = SX_PJRT_FLOAT;
            row->real = (float)row->int64;
        }
        if (known[k].type != row->type) {
            return sx_error(SX_INVALID_ARGUMENT, "%s: %s takes %s", what, row->name,
                            type_names[known[k].type]);
        }
    }
    return SX_OK;
}
