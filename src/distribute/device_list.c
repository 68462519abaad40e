/* See device_list.h. */
#include "distribute/device_list.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"

bool sx_is_device_list(const char *text)
{
    return strchr(text, ',') != NULL;
}

sx_status sx_device_list_split(const char *text, sx_arena *arena, const char *const **out_names,
                               int *out_n)
{
    int n = 1;
    for (const char *at = text; *at != '\0'; at++) {
        n += *at == ',';
    }
    const char **names = sx_arena_array(arena, n, const char *);
    if (names == NULL) {
        return sx_no_memory("for a list of devices");
    }
    const char *at = text;
    for (int i = 0; i < n; i++) {
        at += strspn(at, " ");
        const size_t size = strcspn(at, ",");
        size_t end = size;
        while (end > 0 && at[end - 1] == ' ') {
            end--;
        }
        if (end == 0) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "devices \"%.200s\": a name is missing; expected names such as "
                            "/gpu:0,/gpu:2",
                            text);
        }
        names[i] = sx_arena_strndup(arena, at, end);
        if (names[i] == NULL) {
            return sx_no_memory("for a list of devices");
        }
        at += size + 1;
    }
    *out_names = names;
    *out_n = n;
    return SX_OK;
}

/* Devices of the list's plugin that have a name each, one after another, are opened together. */
static bool follows(const sx_device_list_spec *list, const sx_device_spec *spec, int number)
{
    const sx_placed_device *last = list->n_devices > 0 ? &list->devices[list->n_devices - 1] : NULL;
    return last != NULL && strcmp(last->backend, "pjrt") == 0 && number == list->plugin.devices &&
           list->plugin.plugin_name != NULL && spec->plugin_name != NULL &&
           strcmp(list->plugin.plugin_name, spec->plugin_name) == 0;
}

static sx_status take(const char *name, sx_arena *arena, sx_placed_device *devices,
                      sx_listed_device *names, sx_device_list_spec *out)
{
    sx_device_spec spec;
    const char *type;
    int number = -1;
    if (sx_device_spec_is_name(name)) {
        SX_TRY(sx_device_spec_parse_one(name, &spec, &type, &number), "devices \"%.200s\"",
               out->text);
    } else {
        SX_TRY(sx_device_spec_parse(name, arena, &spec), "devices \"%.200s\"", out->text);
    }
    const bool is_plugin = strcmp(spec.backend, "pjrt") == 0;
    const bool joins = is_plugin && follows(out, &spec, number);
    spec.devices = SX_MAX(spec.devices, 1);
    names[out->n_names++] = (sx_listed_device){.text = name,
                                               .type = sx_device_spec_type(&spec),
                                               .devices = spec.devices,
                                               .number = number};
    if (joins) {
        out->plugin.devices += spec.devices;
        devices[out->n_devices - 1].devices = out->plugin.devices;
        return SX_OK;
    }
    if (is_plugin && out->plugin.backend != NULL) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "devices \"%.200s\": \"%s\" is the second plugin of the list, which may "
                        "have one; give the number of its devices, as in pjrt:NAME:2",
                        out->text, name);
    }
    devices[out->n_devices++] =
        (sx_placed_device){.backend = spec.backend, .devices = is_plugin ? spec.devices : 0};
    out->plugin = is_plugin ? spec : out->plugin;
    return SX_OK;
}

sx_status sx_device_list_parse(const char *text, sx_arena *arena, sx_device_list_spec *out)
{
    const char *const *names = NULL;
    int n = 0;
    *out = (sx_device_list_spec){.text = sx_arena_strdup(arena, text)};
    if (out->text == NULL) {
        return sx_no_memory("for a list of devices");
    }
    SX_TRY(sx_device_list_split(text, arena, &names, &n));
    sx_placed_device *devices = sx_arena_array(arena, n, sx_placed_device);
    sx_listed_device *listed = sx_arena_array(arena, n, sx_listed_device);
    if (devices == NULL || listed == NULL) {
        return sx_no_memory("for a list of devices");
    }
    out->devices = devices;
    out->names = listed;
    for (int i = 0; i < n; i++) {
        SX_TRY(take(names[i], arena, devices, listed, out));
    }
    return SX_OK;
}

static const char *type_of(const sx_listed_device *d, const char *plugin_type)
{
    return d->type != NULL ? d->type : plugin_type;
}

sx_status sx_device_list_check(const sx_device_list_spec *list, const char *plugin_type)
{
    for (int i = 0; i < list->n_names; i++) {
        const sx_listed_device *d = &list->names[i];
        const char *type = type_of(d, plugin_type);
        int before = 0;
        for (int k = 0; k < i; k++) {
            const sx_listed_device *other = &list->names[k];
            before += strcmp(type_of(other, plugin_type), type) == 0 ? other->devices : 0;
        }
        if (d->number >= 0 && d->number != before) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "devices \"%.200s\": \"%s\" is %s:%d, as devices of a type are "
                            "numbered in the list's order; write %s:%d",
                            list->text, d->text, type, before, type, before);
        }
    }
    return SX_OK;
}
