/* Plugins: see plugin.h. */
#include "backends/pjrt/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/pjrt/companions.h"
#include "base/child.h"
#include "base/checked.h"
#include "base/memory.h"
#include "io/file.h"

enum { PROBE_SECONDS = 120 };

static struct {
    pthread_mutex_t lock;
    sx_pjrt_plugin *plugins;
} loaded = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Calling ---- */

static const struct {
    const char *name;
    size_t exact_size; /* of its argument struct, without the spare bytes */
} slots[SX_PJRT_MAX_SLOTS] = {
#define SLOT_(number, symbol, name, args) [number] = {name, SX_PJRT_SIZE(args)},
    SX_PJRT_SLOTS(SLOT_)
#undef SLOT_
};

static bool has_function(const sx_pjrt_plugin *plugin, sx_pjrt_slot slot)
{
    return SX_PJRT_SLOTS_AT + 8 * (size_t)slot < plugin->api->struct_size &&
           plugin->api->slots[slot] != NULL;
}

/* The plugin's error, or NULL. */
static void *enter(const sx_pjrt_plugin *plugin, sx_pjrt_slot slot, void *args)
{
    if (plugin->exact) {
        ((sx_pjrt_head *)args)->struct_size = slots[slot].exact_size;
    }
    return plugin->api->slots[slot](args);
}

sx_status sx_pjrt_status(const sx_pjrt_plugin *plugin, const char *what, void *error)
{
    if (error == NULL) {
        return SX_OK;
    }
    sx_pjrt_text message = SX_PJRT_ARGS(text, .object = error);
    sx_pjrt_int code = SX_PJRT_ARGS(int, .object = error);
    enter(plugin, SX_PJRT_ERROR_MESSAGE, &message);
    void *failed = enter(plugin, SX_PJRT_ERROR_CODE, &code);
    bool known = failed == NULL && code.value > 0 && code.value <= SX_UNAUTHENTICATED;
    sx_status status = sx_error(known ? (sx_code)code.value : SX_UNKNOWN, "PJRT %s: %.*s", what,
                                message.size > INT_MAX ? INT_MAX : (int)message.size,
                                message.text == NULL ? "" : message.text);
    sx_pjrt_object end = SX_PJRT_ARGS(object, .object = error);
    enter(plugin, SX_PJRT_ERROR_DESTROY, &end);
    return status;
}

sx_status sx_pjrt_call(const sx_pjrt_plugin *plugin, sx_pjrt_slot slot, void *args)
{
    if (!has_function(plugin, slot)) {
        return sx_error(SX_UNIMPLEMENTED, "%s (PJRT %d.%d) has no PJRT_%s", plugin->path,
                        plugin->api->major, plugin->api->minor, slots[slot].name);
    }
    return sx_pjrt_status(plugin, slots[slot].name, enter(plugin, slot, args));
}

void sx_pjrt_end(const sx_pjrt_plugin *plugin, sx_pjrt_slot slot, void *object)
{
    if (object != NULL) {
        sx_pjrt_object args = SX_PJRT_ARGS(object, .object = object);
        sx_status_free(sx_pjrt_call(plugin, slot, &args));
    }
}

sx_status sx_pjrt_text_of(const sx_pjrt_plugin *plugin, sx_pjrt_slot slot, void *object,
                          char *buffer, size_t capacity)
{
    sx_pjrt_text args = SX_PJRT_ARGS(text, .object = object);
    SX_TRY(sx_pjrt_call(plugin, slot, &args));
    size_t n = SX_MIN(args.size, capacity - 1);
    memcpy(buffer, args.text, n);
    buffer[n] = '\0';
    return SX_OK;
}

bool sx_pjrt_is_named(const sx_pjrt_named *row, const char *name, int type)
{
    return row->type == type && row->name_size == strlen(name) &&
           memcmp(row->name, name, row->name_size) == 0;
}

/* ---- Loading ---- */

static sx_pjrt_kind kind_of(const char *path)
{
    static const struct {
        const char *part;
        sx_pjrt_kind kind;
    } rows[] = {
        {"tpu", SX_PJRT_TPU}, {"cuda", SX_PJRT_CUDA},    {"gpu", SX_PJRT_CUDA},
        {"cpu", SX_PJRT_CPU}, {"pjrt_ref", SX_PJRT_CPU}, /* ours: tests/pjrt_ref */
    };
    const char *file = strrchr(path, '/');
    file = file == NULL ? path : file + 1;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strstr(file, rows[i].part) != NULL) {
            return rows[i].kind;
        }
    }
    return SX_PJRT_OTHER;
}

static sx_status check_version(const char *path, const sx_pjrt_api *api)
{
    bool fits = api != NULL && api->struct_size >= SX_PJRT_SLOTS_AT &&
                api->major == SX_PJRT_MAJOR && api->minor >= SX_PJRT_MIN_MINOR;
    if (fits) {
        return SX_OK;
    }
    if (api == NULL) {
        return sx_error(SX_FAILED_PRECONDITION, "%s: GetPjrtApi() returned NULL", path);
    }
    return sx_error(SX_FAILED_PRECONDITION,
                    "%s has PJRT version %d.%d; supported: %d.%d to %d.%d and newer minor versions",
                    path, api->major, api->minor, SX_PJRT_MAJOR, SX_PJRT_MIN_MINOR, SX_PJRT_MAJOR,
                    SX_PJRT_MINOR);
}

/* Sets the log level, which XLA reads when it is loaded; otherwise plugins write to stderr. */
static void quiet(void)
{
    setenv("TF_CPP_MIN_LOG_LEVEL", "2", 0);
}

/* Makes a call with spare bytes; if the plugin rejects it but accepts the exact size, exact sizes
 * are used from then on. */
static sx_status try_sizes(sx_pjrt_plugin *plugin, sx_pjrt_slot slot, void *args)
{
    sx_status status = sx_pjrt_call(plugin, slot, args);
    if (status == SX_OK || plugin->exact) {
        return status;
    }
    plugin->exact = true;
    sx_status again = sx_pjrt_call(plugin, slot, args);
    plugin->exact = again == SX_OK;
    sx_status_free(plugin->exact ? status : again);
    return plugin->exact ? SX_OK : status;
}

static sx_status initialize(sx_pjrt_plugin *plugin)
{
    sx_pjrt_nothing nothing = SX_PJRT_ARGS(nothing, );
    sx_pjrt_attributes attributes = SX_PJRT_ARGS(attributes, );
    SX_TRY(try_sizes(plugin, SX_PJRT_PLUGIN_INITIALIZE, &nothing), "%s", plugin->path);
    /* Some plugins do not check the arguments of Initialize, so try another call; ignore its
     * result. */
    sx_status_free(try_sizes(plugin, SX_PJRT_PLUGIN_ATTRIBUTES, &attributes));
    return SX_OK;
}

/* Loads the library into this process. */
static sx_status open_library(const char *path, sx_pjrt_plugin *out)
{
    quiet();
    sx_pjrt_load_companions(path);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return sx_pjrt_blame_companions(
            path,
            sx_error(SX_FAILED_PRECONDITION, "loading the PJRT plugin %s: %s", path, dlerror()));
    }
    const sx_pjrt_api *(*get)(void) = NULL;
    void *symbol = dlsym(library, "GetPjrtApi");
    if (symbol == NULL) {
        dlclose(library);
        return sx_error(SX_FAILED_PRECONDITION,
                        "%s is not a PJRT plugin: it does not export GetPjrtApi", path);
    }
    memcpy(&get, &symbol, sizeof(get)); /* ISO C has no cast from object to function pointer */
    const sx_pjrt_api *api = get();
    SX_TRY(check_version(path, api));
    *out = (sx_pjrt_plugin){.path = path, .kind = kind_of(path), .api = api};
    return initialize(out);
}

/* ---- Running in a child process ---- */

static sx_status try_library(void *path, sx_buf *answer)
{
    sx_pjrt_plugin plugin;
    (void)answer;
    return open_library(path, &plugin);
}

static sx_status probe(const char *path)
{
    sx_buf what, answer;
    sx_buf_init(&what, 1 << 14);
    sx_buf_init(&answer, 0);
    sx_buf_printf(&what, "the PJRT plugin %s", path);
    sx_status status = sx_run_in_child(sx_buf_text(&what), PROBE_SECONDS, try_library,
                                       (void *)(uintptr_t)path, &answer);
    sx_buf_deinit(&what);
    sx_buf_deinit(&answer);
    return status;
}

static sx_status load_new(const char *path, const sx_pjrt_plugin **out)
{
    sx_file *file = NULL; /* dlopen() would wait for the writer of a named pipe */
    SX_TRY(sx_file_open(path, &file), "the PJRT plugin");
    sx_file_close(file);
    SX_TRY(probe(path));
    sx_pjrt_plugin *plugin = sx_alloc(1, sizeof(*plugin));
    char *copy = sx_strdup(path);
    sx_status status = plugin != NULL && copy != NULL ? open_library(copy, plugin)
                                                      : sx_no_memory("for a PJRT plugin");
    if (status != SX_OK) {
        sx_free(plugin);
        sx_free(copy);
        return status;
    }
    sx_alloc_keep(plugin); /* plugins are never unloaded */
    sx_alloc_keep(copy);
    plugin->next = loaded.plugins;
    loaded.plugins = plugin;
    *out = plugin;
    return SX_OK;
}

sx_status sx_pjrt_load(const char *path, const sx_pjrt_plugin **out)
{
    pthread_mutex_lock(&loaded.lock);
    const sx_pjrt_plugin *found = loaded.plugins;
    while (found != NULL && strcmp(found->path, path) != 0) {
        found = found->next;
    }
    sx_status status = found != NULL ? SX_OK : load_new(path, &found);
    pthread_mutex_unlock(&loaded.lock);
    if (status == SX_OK) {
        *out = found;
    }
    return status;
}
