/* See compile.h. */
#include "backends/pjrt/compile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backends/pjrt/compile_options.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/file.h"

enum { MAX_CPU_TEXT = 1 << 16 };

/* ---- The plugin's figures ---- */

static void measure_flops(const sx_pjrt_properties *costs, sx_pjrt_facts *facts)
{
    for (size_t i = 0; i < costs->count; i++) {
        const sx_pjrt_named *row = &costs->items[i];
        if (row->name_size == 5 && memcmp(row->name, "flops", 5) == 0) {
            facts->flops = row->type == SX_PJRT_FLOAT ? (double)row->real : (double)row->int64;
        }
    }
}

sx_pjrt_facts sx_pjrt_measure(const sx_pjrt_plugin *plugin, void *executable)
{
    sx_pjrt_facts facts = {0};
    sx_pjrt_compiled_memory memory = SX_PJRT_ARGS(compiled_memory, .executable = executable);
    sx_pjrt_properties costs = SX_PJRT_ARGS(properties, .object = executable);
    sx_status status = sx_pjrt_call(plugin, SX_PJRT_COMPILED_MEMORY, &memory);
    if (status == SX_OK) {
        facts = (sx_pjrt_facts){.argument_bytes = memory.arguments,
                                .output_bytes = memory.outputs,
                                .alias_bytes = memory.aliases,
                                .temporary_bytes = memory.temporaries,
                                .code_bytes = memory.code};
    }
    sx_status_free(status);
    status = sx_pjrt_call(plugin, SX_PJRT_COST_ANALYSIS, &costs);
    if (status == SX_OK) {
        measure_flops(&costs, &facts);
    }
    sx_status_free(status);
    return facts;
}

sx_status sx_pjrt_serialize(const sx_pjrt_plugin *plugin, void *executable, char **out_bytes,
                            size_t *out_size)
{
    sx_pjrt_serialized args = SX_PJRT_ARGS(serialized, .executable = executable);
    SX_TRY(sx_pjrt_call(plugin, SX_PJRT_EXECUTABLE_SERIALIZE, &args));
    char *copy = sx_alloc(args.size + 1, 1);
    if (copy != NULL) {
        memcpy(copy, args.bytes, args.size);
    }
    if (args.destroy != NULL) {
        args.destroy(args.backing);
    }
    if (copy == NULL) {
        return sx_no_memory("for a program of %zu bytes", args.size);
    }
    *out_bytes = copy;
    *out_size = args.size;
    return SX_OK;
}

/* ---- Keys ---- */

/* XLA compiles for the processor's model and features. */
static void put_processor(sx_buf *text)
{
    char *data = NULL;
    size_t size = 0;
    sx_status status = sx_file_read("/proc/cpuinfo", MAX_CPU_TEXT << 6, &data, &size);
    static const char *const fields[] = {"model name", "flags", "Features", "CPU part"};
    for (size_t i = 0; status == SX_OK && i < sizeof(fields) / sizeof(fields[0]); i++) {
        const char *line = strstr(data, fields[i]);
        if (line != NULL) {
            sx_buf_append(text, line, strcspn(line, "\n"));
        }
    }
    sx_status_free(status);
    sx_free(data);
}

sx_status sx_pjrt_put_plugin(const sx_pjrt_plugin *plugin, sx_buf *text)
{
    static const char *const variables[] = {"XLA_FLAGS", "LIBTPU_INIT_ARGS"};
    struct stat info;
    if (stat(plugin->path, &info) != 0) {
        return sx_errno_status(errno, "look at", plugin->path);
    }
    sx_buf_printf(text, "%s\n%lld %lld.%09ld\n%d.%d\n", plugin->path, (long long)info.st_size,
                  (long long)info.st_mtim.tv_sec, info.st_mtim.tv_nsec, plugin->api->major,
                  plugin->api->minor);
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *value = getenv(variables[i]);
        sx_buf_printf(text, "%s=%s\n", variables[i], value == NULL ? "" : value);
    }
    if (plugin->kind == SX_PJRT_CPU) {
        put_processor(text);
    }
    return sx_buf_status(text);
}

static sx_status describe(const sx_pjrt_client *c, sx_buf *text)
{
    char kind[256];
    SX_TRY(sx_pjrt_device_kind(c, 0, kind, sizeof(kind)));
    sx_buf_printf(text, "%s\n%s\n%s\n", c->platform, c->version, kind);
    if (c->options.processes != NULL) { /* a compiled program may be for its process */
        sx_buf_printf(text, "process %d of %d\n", c->options.processes->index,
                      c->options.processes->count);
    }
    return sx_pjrt_put_plugin(c->plugin, text);
}

static sx_status key_of(const sx_pjrt_client *c, const sx_pjrt_compile_request *r,
                        sx_pjrt_cache_key *out)
{
    sx_buf place, options;
    sx_buf_init(&place, SX_PJRT_PLUGIN_TEXT);
    sx_buf_init(&options, 1 << 20);
    sx_pjrt_put_compile_options(&options, r->replicas, r->ids, &c->xla, r->unfused);
    sx_status status = describe(c, &place);
    status = status != SX_OK ? status : sx_buf_status(&options);
    if (status == SX_OK) {
        const sx_bytes parts[] = {{sx_buf_text(&place), place.size},
                                  {sx_buf_text(&options), options.size},
                                  {r->text, r->size}};
        status = sx_pjrt_cache_key_of(parts, 3, out);
    }
    sx_buf_deinit(&place);
    sx_buf_deinit(&options);
    return status;
}

/* ---- Compile cache ---- */

static sx_status load_entry(const sx_pjrt_client *c, const sx_pjrt_cache_entry *entry,
                            sx_pjrt_compiled *out)
{
    sx_pjrt_deserialize args =
        SX_PJRT_ARGS(deserialize, .client = c->handle, .bytes = entry->bytes, .size = entry->size);
    SX_TRY(sx_pjrt_call(c->plugin, SX_PJRT_DESERIALIZE_AND_LOAD, &args));
    *out = (sx_pjrt_compiled){.loaded = args.loaded, .from_cache = true, .facts = entry->facts};
    return SX_OK;
}

/* Loads a program from the cache; false if it is not there or unusable. */
static bool load(const sx_pjrt_client *c, const char *dir, const sx_pjrt_cache_key *key,
                 sx_pjrt_compiled *out)
{
    sx_pjrt_cache_entry entry = {0};
    sx_status status = sx_pjrt_cache_read(dir, key, &entry);
    if (status == SX_OK) {
        status = load_entry(c, &entry, out);
        if (status != SX_OK) {
            sx_pjrt_cache_remove(dir, key);
        }
    }
    if (status != SX_OK && sx_status_code(status) != SX_NOT_FOUND) {
        sx_log(SX_LOG_DEBUG, "compile cache: %s; compiling again", sx_status_message(status));
    }
    bool found = status == SX_OK;
    sx_free(entry.bytes);
    sx_status_free(status);
    return found;
}

static sx_status keep(const sx_pjrt_client *c, const char *dir, const sx_pjrt_cache_key *key,
                      void *executable, const sx_pjrt_facts *facts)
{
    sx_pjrt_cache_entry entry = {.facts = *facts};
    SX_TRY(sx_pjrt_serialize(c->plugin, executable, &entry.bytes, &entry.size));
    sx_status status = sx_pjrt_cache_write(dir, key, &entry, SX_PJRT_CACHE_BYTES);
    sx_free(entry.bytes);
    return status;
}

/* Warns, because every run will compile again, for minutes on a TPU; but not if the plugin cannot
 * serialize programs. */
static void warn(sx_status status)
{
    if (status != SX_OK) {
        bool usual = sx_status_code(status) == SX_UNIMPLEMENTED;
        sx_log(usual ? SX_LOG_DEBUG : SX_LOG_WARN, "compile cache: cannot store the program: %s",
               sx_status_message(status));
        sx_status_free(status);
    }
}

/* Compiles, and stores the result unless `key` is NULL. */
static sx_status compile(const sx_pjrt_client *c, const sx_pjrt_compile_request *r,
                         const sx_pjrt_cache_key *key, sx_pjrt_compiled *out)
{
    void *executable = NULL;
    sx_pjrt_compiled made = {0};
    SX_TRY(sx_pjrt_compile(c, r->text, r->size, r->replicas, r->ids, r->unfused, &made.loaded));
    sx_status status = sx_pjrt_executable_of(c, made.loaded, &executable);
    if (status != SX_OK) {
        sx_pjrt_end(c->plugin, SX_PJRT_LOADED_DESTROY, made.loaded);
        return status;
    }
    made.facts = sx_pjrt_measure(c->plugin, executable);
    if (key != NULL) {
        warn(keep(c, r->cache_dir, key, executable, &made.facts));
    }
    sx_pjrt_end(c->plugin, SX_PJRT_EXECUTABLE_DESTROY, executable);
    *out = made;
    return SX_OK;
}

sx_status sx_pjrt_compile_program(const sx_pjrt_client *c, const sx_pjrt_compile_request *request,
                                  sx_pjrt_compiled *out)
{
    sx_pjrt_cache_key key;
    if (request->cache_dir == NULL) {
        return compile(c, request, NULL, out);
    }
    sx_status status = key_of(c, request, &key);
    if (status != SX_OK) {
        warn(status);
        return compile(c, request, NULL, out);
    }
    return load(c, request->cache_dir, &key, out) ? SX_OK : compile(c, request, &key, out);
}
