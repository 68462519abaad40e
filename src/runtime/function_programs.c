/* See function_programs.h. */
#include "runtime/function_programs.h"

#include <string.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "graph/builder.h"

static sx_status no_memory(void)
{
    return sx_no_memory("running a function");
}

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
    pthread_mutex_destroy(&p->mutex);
    sx_free(p);
}

static void destroy_executable(void *user)
{
    sx_executable_release(user);
}

sx_status sx_function_programs_init(sx_function_programs *f, const sx_library *library,
                                    sx_platform *platform, const sx_specialize_limits *limits,
                                    int64_t max_programs, int64_t max_executables)
{
    *f = (sx_function_programs){.library = library, .platform = platform, .limits = *limits};
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
    sx_build_cache_destroy(f->programs); /* they refer to executables */
    sx_build_cache_destroy(f->executables);
}

/* ---- Programs ---- */

typedef struct build_program {
    const sx_function_programs *f;
    const sx_graph *body;
    const sx_binding *binding;
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
    sx_status status = sx_specialize(b->f->library, b->body, b->binding, &b->f->limits, &p->spec);
    if (status != SX_OK) {
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
        } else if (step->kind == SX_STEP_IF || step->kind == SX_STEP_WHILE) {
            for (int i = 0; i < 2 && status == SX_OK; i++) {
                status = learn_shaping(b->f, sx_node_body(step->node, i), &p->steps[k].shaping[i]);
            }
        }
    }
    if (status != SX_OK) {
        destroy_program(p);
        return status;
    }
    *out_value = p;
    *out_bytes = (int64_t)p->spec->arena.used_bytes;
    return SX_OK;
}

static void put_key(const sx_function_programs *f, uint64_t graph_hash, const sx_binding *binding,
                    sx_buf *key)
{
    const uint64_t head[3] = {f->library->hash, graph_hash, (uint64_t)binding->batch};
    sx_buf_append(key, head, sizeof(head));
    for (int i = 0; i < binding->n_args; i++) {
        const sx_tensor *a = &binding->args[i];
        const int32_t type[3] = {(int32_t)a->type.dtype, a->type.rank, a->data != NULL};
        sx_buf_append(key, type, sizeof(type));
        sx_buf_append(key, a->type.dims, (size_t)a->type.rank * sizeof(a->type.dims[0]));
        if (a->type.dtype == SX_RESOURCE) {
            sx_buf_append(key, a->data, strlen(a->data) + 1);
        } else if (a->data != NULL) {
            sx_buf_append(key, a->data, (size_t)sx_type_bytes(&a->type));
        }
    }
}

sx_status sx_function_program_get(sx_function_programs *f, const sx_graph *body, uint64_t hash,
                                  const sx_binding *binding, const sx_cancel *cancel,
                                  sx_built **out)
{
    sx_buf key;
    sx_buf_init(&key, 1 << 20);
    put_key(f, hash, binding, &key);
    build_program b = {.f = f, .body = body, .binding = binding};
    sx_status status = sx_buf_status(&key);
    if (status == SX_OK) {
        status = sx_build_cache_get(f->programs, key.data, key.size, build, &b, cancel, out);
    }
    sx_buf_deinit(&key);
    return status;
}

/* ---- Executables ---- */

typedef struct build_executable {
    const sx_function_programs *f;
    const sx_graph *graph;
    int64_t batch;
} build_executable;

static sx_status compile(void *user, void **out_value, int64_t *out_bytes)
{
    const build_executable *b = user;
    sx_executable *e = NULL;
    SX_TRY(sx_compile(b->f->platform, b->graph,
                      &(sx_compile_options){.batch = b->batch, .shards = 1}, &e));
    *out_value = e;
    *out_bytes = 1;
    return SX_OK;
}

/* Not only its arguments may: an attribute that is a shape says the batch, too. */
static bool graph_has_batch(const sx_graph *g)
{
    bool any = false;
    for (int i = 1; i < g->n_values && !any; i++) {
        any = sx_type_has_batch(&g->values[i].type);
    }
    return any;
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
    const uint64_t key[2] = {p->spec->steps[k].hashes[0], (uint64_t)batch};
    build_executable b = {.f = f, .graph = g, .batch = batch};
    SX_TRY(sx_build_cache_get(f->executables, key, sizeof(key), compile, &b, cancel, &found));
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
