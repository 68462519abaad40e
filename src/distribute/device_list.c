/* See device_list.h. */
#include "distribute/device_list.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "graph/device_name.h"

bool sx_is_device_list(const char *text)
{
    return strchr(text, ',') != NULL;
}

/* "/cpu:1", "/device:CPU:1" and longer names of this process become "cpu:1"; other kinds stay. */
static sx_status without_slash(const char *text, sx_arena *arena, const char **name)
{
    sx_device_name whole = SX_ANY_DEVICE;
    if ((*name)[0] != '/') {
        return SX_OK;
    }
    SX_TRY(sx_device_name_parse(*name, &whole), "devices \"%s\"", text);
    if ((whole.job[0] != '\0' && strcmp(whole.job, "localhost") != 0) || whole.replica > 0 ||
        whole.task > 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "devices \"%s\": \"%s\" is of another process; those of this one are "
                        "/job:localhost/replica:0/task:0",
                        text, *name);
    }
    if (strcmp(whole.type, "CPU") == 0 && whole.index >= 0) {
        *name = sx_arena_printf(arena, "cpu:%d", whole.index);
    }
    return *name != NULL ? SX_OK : sx_no_memory("for a list of devices");
}

/* Takes the number from "cpu:1", which must be that of the devices of its kind before it. */
static sx_status take_number(const char *text, sx_arena *arena, int before, const char **name)
{
    const size_t head = strcspn(*name, ":");
    char number[16];
    const bool numbered = strncasecmp(*name, "cpu:", 4) == 0 || strncasecmp(*name, "host:", 5) == 0;
    if (!numbered) {
        return SX_OK;
    }
    snprintf(number, sizeof(number), "%d", before);
    if (strcmp(*name + head + 1, number) != 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "devices \"%s\": \"%s\" is number %d of its kind; write %.*s:%d or %.*s",
                        text, *name, before, (int)head, *name, before, (int)head, *name);
    }
    *name = sx_arena_strndup(arena, *name, head);
    return *name != NULL ? SX_OK : sx_no_memory("for a list of devices");
}

static int count_before(const sx_placed_device *devices, int n, const char *name)
{
    int before = 0;
    for (int i = 0; i < n; i++) {
        before += strncasecmp(devices[i].backend, name, strlen(devices[i].backend)) == 0;
    }
    return before;
}

sx_status sx_device_list_parse(const char *text, sx_arena *arena, sx_device_list_spec *out)
{
    int most = 1;
    for (const char *at = text; *at != '\0'; at++) {
        most += *at == ',';
    }
    sx_placed_device *devices = sx_arena_array(arena, most, sx_placed_device);
    *out = (sx_device_list_spec){.devices = devices};
    if (devices == NULL) {
        return sx_no_memory("for a list of devices");
    }
    for (const char *at = text;; at++) {
        const size_t size = strcspn(at, ","), blanks = strspn(at, " ");
        const size_t begin = SX_MIN(blanks, size);
        size_t end = size;
        while (end > begin && at[end - 1] == ' ') {
            end--;
        }
        const char *name = sx_arena_strndup(arena, at + begin, end - begin);
        sx_device_spec spec;
        if (name == NULL) {
            return sx_no_memory("for a list of devices");
        }
        if (name[0] == '\0') {
            return sx_error(SX_INVALID_ARGUMENT, "devices \"%s\": a name is missing", text);
        }
        SX_TRY(without_slash(text, arena, &name));
        SX_TRY(take_number(text, arena, count_before(devices, out->n_devices, name), &name));
        SX_TRY(sx_device_spec_parse(name, arena, &spec), "devices \"%s\"", text);
        const bool plugin = strcmp(spec.backend, "pjrt") == 0;
        if (plugin && out->plugin_devices > 0) {
            return sx_error(SX_INVALID_ARGUMENT,
                            "devices \"%s\": \"%s\" is the second plugin of the list, which may "
                            "have one; give the number of its devices, as in pjrt:NAME:2",
                            text, name);
        }
        const int n = plugin && spec.devices == 0 ? 1 : spec.devices;
        devices[out->n_devices++] = (sx_placed_device){.backend = spec.backend, .devices = n};
        out->plugin_name = plugin ? spec.plugin_name : out->plugin_name;
        out->plugin_devices = plugin ? n : out->plugin_devices;
        at += size;
        if (*at == '\0') {
            return SX_OK;
        }
    }
}
