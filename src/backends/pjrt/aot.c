/* See aot.h. */
#include "backends/pjrt/aot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/pjrt/aot_layers.h"
#include "backends/pjrt/compile.h"
#include "backends/pjrt/compile_options.h"
#include "backends/pjrt/module.h"
#include "base/checked.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/memory.h"

enum { COMPILE_SECONDS = 4 * 3600, MAX_DEVICES = 16384, FORMAT = 1 };
static const size_t MAX_EXECUTABLE = (size_t)1 << 30;

/* The state of the child process. */
typedef struct aot {
    const sx_aot_request *r;
    const sx_pjrt_plugin *plugin;
    void *topology;         /* for a TPU target */
    sx_pjrt_client *client; /* for pjrt-cpu */
    void *executable;
    int n; /* devices */
    int *ids;
    sx_pjrt_module program;
    sx_arena arena; /* of: */
    sx_pjrt_settings xla;
    sx_buf options;
    sx_pjrt_cache_key key;
    sx_aot_result result;
} aot;

int64_t sx_aot_total_bytes(const sx_aot_result *r)
{
    const sx_pjrt_facts *f = &r->facts;
    return f->argument_bytes + f->output_bytes - f->alias_bytes + f->temporary_bytes +
           f->code_bytes;
}

/* ---- The devices ---- */

/* Without these, libtpu queries the cloud's metadata server and locks out other processes. */
static void set_environment(const sx_target *t)
{
    setenv("TPU_SKIP_MDS_QUERY", "1", 1);
    setenv("TPU_WORKER_HOSTNAMES", "localhost", 1);
    setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1", 1);
    if (t->tpu != NULL) {
        setenv("TPU_ACCELERATOR_TYPE", t->type, 1);
    }
}

static int64_t memory_limit(const aot *a, void *description)
{
    sx_pjrt_properties args = SX_PJRT_ARGS(properties, .object = description);
    sx_status status = sx_pjrt_call(a->plugin, SX_PJRT_DESCRIPTION_ATTRIBUTES, &args);
    int64_t limit = 0;
    for (size_t i = 0; status == SX_OK && i < args.count; i++) {
        const sx_pjrt_named *row = &args.items[i];
        limit =
            sx_pjrt_is_named(row, "device_memory_bytes_limit", SX_PJRT_INT64) ? row->int64 : limit;
    }
    sx_status_free(status);
    return limit;
}

static sx_status describe_device(aot *a, void *description, int i)
{
    sx_pjrt_int id = SX_PJRT_ARGS(int, .object = description);
    sx_pjrt_int host = SX_PJRT_ARGS(int, .object = description);
    sx_aot_result *r = &a->result;
    SX_TRY(sx_pjrt_call(a->plugin, SX_PJRT_DESCRIPTION_ID, &id));
    SX_TRY(sx_pjrt_call(a->plugin, SX_PJRT_DESCRIPTION_PROCESS, &host));
    a->ids[i] = id.value;
    if (host.value >= 0 && host.value < SX_AOT_HOSTS) {
        r->host_devices[host.value]++;
    }
    r->hosts = SX_MAX(r->hosts, host.value + 1);
    return SX_OK;
}

static sx_status describe_topology(aot *a)
{
    sx_pjrt_list list = SX_PJRT_ARGS(list, .object = a->topology);
    SX_TRY(sx_pjrt_call(a->plugin, SX_PJRT_TOPOLOGY_DEVICES, &list));
    if (list.count == 0 || list.count > MAX_DEVICES) {
        return sx_error(SX_UNIMPLEMENTED, "%s: the topology has %zu devices",
                        a->r->target->topology, list.count);
    }
    a->n = a->result.devices = (int)list.count;
    a->ids = sx_alloc(list.count, sizeof(*a->ids));
    if (a->ids == NULL) {
        return sx_no_memory("for the devices");
    }
    for (int i = 0; i < a->n; i++) {
        SX_TRY(describe_device(a, list.items[i], i));
    }
    a->result.hbm_bytes = memory_limit(a, list.items[0]);
    return sx_pjrt_text_of(a->plugin, SX_PJRT_DESCRIPTION_KIND, list.items[0], a->result.kind,
                           sizeof(a->result.kind));
}

static sx_status open_topology(aot *a)
{
    const sx_target *t = a->r->target;
    int64_t host[SX_TPU_AXES] = {t->host_chips[0], t->host_chips[1], t->host_chips[2]};
    const char *cores = t->tpu->megacore ? "megacore" : "default";
    const sx_pjrt_named options[] = {
        {.struct_size = sizeof(options[0]),
         .name = "chips_per_host_bounds",
         .name_size = strlen("chips_per_host_bounds"),
         .type = SX_PJRT_INT64_LIST,
         .int64_list = host,
         .value_size = SX_TPU_AXES},
        {.struct_size = sizeof(options[0]),
         .name = "chip_config_name",
         .name_size = strlen("chip_config_name"),
         .type = SX_PJRT_STRING,
         .string = cores,
         .value_size = strlen(cores)},
    };
    sx_pjrt_topology_create args =
        SX_PJRT_ARGS(topology_create, .name = t->topology, .name_size = strlen(t->topology),
                     .options = options, .n_options = SX_COUNT(options));
    sx_status status = sx_pjrt_call(a->plugin, SX_PJRT_TOPOLOGY_CREATE, &args);
    if (status != SX_OK) {
        sx_status refused =
            sx_error(SX_UNIMPLEMENTED,
                     "%s cannot compile for %s (%s). This requires libtpu; try a current type such "
                     "as v5litepod-4 or v6e-4, or an older libtpu that supports %s",
                     a->plugin->path, t->topology, sx_status_message(status), t->tpu->name);
        sx_status_free(status);
        return refused;
    }
    a->topology = args.topology;
    return describe_topology(a);
}

/* 0 = unknown. */
static int64_t limit_here(const aot *a)
{
    sx_pjrt_device_memory args = SX_PJRT_ARGS(device_memory, .device = a->client->devices[0]);
    sx_status status = sx_pjrt_call(a->plugin, SX_PJRT_DEVICE_MEMORY, &args);
    int64_t limit = status == SX_OK && args.has_limit ? args.limit : 0;
    sx_status_free(status);
    return limit;
}

static sx_status open_cpu(aot *a)
{
    a->n = a->result.devices = a->r->target->devices;
    const sx_pjrt_options options = {.virtual_devices = a->n, .xla_options = a->r->xla_options};
    SX_TRY(sx_pjrt_client_open(a->plugin, &options, &a->client), "%s", a->plugin->path);
    if (strcmp(a->client->platform, "cpu") != 0) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "%s is a plugin for %s; pjrt-cpu requires XLA's CPU plugin",
                        a->plugin->path, a->client->platform);
    }
    a->ids = sx_alloc((size_t)a->n, sizeof(*a->ids));
    if (a->ids == NULL) {
        return sx_no_memory("for the devices");
    }
    for (int i = 0; i < a->n; i++) {
        SX_TRY(sx_pjrt_device_id(a->client, i, &a->ids[i]));
    }
    a->result.hosts = 1;
    a->result.host_devices[0] = a->n;
    a->result.hbm_bytes = limit_here(a);
    return sx_pjrt_device_kind(a->client, 0, a->result.kind, sizeof(a->result.kind));
}

static sx_status open_target(aot *a)
{
    char path[SX_PJRT_PATH_BYTES];
    const sx_target *t = a->r->target;
    sx_pjrt_wish wish = a->r->wish;
    wish.name = t->tpu != NULL ? "tpu" : "cpu";
    SX_TRY(sx_pjrt_find(&wish, path));
    set_environment(t);
    SX_TRY(sx_pjrt_load(path, &a->plugin));
    snprintf(a->result.plugin, sizeof(a->result.plugin), "PJRT %d.%d", a->plugin->api->major,
             a->plugin->api->minor);
    return t->tpu != NULL ? open_topology(a) : open_cpu(a);
}

/* ---- The program ---- */

static sx_status write_program(aot *a)
{
    const sx_pjrt_module_options how = {.batch = a->r->batch,
                                        .replicas = a->n,
                                        .steps = a->r->steps,
                                        .ok_output = a->r->ok_output,
                                        .hlo = a->r->hlo};
    SX_TRY(sx_pjrt_module_create(a->r->graph, &how, &a->program));
    SX_TRY(sx_pjrt_read_xla_settings(a->r->xla_options, &a->arena, &a->xla));
    sx_pjrt_put_compile_options(&a->options, a->n, a->ids, &a->xla, false);
    SX_TRY(sx_buf_status(&a->options));
    if (a->r->dump_dir == NULL) {
        return SX_OK;
    }
    char path[SX_PJRT_PATH_BYTES];
    snprintf(path, sizeof(path), "%s/program-%s-%" PRId64 ".mlir", a->r->dump_dir,
             a->r->target->type, a->r->batch);
    return sx_pjrt_module_save(&a->program, path);
}

static sx_status make_key(aot *a)
{
    sx_buf place;
    sx_buf_init(&place, SX_PJRT_PLUGIN_TEXT);
    sx_buf_printf(&place, "aot %d %zu\n%s\n%s\n", FORMAT, sizeof(a->result), a->r->target->topology,
                  a->r->target->type);
    sx_status status = sx_pjrt_put_plugin(a->plugin, &place);
    const sx_bytes parts[] = {{sx_buf_text(&place), place.size},
                              {sx_buf_text(&a->options), a->options.size},
                              {a->program.text, a->program.size}};
    status = status != SX_OK ? status : sx_pjrt_cache_key_of(parts, 3, &a->key);
    sx_buf_deinit(&place);
    return status;
}

static bool load_cached(aot *a)
{
    sx_pjrt_cache_entry entry = {0};
    if (a->r->cache_dir == NULL || a->r->keep) {
        return false;
    }
    sx_status status = sx_pjrt_cache_read(a->r->cache_dir, &a->key, &entry);
    bool found = status == SX_OK && entry.size == sizeof(a->result);
    if (found) {
        memcpy(&a->result, entry.bytes, sizeof(a->result));
    }
    sx_free(entry.bytes);
    sx_status_free(status);
    return found;
}

static void keep_cached(const aot *a)
{
    char copy[sizeof(a->result)];
    memcpy(copy, &a->result, sizeof(copy));
    const sx_pjrt_cache_entry entry = {.bytes = copy, .size = sizeof(copy)};
    if (a->r->cache_dir != NULL) {
        sx_status_free(sx_pjrt_cache_write(a->r->cache_dir, &a->key, &entry, SX_PJRT_CACHE_BYTES));
    }
}

/* ---- Compiling ---- */

static sx_status compile_ahead(aot *a)
{
    sx_pjrt_program_text text = {.struct_size = SX_PJRT_INNER_SIZE(a->plugin, program_text),
                                 .code = a->program.text,
                                 .code_size = a->program.size,
                                 .format = "mlir",
                                 .format_size = 4};
    sx_pjrt_compile_ahead args =
        SX_PJRT_ARGS(compile_ahead, .topology = a->topology, .program = &text,
                     .options = sx_buf_text(&a->options), .options_size = a->options.size);
    SX_TRY(sx_pjrt_call(a->plugin, SX_PJRT_COMPILE, &args));
    a->executable = args.executable;
    return SX_OK;
}

static sx_status compile_here(aot *a)
{
    void *loaded = NULL;
    SX_TRY(
        sx_pjrt_compile(a->client, a->program.text, a->program.size, a->n, a->ids, false, &loaded));
    return sx_pjrt_executable_of(a->client, loaded, &a->executable);
}

static sx_status read_layouts(aot *a)
{
    sx_pjrt_program_text text = {.struct_size = SX_PJRT_INNER_SIZE(a->plugin, program_text)};
    sx_pjrt_optimized args = SX_PJRT_ARGS(optimized, .executable = a->executable, .program = &text);
    SX_TRY(sx_pjrt_call(a->plugin, SX_PJRT_OPTIMIZED_PROGRAM, &args));
    char *code = sx_alloc(text.code_size + 1, 1);
    if (code == NULL) {
        return sx_no_memory("for the optimized program");
    }
    text.code = code;
    sx_status status = sx_pjrt_call(a->plugin, SX_PJRT_OPTIMIZED_PROGRAM, &args);
    if (status == SX_OK) {
        status = sx_aot_sum_layouts(a->r->graph, code, text.code_size, &a->result);
    }
    sx_free(code);
    return status;
}

/* Gets memory by layer from the optimized program, if the plugin provides it. */
static void inspect(aot *a)
{
    a->result.facts = sx_pjrt_measure(a->plugin, a->executable);
    sx_status status = read_layouts(a);
    a->result.has_layouts = status == SX_OK;
    sx_status_free(status);
}

static sx_status serialize(aot *a, sx_buf *answer)
{
    char *bytes = NULL;
    size_t size = 0;
    sx_status status = sx_pjrt_serialize(a->plugin, a->executable, &bytes, &size);
    if (status == SX_OK) {
        a->result.executable_bytes = (int64_t)size;
    } else if (!a->r->keep) {
        sx_status_free(status);
        status = SX_OK;
    }
    sx_buf_append(answer, &a->result, sizeof(a->result));
    if (a->r->keep && status == SX_OK) {
        sx_buf_append(answer, bytes, size);
    }
    sx_free(bytes);
    return status;
}

static sx_status compile(aot *a, sx_buf *answer)
{
    SX_TRY(open_target(a));
    SX_TRY(write_program(a));
    SX_TRY(make_key(a));
    if (load_cached(a)) {
        sx_buf_append(answer, &a->result, sizeof(a->result));
        return SX_OK;
    }
    int64_t start = sx_now_ns();
    SX_TRY(sx_pjrt_locate(a->r->graph, a->topology != NULL ? compile_ahead(a) : compile_here(a),
                          NULL));
    a->result.compile_seconds = (double)(sx_now_ns() - start) * 1e-9;
    a->result.batch = a->r->batch;
    inspect(a);
    SX_TRY(serialize(a, answer));
    keep_cached(a);
    return SX_OK;
}

/* Runs in the child, which exits afterwards, so nothing is freed. */
static sx_status work(void *user, sx_buf *answer)
{
    aot a = {.r = user};
    sx_arena_init(&a.arena, 0);
    sx_buf_init(&a.options, 1 << 20);
    return compile(&a, answer);
}

sx_status sx_aot_compile(const sx_aot_request *request, sx_aot_result *out, char **out_executable,
                         size_t *out_size)
{
    sx_buf answer;
    sx_buf_init(&answer, sizeof(*out) + MAX_EXECUTABLE);
    sx_status status = sx_run_in_child(request->target->tpu != NULL ? "libtpu" : "the CPU plugin",
                                       COMPILE_SECONDS, work, (void *)(uintptr_t)request, &answer);
    if (status == SX_OK && answer.size < sizeof(*out)) {
        status = sx_error(SX_INTERNAL, "the compile process returned %zu bytes, expected %zu",
                          answer.size, sizeof(*out));
    }
    if (status == SX_OK && out_executable != NULL) {
        size_t size = answer.size - sizeof(*out);
        *out_executable = sx_alloc(size + 1, 1);
        *out_size = size;
        if (*out_executable == NULL) {
            status = sx_no_memory("for the executable");
        } else {
            memcpy(*out_executable, answer.data + sizeof(*out), size);
        }
    }
    if (status == SX_OK) {
        memcpy(out, answer.data, sizeof(*out));
    }
    sx_buf_deinit(&answer);
    return status;
}
