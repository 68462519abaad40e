/* See function_programs.h. */
#include "runtime/function_programs.h"

#include <string.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/ram.h"
#include "graph/builder.h"
#include "runtime/function_frame.h"

enum { MAX_TRIES = 2 }; /* of making room: half of what is kept, then all */

static sx_status no_memory(void)
{
    return sx_no_memory("running a function");
}

size_t sx_function_known_bytes(const sx_tensor *a)
{
    return a->data == NULL                ? 0
           : a->type.dtype == SX_RESOURCE ? strlen(a->data) + 1
                                          : (size_t)sx_type_bytes(&a->type);
}

/* ---- Life ---- */

static void destroy_program(void *user)
{
    sx_function_program *p = user;
    for (int k = 0; p->steps != NULL && k < p->spec->n_steps; k++) {
        for (int i = 0; i < p->steps[k].n_executables; i++) {
            sx_built_release(p->steps[k].executables[i]);
        }
        sx_free(p->steps[k].shaping[0]);
        sx_free(p->steps[k].shaping[1]);
    }
    sx_free(p->steps);
    sx_specialized_destroy(p->spec);
    sx_arena_deinit(&p->body);
    pthread_mutex_destroy(&p->mutex);
    sx_free(p);
}

static void destroy_executable(void *user)
{
    sx_executable_release(user);
}

sx_status sx_function_programs_init(sx_function_programs *f, const sx_library *library,
                                    sx_platform *platform, const sx_specialize_limits *limits,
                                    int64_t max_programs, int64_t max_executables,
                                    sx_budget *memory)
{
    *f = (sx_function_programs){
        .library = library, .platform = platform, .limits = *limits, .memory = memory};
    SX_TRY(sx_function_frames_init(f, max_programs));
    SX_TRY(sx_build_cache_create(
        &(sx_build_cache_options){.max_entries = max_programs, .destroy = destroy_program},
        &f->programs));
    return sx_build_cache_create(
        &(sx_build_cache_options){.max_entries = max_executables > 0 ? max_executables : 1024,
                                  .destroy = destroy_executable},
        &f->executables);
}

void sx_function_programs_deinit(sx_function_programs *f)
{
    if (f->platform == NULL) {
        return; /* zeros */
    }
    sx_function_frames_deinit(f);        /* they refer to programs */
    sx_build_cache_destroy(f->programs); /* they refer to executables */
    sx_build_cache_destroy(f->executables);
}

bool sx_function_programs_make_room(sx_function_programs *f, sx_status status, int *tries)
{
    sx_build_cache_stats programs, executables;
    if (sx_status_code(status) != SX_RESOURCE_EXHAUSTED || !sx_budget_refused(f->memory)) {
        return false;
    }
    const sx_budget *by = atomic_load(&f->memory->refused_by);
    if (by == NULL || atomic_load(&f->memory->refused_bytes) > by->limit_bytes) {
        return false; /* too large for an empty budget */
    }
    sx_function_frames_clear(f);
    if ((*tries)++ == MAX_TRIES) {
        return false;
    }
    sx_build_cache_get_stats(f->programs, &programs);
    sx_build_cache_get_stats(f->executables, &executables);
    const bool all = *tries == MAX_TRIES;
    sx_build_cache_evict(f->programs, all ? programs.entries : (programs.entries + 1) / 2);
    sx_build_cache_evict(f->executables, all ? executables.entries : (executables.entries + 1) / 2);
    sx_status_free(status);
    return true;
}

/* Whether N is in a type or a shape, of a region too. */
static bool graph_has_batch(const sx_graph *g)
{
    bool any = false;
    for (int i = 1; i < g->n_values && !any; i++) {
        any = sx_type_has_batch(&g->values[i].type);
    }
    for (int k = 0; k < g->n_nodes && !any; k++) {
        const sx_node *n = &g->nodes[k];
        for (int i = 0; i < n->op->n_attrs && !any; i++) {
            const void *attr = (const char *)n->attrs + n->op->attrs[i].offset;
            const sx_ints *shape = attr;
            if (n->op->attrs[i].kind == SX_ATTR_BODY) {
                any = graph_has_batch(sx_node_body(n, i));
            }
            for (int d = 0; n->op->attrs[i].kind == SX_ATTR_SHAPE && d < shape->n; d++) {
                any = any || sx_dim_is_batch(shape->v[d]);
            }
        }
    }
    return any;
}

/* ---- Programs ---- */

typedef struct build_program {
    const sx_function_programs *f;
    const sx_graph *body;
    const sx_binding *binding;
    const sx_cancel *cancel;
} build_program;

static sx_status learn_shaping(const sx_function_programs *f, const sx_graph *body, bool **out)
{
    *out = sx_alloc((size_t)body->n_args + 1, sizeof(bool));
    return *out == NULL ? no_memory() : sx_shaping_args(f->library, body, *out);
}

static sx_status build(void *user, void **out_value, int64_t *out_bytes)
{
    const build_program *b = user;
    sx_function_program *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return no_memory();
    }
    const sx_graph *body = b->body;
    bool lasts = false;
    for (int i = 0; i < b->f->library->n_functions && !lasts; i++) {
        lasts = b->f->library->functions[i].body == body;
    }
    sx_specialize_limits limits = b->f->limits;
    limits.cancel = b->cancel;
    limits.memory = b->f->memory;
    sx_arena_init(&p->body, 0);
    p->body.budget = b->f->memory;
    if (!lasts) {
        body = sx_graph_copy(&p->body, body);
    }
    sx_status status = body == NULL
                           ? sx_budget_error(b->f->memory)
                           : sx_specialize(b->f->library, body, b->binding, &limits, &p->spec);
    if (status != SX_OK) {
        sx_arena_deinit(&p->body);
        sx_free(p);
        return status;
    }
    pthread_mutex_init(&p->mutex, NULL);
    p->steps = sx_alloc((size_t)p->spec->n_steps + 1, sizeof(*p->steps));
    status = p->steps == NULL ? no_memory() : SX_OK;
    for (int k = 0; k < p->spec->n_steps && status == SX_OK; k++) {
        const sx_step *step = &p->spec->steps[k];
        if (step->kind == SX_STEP_LATE) {
            status = learn_shaping(b->f, step->graph, &p->steps[k].shaping[0]);
        } else if (step->kind != SX_STEP_DEVICE && step->kind != SX_STEP_HOST) {
            const int n_regions = step->kind == SX_STEP_MAP ? 1 : 2;
            for (int i = 0; i < n_regions && status == SX_OK; i++) {
                const sx_graph *region = sx_node_body(step->node, i);
                p->steps[k].has_batch[i] = graph_has_batch(region);
                status = learn_shaping(b->f, region, &p->steps[k].shaping[i]);
            }
        }
    }
    size_t bytes = sizeof(*p) + p->spec->arena.used_bytes;
    for (int i = 0; i < p->spec->n_graphs; i++) {
        bytes += p->spec->graphs[i]->arena.used_bytes + p->spec->graphs[i]->array_bytes;
    }
    if (status != SX_OK) {
        destroy_program(p);
        return status;
    }
    *out_value = p;
    *out_bytes = (int64_t)bytes;
    return SX_OK;
}

/* Appends to the key, which is NULL while its size is counted. */
static void put(char *key, size_t *size, const void *data, size_t bytes)
{
    if (key != NULL && bytes > 0) {
        memcpy(key + *size, data, bytes);
    }
    *size += bytes;
}

static size_t put_key(const sx_digest *digest, const sx_binding *binding, char *key)
{
    size_t size = 0;
    put(key, &size, digest, sizeof(*digest));
    const int64_t batch[2] = {binding->knows_batch, binding->batch};
    put(key, &size, batch, sizeof(batch));
    for (int i = 0; i < binding->n_args; i++) {
        const sx_tensor *a = &binding->args[i];
        const int32_t type[3] = {(int32_t)a->type.dtype, a->type.rank, a->data != NULL};
        put(key, &size, type, sizeof(type));
        put(key, &size, a->type.dims, (size_t)a->type.rank * sizeof(a->type.dims[0]));
        put(key, &size, a->data, sx_function_known_bytes(a));
    }
    return size;
}

sx_status sx_function_program_get(sx_function_programs *f, const sx_function_body *body,
                                  const sx_binding *binding, const sx_cancel *cancel,
                                  sx_built **out)
{
    char small[1024]; /* late calls, too, are found without an allocation */
    const size_t size = put_key(body->digest, binding, NULL);
    char *key = size <= sizeof(small) ? small : sx_alloc(size, 1);
    if (key == NULL) {
        return no_memory();
    }
    put_key(body->digest, binding, key);
    build_program b = {.f = f, .body = body->graph, .binding = binding, .cancel = cancel};
    sx_status status = SX_OK;
    int tries = 0;
    do {
        status = sx_build_cache_get(f->programs, key, size, build, &b, cancel, out);
    } while (sx_function_programs_make_room(f, status, &tries));
    if (key != small) {
        sx_free(key);
    }
    return status;
}

/* ---- Executables ---- */

typedef struct build_executable {
    const sx_function_programs *f;
    const sx_graph *graph;
    int64_t batch;
    const sx_cancel *cancel;
} build_executable;

static sx_status compile(void *user, void **out_value, int64_t *out_bytes)
{
    const build_executable *b = user;
    sx_executable *e = NULL;
    SX_TRY(sx_compile(b->f->platform, b->graph,
                      &(sx_compile_options){.batch = b->batch,
                                            .shards = 1,
                                            .frozen = b->f->frozen,
                                            .max_trips = b->f->max_trips,
                                            .cancel = b->cancel,
                                            .memory = b->f->memory},
                      &e));
    *out_value = e;
    *out_bytes = 1;
    return SX_OK;
}

sx_status sx_function_executable_get(sx_function_programs *f, sx_function_program *p, int k,
                                     int64_t batch, const sx_cancel *cancel, sx_built **out)
{
    const sx_graph *g = p->spec->steps[k].graph;
    sx_function_step *s = &p->steps[k];
    batch = graph_has_batch(g) ? batch : 1;
    pthread_mutex_lock(&p->mutex);
    sx_built *found = NULL;
    for (int i = 0; i < s->n_executables && found == NULL; i++) {
        found = s->batches[i] == batch ? sx_built_retain(s->executables[i]) : NULL;
    }
    pthread_mutex_unlock(&p->mutex);
    if (found != NULL) {
        *out = found;
        return SX_OK;
    }
    struct {
        sx_digest digest;
        int64_t batch;
    } key = {p->spec->steps[k].digests[0], batch};
    build_executable b = {.f = f, .graph = g, .batch = batch, .cancel = cancel};
    sx_status status = SX_OK;
    int tries = 0;
    do {
        status = sx_build_cache_get(f->executables, &key, sizeof(key), compile, &b, cancel, &found);
    } while (sx_function_programs_make_room(f, status, &tries));
    SX_TRY(status);
    pthread_mutex_lock(&p->mutex);
    sx_built *surplus = NULL;
    if (s->n_executables < SX_FUNCTION_KEPT_BATCHES) {
        s->batches[s->n_executables] = batch;
        s->executables[s->n_executables++] = sx_built_retain(found);
    } else {
        surplus = s->executables[0];
        memmove(s->batches, s->batches + 1, (SX_FUNCTION_KEPT_BATCHES - 1) * sizeof(s->batches[0]));
        memmove(s->executables, s->executables + 1,
                (SX_FUNCTION_KEPT_BATCHES - 1) * sizeof(s->executables[0]));
        s->batches[SX_FUNCTION_KEPT_BATCHES - 1] = batch;
        s->executables[SX_FUNCTION_KEPT_BATCHES - 1] = sx_built_retain(found);
    }
    pthread_mutex_unlock(&p->mutex);
    sx_built_release(surplus);
    *out = found;
    return SX_OK;
}
