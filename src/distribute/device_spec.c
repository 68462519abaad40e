/* See device_spec.h. */
#include "distribute/device_spec.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "distribute/device_list.h"
#include "distribute/tpu_chips.h"
#include "graph/device_name.h"

typedef struct kind {
    const char *name, *type, *backend, *plugin;
    bool counts; /* name:n is allowed */
} kind;

/* `type` is TensorFlow's, which has no name for `host`. */
static const kind kinds[] = {
    {"cpu", "CPU", "cpu", NULL, false},  {"host", "HOST", "host", NULL, false},
    {"tpu", "TPU", "pjrt", "tpu", true}, {"cuda", "GPU", "pjrt", "cuda", true},
    {"pjrt", NULL, "pjrt", NULL, false},
};

static const char expected[] = "cpu, host, tpu, cuda or pjrt:NAME[:N] (see `sextant devices`)";

static sx_status unknown(const char *text, const char *head)
{
    const char *names[SX_COUNT(kinds)];
    if (strcasecmp(head, "gpu") == 0) {
        return sx_error(SX_INVALID_ARGUMENT, "unknown device \"%s\"; use --device cuda for GPUs",
                        text);
    }
    for (size_t i = 0; i < SX_COUNT(kinds); i++) {
        names[i] = kinds[i].name;
    }
    sx_buf near;
    sx_buf_init(&near, 4096);
    sx_buf_puts(&near, "; did you mean ");
    bool any = sx_nearest_names(head, names, SX_COUNT(names), &near) > 0;
    sx_status status = sx_error(SX_INVALID_ARGUMENT, "unknown device \"%s\"%s%s; expected %s", text,
                                any ? sx_buf_text(&near) : "", any ? "?" : "", expected);
    sx_buf_deinit(&near);
    return status;
}

static const kind *find(const char *name, size_t size, size_t offset)
{
    for (size_t i = 0; i < SX_COUNT(kinds); i++) {
        const char *known = *(const char *const *)((const char *)&kinds[i] + offset);
        if (known != NULL && strlen(known) == size && strncasecmp(known, name, size) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

static void take_kind(const kind *k, sx_device_spec *out)
{
    *out = (sx_device_spec){.backend = k->backend,
                            .plugin_name = k->plugin,
                            .is_tpu = k->plugin != NULL && strcmp(k->plugin, "tpu") == 0};
}

static bool parse_count(const char *text, int *out)
{
    char *end = NULL;
    long n = strtol(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || n < 1 || n > SX_MAX_REPLICAS) {
        return false;
    }
    *out = (int)n;
    return true;
}

static sx_status bad_count(const char *text, const char *count)
{
    return sx_error(SX_INVALID_ARGUMENT,
                    "device \"%s\": invalid number of devices \"%s\", expected 1 to %d", text,
                    count, SX_MAX_REPLICAS);
}

static sx_status check_process(const char *text, const sx_device_name *name)
{
    return (name->job[0] == '\0' || strcmp(name->job, "localhost") == 0) && name->replica <= 0 &&
                   name->task <= 0
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT,
                          "device \"%s\" is of another process; those of this one are "
                          "/job:localhost/replica:0/task:0",
                          text);
}

sx_status sx_device_spec_parse_one(const char *text, sx_device_spec *out, const char **out_type,
                                   int *out_number)
{
    sx_device_name name;
    SX_TRY(sx_device_name_parse(text, &name));
    SX_TRY(check_process(text, &name));
    const kind *k = find(name.type, strlen(name.type), offsetof(kind, type));
    if (k == NULL) {
        return unknown(text, name.type);
    }
    if (name.index < 0) {
        return sx_error(SX_INVALID_ARGUMENT, "unknown device \"%s\"; expected its number, %s:0",
                        text, k->type);
    }
    if (name.index >= SX_MAX_REPLICAS) {
        return sx_error(SX_INVALID_ARGUMENT, "device \"%s\": invalid number %d, expected 0 to %d",
                        text, name.index, SX_MAX_REPLICAS - 1);
    }
    take_kind(k, out);
    out->devices = k->plugin != NULL ? 1 : 0;
    *out_type = k->type;
    *out_number = name.index;
    return SX_OK;
}

static sx_status parse_first(const char *text, sx_device_spec *out)
{
    const char *type;
    int number;
    SX_TRY(sx_device_spec_parse_one(text, out, &type, &number));
    return number == 0
               ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT,
                          "device \"%s\": only the first device can be named so, %s:0; name others "
                          "with --devices (devices), or give their number, as in pjrt:NAME:N",
                          text, type);
}

/* The part of pjrt:NAME[:N] after the first colon. */
static sx_status parse_plugin(const char *text, const char *rest, sx_arena *arena,
                              sx_device_spec *out)
{
    size_t size = strcspn(rest, ":");
    if (size == 0 || (rest[0] >= '0' && rest[0] <= '9')) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "device \"%s\": expected pjrt:NAME[:N], where NAME is cpu, tpu, cuda or "
                        "a name in PJRT_NAMES_AND_LIBRARY_PATHS",
                        text);
    }
    out->plugin_name = sx_arena_strndup(arena, rest, size);
    if (out->plugin_name == NULL) {
        return sx_no_memory("for a device name");
    }
    if (rest[size] == ':' && !parse_count(rest + size + 1, &out->devices)) {
        return bad_count(text, rest + size + 1);
    }
    return SX_OK;
}

sx_status sx_device_spec_parse(const char *text, sx_arena *arena, sx_device_spec *out)
{
    sx_device_spec spec = {0};
    if (sx_is_device_list(text)) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "device \"%s\" is a list, for models whose layers are on several devices; "
                        "expected one",
                        text);
    }
    if (text[0] == '/') {
        return parse_first(text, out);
    }
    size_t size = strcspn(text, ":");
    const kind *k = find(text, size, offsetof(kind, name));
    if (k == NULL) {
        const char *head = sx_arena_strndup(arena, text, size);
        return head != NULL ? unknown(text, head) : sx_no_memory("for a device name");
    }
    take_kind(k, &spec);
    if (text[size] == ':' && k->counts && !parse_count(text + size + 1, &spec.devices)) {
        return bad_count(text, text + size + 1);
    }
    if (text[size] == ':' && strcmp(k->name, "pjrt") == 0) {
        SX_TRY(parse_plugin(text, text + size + 1, arena, &spec));
    } else if (text[size] == ':' && !k->counts) {
        return sx_error(SX_INVALID_ARGUMENT, "unknown device \"%s\": there is only one %s%s", text,
                        k->name,
                        strcmp(k->name, "cpu") == 0
                            ? "; to divide each batch among virtual devices, use --device cpu "
                              "--virtual-devices N (virtual_devices)"
                            : "; use --device host");
    }
    *out = spec;
    return SX_OK;
}

const char *sx_device_spec_text(const sx_device_spec *spec, sx_arena *arena)
{
    if (strcmp(spec->backend, "pjrt") != 0) {
        return spec->backend;
    }
    if (spec->is_tpu) {
        return "tpu";
    }
    return spec->plugin_name == NULL ? "pjrt"
                                     : sx_arena_printf(arena, "pjrt:%s", spec->plugin_name);
}

const char *sx_device_spec_type(const sx_device_spec *spec)
{
    const char *name = spec->plugin_name != NULL ? spec->plugin_name : spec->backend;
    const kind *k = find(name, strlen(name), offsetof(kind, name));
    return k != NULL ? k->type : NULL;
}

bool sx_device_spec_is_name(const char *text)
{
    const size_t size = strcspn(text, ":");
    const kind *k = find(text, size, offsetof(kind, name));
    const bool is_type = find(text, size, offsetof(kind, type)) != NULL;
    return text[0] == '/' || (text[size] == ':' && is_type && (k == NULL || !k->counts));
}

bool sx_device_is_of_type(const char *device_name, const char *type)
{
    sx_device_name name;
    sx_status status = sx_device_name_parse(device_name, &name);
    const bool is = status == SX_OK && strcmp(name.type, type) == 0;
    sx_status_free(status);
    return is;
}

static sx_status check_type(const sx_device_spec *spec, const char *device_name)
{
    const char *name = spec->plugin_name;
    const char *type = name != NULL ? sx_device_spec_type(spec) : NULL;
    if (type == NULL || sx_device_is_of_type(device_name, type)) {
        return SX_OK;
    }
    return sx_error(SX_FAILED_PRECONDITION,
                    "device %s requested, but the plugin offers %s; give the library for %s, or "
                    "use --device pjrt to accept any device",
                    name, device_name, name);
}

sx_status sx_device_open(const sx_device_spec *spec, const sx_platform_options *options,
                         sx_platform **out)
{
    sx_platform *platform = NULL;
    if (spec->is_tpu) {
        sx_tpu_spare_the_cloud(SX_PCI_DEVICES);
    }
    SX_TRY(sx_platform_open(spec->backend, options, &platform));
    sx_status status = check_type(spec, platform->devices[0]->name);
    if (status != SX_OK) {
        sx_platform_close(platform);
        return status;
    }
    *out = platform;
    return SX_OK;
}
