/* See record.h. */
#include "backends/pjrt/record.h"

#include <stdio.h>
#include <string.h>

#include "backends/pjrt/hlo_names.h"
#include "backends/pjrt/profiler.h"
#include "backends/pjrt/xspace.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"

enum { MAX_NAMES = 1 << 18, MAX_NAME = 1 << 12 };
static const size_t MAX_SPACE = (size_t)1 << 30;

/* ---- Names ---- */

static bool note_name(void *user, sx_bytes name, sx_bytes op_name)
{
    sx_pjrt_platform *p = user;
    if (name.size == 0 || op_name.size == 0 || name.size > MAX_NAME || op_name.size > MAX_NAME) {
        return true;
    }
    char *key = sx_arena_printf(&p->names_arena, "%.*s", (int)name.size, (const char *)name.data);
    char *node =
        sx_arena_printf(&p->names_arena, "%.*s", (int)op_name.size, (const char *)op_name.data);
    if (key == NULL || node == NULL || p->names.count == MAX_NAMES) {
        return false;
    }
    sx_status status = sx_map_has(&p->names, key) ? SX_OK : sx_map_put(&p->names, key, node);
    const bool good = status == SX_OK;
    sx_status_free(status);
    return good;
}

void sx_pjrt_note_names(sx_pjrt_platform *p, void *executable)
{
    const sx_pjrt_plugin *plugin = p->client->plugin;
    sx_pjrt_program_text text = {.struct_size = SX_PJRT_INNER_SIZE(plugin, program_text)};
    sx_pjrt_optimized args = SX_PJRT_ARGS(optimized, .executable = executable, .program = &text);
    sx_status status = sx_pjrt_call(plugin, SX_PJRT_OPTIMIZED_PROGRAM, &args);
    char *code = status == SX_OK ? sx_alloc(text.code_size + 1, 1) : NULL;
    if (code != NULL) {
        text.code = code;
        status = sx_pjrt_call(plugin, SX_PJRT_OPTIMIZED_PROGRAM, &args);
        if (status == SX_OK) {
            pthread_mutex_lock(&p->lock);
            status = sx_hlo_names_visit(code, text.code_size, note_name, p);
            pthread_mutex_unlock(&p->lock);
        }
    }
    sx_free(code);
    sx_status_free(status);
}

void sx_pjrt_forget_names(sx_pjrt_platform *p)
{
    sx_map_deinit(&p->names);
    sx_arena_deinit(&p->names_arena);
}

/* ---- Recording ---- */

sx_status sx_pjrt_record(sx_platform *head)
{
    sx_pjrt_platform *p = (sx_pjrt_platform *)head;
    if (p->profiler != NULL) {
        return sx_error(SX_FAILED_PRECONDITION, "the devices are recorded already");
    }
    p->recorded_ns = sx_now_ns();
    return sx_pjrt_profiler_start(p->client->plugin, &p->profiler);
}

typedef struct visiting {
    sx_pjrt_platform *p;
    int64_t epoch_ns; /* since 1970, of sx_now_ns() 0 */
    bool on_devices;  /* there are planes of devices: what the host says of the same is left out */
    sx_device_op_visit *visit;
    void *user;
} visiting;

static bool begins_with(sx_bytes text, const char *prefix)
{
    const size_t n = strlen(prefix);
    return text.size >= n && memcmp(text.data, prefix, n) == 0;
}

static void copy_text(char *out, size_t capacity, sx_bytes text)
{
    snprintf(out, capacity, "%.*s", (int)SX_MIN(text.size, capacity - 1), (const char *)text.data);
}

static bool is_of_device(const sx_xspace_event *e)
{
    return begins_with(e->plane, "/device:");
}

/* The compiler's name of what an event computed: what it says itself; on a TPU's line of operations
 * the beginning of its text, "%fusion.3 = …". False: it computed none. */
static bool name_of(const sx_xspace_event *e, char name[MAX_NAME])
{
    const bool is_line_of_ops = begins_with(e->line, "XLA Ops");
    const sx_bytes text = e->op.size > 0 ? e->op : is_line_of_ops ? e->name : (sx_bytes){"", 0};
    copy_text(name, MAX_NAME, text);
    if (name[0] == '%') {
        memmove(name, name + 1, strlen(name));
    }
    name[strcspn(name, " =")] = '\0';
    return name[0] != '\0';
}

/* An operation that only encloses others, which have events of their own. */
static bool encloses(const char *name)
{
    static const char *const kinds[] = {"while", "call", "conditional"};
    for (size_t i = 0; i < SX_COUNT(kinds); i++) {
        const size_t n = strlen(kinds[i]);
        if (strncmp(name, kinds[i], n) == 0 && (name[n] == '\0' || name[n] == '.')) {
            return true;
        }
    }
    return false;
}

/* Plugins' times are since 1970, or since the profiler's start. */
static int64_t start_of(const visiting *v, const sx_xspace_event *e)
{
    return e->start_ns >= v->epoch_ns ? e->start_ns - v->epoch_ns : v->p->recorded_ns + e->start_ns;
}

static void find_devices(void *user, const sx_xspace_event *e)
{
    visiting *v = user;
    char name[MAX_NAME];
    v->on_devices = v->on_devices || (is_of_device(e) && name_of(e, name));
}

static void visit_event(void *user, const sx_xspace_event *e)
{
    const visiting *v = user;
    char name[MAX_NAME], node[MAX_NAME], line[256];
    if (is_of_device(e) != v->on_devices || !name_of(e, name) || encloses(name)) {
        return;
    }
    const char *noted = sx_map_get(&v->p->names, name);
    copy_text(node, sizeof(node), e->op_name);
    node[strcspn(node, ":")] = '\0'; /* "conv2d/relu:Relu" */
    snprintf(line, sizeof(line), "%.*s %.*s", (int)SX_MIN(e->plane.size, (size_t)100),
             (const char *)e->plane.data, (int)SX_MIN(e->line.size, (size_t)100),
             (const char *)e->line.data);
    v->visit(v->user, &(sx_device_op){.name = name,
                                      .node = node[0] != '\0' ? node
                                              : noted != NULL ? noted
                                                              : "",
                                      .line = line,
                                      .start_ns = start_of(v, e),
                                      .seconds = e->seconds});
}

sx_status sx_pjrt_recorded(sx_platform *head, sx_device_op_visit *visit, void *user)
{
    sx_pjrt_platform *p = (sx_pjrt_platform *)head;
    visiting v = {.p = p,
                  .epoch_ns = (int64_t)(sx_wall_seconds() * 1e9) - sx_now_ns(),
                  .visit = visit,
                  .user = user};
    sx_buf space;
    sx_buf_init(&space, MAX_SPACE);
    sx_status status = sx_pjrt_profiler_stop(p->profiler, &space);
    p->profiler = NULL;
    if (status == SX_OK) {
        status = sx_xspace_read(sx_buf_text(&space), space.size, find_devices, &v);
    }
    if (status == SX_OK) {
        status = sx_xspace_read(sx_buf_text(&space), space.size, visit_event, &v);
    }
    sx_buf_deinit(&space);
    return status;
}
