/* See profiler.h. */
#include "backends/pjrt/profiler.h"

#include <limits.h>

#include "base/checked.h"
#include "base/memory.h"

enum { MAX_EXTENSIONS = 64 };

struct sx_pjrt_profiler {
    const sx_pjrt_profiler_api *api;
    void *handle;
};

/* The table, or NULL. */
static const sx_pjrt_profiler_api *find_api(const sx_pjrt_plugin *plugin)
{
    const sx_pjrt_extension *e = plugin->api->extensions;
    for (int i = 0; e != NULL && i < MAX_EXTENSIONS; i++, e = e->next) {
        if (e->type == SX_PJRT_PROFILER && e->struct_size >= sizeof(sx_pjrt_profiler_extension)) {
            const sx_pjrt_profiler_api *api = ((const sx_pjrt_profiler_extension *)e)->api;
            return api != NULL && api->struct_size >= sizeof(*api) ? api : NULL;
        }
    }
    return NULL;
}

/* The status of an error of the profiler's, which is destroyed. */
static sx_status status_of(const sx_pjrt_profiler_api *api, const char *what, void *error)
{
    if (error == NULL) {
        return SX_OK;
    }
    sx_pjrt_profiler_error message = {.struct_size = sizeof(message), .error = error};
    sx_pjrt_profiler_code code = {
        .struct_size = offsetof(sx_pjrt_profiler_code, code) + sizeof(code.code), .error = error};
    api->error_message(&message);
    void *failed = api->error_code(&code);
    const bool known = failed == NULL && code.code > 0 && code.code <= SX_UNAUTHENTICATED;
    sx_status status =
        sx_error(known ? (sx_code)code.code : SX_UNKNOWN, "the plugin's profiler, %s: %.*s", what,
                 message.size > INT_MAX ? INT_MAX : (int)message.size,
                 message.message == NULL ? "" : message.message);
    sx_pjrt_profiler_error end = {.struct_size = offsetof(sx_pjrt_profiler_error, message),
                                  .error = error};
    api->error_destroy(&end);
    return status;
}

static void destroy(sx_pjrt_profiler *p)
{
    sx_pjrt_profiler_object args = {.struct_size = sizeof(args), .profiler = p->handle};
    sx_status_free(status_of(p->api, "destroy", p->api->destroy(&args)));
    sx_free(p);
}

sx_status sx_pjrt_profiler_start(const sx_pjrt_plugin *plugin, sx_pjrt_profiler **out)
{
    /* ProfileOptions: 5 version, 2 host_tracer_level, 3 device_tracer_level, 7 enable_hlo_proto */
    static const char options[] = {0x28, 1, 0x10, 2, 0x18, 1, 0x38, 0};
    const sx_pjrt_profiler_api *api = find_api(plugin);
    if (api == NULL) {
        return sx_error(SX_UNIMPLEMENTED, "the plugin has no profiler");
    }
    sx_pjrt_profiler *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return sx_no_memory("for a profiler");
    }
    sx_pjrt_profiler_create make = {
        .struct_size = sizeof(make), .options = options, .options_size = sizeof(options)};
    sx_status status = status_of(api, "create", api->create(&make));
    if (status != SX_OK) {
        sx_free(p);
        return status;
    }
    *p = (sx_pjrt_profiler){.api = api, .handle = make.profiler};
    sx_pjrt_profiler_object args = {.struct_size = sizeof(args), .profiler = p->handle};
    status = status_of(api, "start", api->start(&args));
    if (status != SX_OK) {
        destroy(p);
        return status;
    }
    *out = p;
    return SX_OK;
}

/* The plugin's memory, or ours if it only tells the size. */
static sx_status collect(const sx_pjrt_profiler *p, sx_buf *out)
{
    sx_pjrt_profiler_data args = {.struct_size = sizeof(args), .profiler = p->handle};
    SX_TRY(status_of(p->api, "collect", p->api->collect(&args)));
    if (args.data != NULL) {
        sx_buf_append(out, args.data, args.size);
        return sx_buf_status(out);
    }
    args.data = args.size > 0 ? sx_alloc(args.size, 1) : NULL;
    if (args.data == NULL) {
        return args.size > 0 ? sx_no_memory("for a profile of %zu bytes", args.size) : SX_OK;
    }
    uint8_t *data = args.data;
    const size_t room = args.size;
    sx_status status = status_of(p->api, "collect", p->api->collect(&args));
    if (status == SX_OK) {
        sx_buf_append(out, data, SX_MIN(args.size, room));
        status = sx_buf_status(out);
    }
    sx_free(data);
    return status;
}

sx_status sx_pjrt_profiler_stop(sx_pjrt_profiler *p, sx_buf *out)
{
    if (p == NULL) {
        return SX_OK;
    }
    sx_pjrt_profiler_object args = {.struct_size = sizeof(args), .profiler = p->handle};
    sx_status status = status_of(p->api, "stop", p->api->stop(&args));
    if (status == SX_OK) {
        status = collect(p, out);
    }
    destroy(p);
    return status;
}
