/* The cpu backend: the contract's functions around plans. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/limits.h"
#include "backends/cpu/onednn2.h"
#include "backends/cpu/subnormal.h"
#include "backends/cpu/team.h"
#include "backends/profile.h"
#include "base/checked.h"
#include "base/clock.h"
#include "base/memory.h"

bool sx_cpu_has_bf16(void)
{
    return sx_dnn_has_bf16();
}

/* ---- Platform ---- */

/* Workers keep their OpenMP team at one for ever; the caller's is set while it executes. */
static void cap_team(void *user, int worker)
{
    (void)user;
    if (worker > 0) {
        (void)sx_dnn_enter(1);
    }
}

static sx_status cpu_open(const sx_platform_options *options, sx_platform **out)
{
    sx_cpu_platform *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return sx_no_memory("for the platform");
    }
    p->workers = options->cpu.threads > 0 ? options->cpu.threads : sx_cpu_count();
    p->profile = options->cpu.profile;
    p->eval_shards = options->cpu.eval_shards;
    p->integers = options->cpu.integers;
    p->bfloat16 = options->cpu.bfloat16;
    p->memory_limit_bytes = options->cpu.memory_limit_bytes;
    sx_status status = p->workers > 1 ? sx_pool_create(p->workers, &p->pool) : SX_OK;
    if (status != SX_OK) {
        sx_free(p);
        return status;
    }
    if (p->workers > 1) {
        sx_pool_run(p->pool, cap_team, NULL);
    }
    sx_cpu_kind(p->kind, sizeof(p->kind));
    pthread_mutex_init(&p->running, NULL);
    p->device = (sx_device){.platform = &p->head,
                            .name = "/device:CPU:0",
                            .kind = p->kind,
                            .n_memories = 1,
                            .memories = {{.kind = "device"}}};
    p->devices[0] = &p->device;
    p->head = (sx_platform){.backend = &sx_backend_cpu, .devices = p->devices, .n_devices = 1};
    *out = &p->head;
    return SX_OK;
}

static void cpu_close(sx_platform *head)
{
    sx_cpu_platform *p = (sx_cpu_platform *)head;
    sx_pool_destroy(p->pool);
    pthread_mutex_destroy(&p->running);
    sx_free(p);
}

/* ---- Buffers ---- */

enum { HUGE_PAGE = 2 << 20, PAGE = 4096 };
enum { MAX_EVENTS = 1 << 15 }; /* of a worker, in a profile */

static sx_status cpu_buffer_create(sx_device *device, int memory, const sx_type *type,
                                   sx_device_buffer **out)
{
    (void)memory; /* there is one */
    sx_cpu_buffer *b = sx_alloc(1, sizeof(*b));
    const size_t bytes = (size_t)sx_type_bytes(type) + SX_CPU_ALIGN;
    const size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : SX_CPU_ALIGN;
    /* Zeros that the system gives: memory is touched when it is written. */
    if (b == NULL || (b->block = sx_alloc(bytes + align, 1)) == NULL) {
        sx_free(b);
        return sx_no_memory("for a buffer of %zu bytes", bytes);
    }
    b->own = (char *)b->block + (align - (uintptr_t)b->block % align) % align;
    b->head.device = device;
    b->head.type = *type;
    atomic_init(&b->head.refs, 1);
    atomic_init(&b->absent, false);
    pthread_mutex_init(&b->fetching, NULL);
    b->data = b->own;
    *out = &b->head;
    return SX_OK;
}

static void cpu_buffer_destroy(sx_device_buffer *head)
{
    sx_cpu_buffer *b = (sx_cpu_buffer *)head;
    pthread_mutex_destroy(&b->fetching);
    sx_free(b->block);
    sx_free(b);
}

static void cpu_buffer_set_source(sx_device_buffer *head, const sx_buffer_source *source)
{
    sx_cpu_buffer *b = (sx_cpu_buffer *)head;
    b->data = b->own;
    b->source = source;
    atomic_store(&b->absent, true);
}

sx_status sx_cpu_fetch(sx_cpu_buffer *b)
{
    if (!atomic_load_explicit(&b->absent, memory_order_acquire)) {
        return SX_OK;
    }
    pthread_mutex_lock(&b->fetching);
    sx_status status = atomic_load(&b->absent) ? b->source->read(b->source->user, b->own) : SX_OK;
    if (status == SX_OK) {
        atomic_store_explicit(&b->absent, false, memory_order_release);
    }
    pthread_mutex_unlock(&b->fetching);
    return status;
}

static void *cpu_buffer_data(sx_device_buffer *head)
{
    sx_cpu_buffer *b = (sx_cpu_buffer *)head;
    atomic_store(&b->absent, false);
    b->data = b->own;
    return b->own;
}

static sx_status cpu_buffer_write(sx_device_buffer *head, const void *data, bool borrow)
{
    sx_cpu_buffer *b = (sx_cpu_buffer *)head;
    atomic_store_explicit(&b->absent, false, memory_order_relaxed);
    if (borrow && (uintptr_t)data % 16 == 0) {
        b->data = data;
        return SX_OK;
    }
    memcpy(b->own, data, (size_t)sx_type_bytes(&head->type));
    b->data = b->own;
    return SX_OK;
}

static sx_status cpu_buffer_read(sx_device_buffer *head, void *data, int64_t deadline_ns)
{
    (void)deadline_ns; /* it is here */
    SX_TRY(sx_cpu_fetch((sx_cpu_buffer *)head));
    memcpy(data, ((sx_cpu_buffer *)head)->data, (size_t)sx_type_bytes(&head->type));
    return SX_OK;
}

/* What the program may write to: a borrowed variable becomes our own first. */
static char *writable(sx_device_buffer *head, bool keep)
{
    sx_cpu_buffer *b = (sx_cpu_buffer *)head;
    if (b->data != b->own) {
        if (keep) {
            memcpy(b->own, b->data, (size_t)sx_type_bytes(&head->type));
        }
        b->data = b->own;
    }
    if (!keep) {
        atomic_store_explicit(&b->absent, false, memory_order_relaxed);
    }
    return b->own;
}

/* ---- Compile ---- */

static void cpu_destroy(sx_executable *head)
{
    sx_cpu_executable *e = (sx_cpu_executable *)head;
    for (int i = 0; e->blocks != NULL && i < e->plan->n_large; i++) {
        sx_cpu_block_release(e->blocks[i]);
    }
    sx_free(e->blocks);
    sx_cpu_plan_destroy(e->plan);
    sx_free_aligned(e->kept);
    pthread_mutex_destroy(&e->making);
    sx_executable_deinit(head);
    sx_free(e);
}

static void cpu_prepare_products(sx_platform *platform)
{
    (void)platform;
    const int before = sx_dnn_enter(1);
    sx_dnn_gemm_prepare();
    sx_dnn_leave(before);
}

static sx_cpu_plan_options plan_options(const sx_cpu_platform *p, const sx_compile_options *options)
{
    return (sx_cpu_plan_options){.batch = options->batch,
                                 .shards = options->shards,
                                 .eval_shards = p->eval_shards,
                                 .frozen = options->frozen,
                                 .integers = p->integers,
                                 .bfloat16 = p->bfloat16,
                                 .of_training = options->of_training,
                                 .settled = options->settled,
                                 .memory_limit_bytes = p->memory_limit_bytes,
                                 .workers = p->workers};
}

static sx_status cpu_settle(sx_platform *platform, const sx_graph *graph,
                            const sx_compile_options *options, int threads, sx_graph **out,
                            int *out_shards)
{
    sx_cpu_plan_options o = plan_options((const sx_cpu_platform *)platform, options);
    o.workers = threads;
    return sx_cpu_plan_settle(graph, &o, out, out_shards);
}

static sx_status cpu_compile(sx_platform *platform, const sx_graph *graph,
                             const sx_compile_options *options, sx_executable **out)
{
    sx_cpu_executable *e = sx_alloc(1, sizeof(*e));
    if (e == NULL) {
        return sx_no_memory("for an executable");
    }
    e->head.platform = platform;
    e->head.memory = options->memory;
    e->profile = options->profile || sx_cpu_platform_of(&e->head)->profile != NULL;
    atomic_init(&e->head.refs, 1);
    atomic_init(&e->kept_is_made, false);
    pthread_mutex_init(&e->making, NULL);
    sx_cpu_plan_options o = plan_options(sx_cpu_platform_of(&e->head), options);
    o.executable = &e->head;
    o.shares_large = true;
    sx_status status = sx_cpu_plan_create(graph, &o, &e->plan);
    if (status == SX_OK) {
        status = sx_executable_describe(&e->head, e->plan->graph, e->plan->batch);
        sx_graph_destroy(e->plan->graph); /* the variants are what runs */
        e->plan->graph = NULL;
    }
    if (status == SX_OK) {
        e->blocks = sx_alloc((size_t)e->plan->n_large + 1, sizeof(*e->blocks));
        status = e->blocks == NULL ? sx_no_memory("for an executable") : SX_OK;
    }
    for (int i = 0; status == SX_OK && i < e->plan->n_large; i++) {
        e->blocks[i] = e->plan->large[i].block;
        e->plan->large[i].block = NULL;
    }
    if (status == SX_OK && e->plan->kept_bytes > 0) {
        e->kept = sx_alloc_aligned((size_t)e->plan->kept_bytes, SX_CPU_ALIGN);
        status = e->kept == NULL ? sx_no_memory("for a program's frozen values") : SX_OK;
    }
    if (status != SX_OK) {
        sx_executable_release(&e->head);
        return status;
    }
    char dnn[160];
    sx_dnn_numerics(dnn, sizeof(dnn));
    snprintf(e->numerics, sizeof(e->numerics), "cpu %s%s kernels:%d shards:%d%s %s",
             sx_cpu_vec_best()->name, e->plan->bf16 ? " bf16" : "", SX_CPU_KERNEL_TABLE_VERSION,
             options->parts > 0 ? options->parts : e->plan->shards,
             e->plan->team && options->parts == 0 ? " team" : "", dnn);
    e->head.max_runs = e->plan->parallel || e->plan->team ? 1 : 0;
    *out = &e->head;
    return SX_OK;
}

void sx_cpu_fail(const sx_cpu_call *call, sx_status status)
{
    sx_status none = SX_OK;
    if (!atomic_compare_exchange_strong(call->fault, &none, status)) {
        sx_status_free(status);
    }
}

bool sx_cpu_stops(const sx_cpu_call *call, const sx_cpu_step *next, const sx_cpu_step *region)
{
    sx_status status = next->looks && call->cancel != NULL ? sx_cancel_check(call->cancel) : SX_OK;
    if (status != SX_OK) {
        sx_cpu_fail(call, region == NULL
                              ? status
                              : sx_status_annotate(status, __FILE__, __LINE__, "%s \"%s\"",
                                                   region->kernel, region->node));
    }
    return sx_cpu_has_failed(call);
}

/* ---- Runs ---- */

static sx_status cpu_profile(sx_run *head, const sx_kernel_time **out_rows, int *out_count);

/* What each worker did, to the platform's profile, where the run's rows begin at `first`. */
static void add_events(sx_cpu_run *r, int first)
{
    const sx_cpu_platform *platform = sx_cpu_platform_of(r->head.executable);
    for (int w = 0; r->events != NULL && w < platform->workers; w++) {
        sx_profile_event *events = r->events + (ptrdiff_t)w * MAX_EVENTS;
        for (int i = 0; i < r->n_events[w]; i++) {
            events[i].row += events[i].row == SX_PROFILE_EXECUTION ? 0 : first;
        }
        sx_profile_add_events(platform->profile, events, r->n_events[w]);
    }
}

/* As a shard runs them: larger shards and smaller ones may take different kernels. */
static const sx_cpu_step *steps_of(const sx_cpu_plan *p, const sx_cpu_stage *stage, int shard)
{
    return p->steps[shard < p->larger || !stage->sharded ? 0 : 1];
}

static void cpu_run_destroy(sx_run *head)
{
    sx_cpu_run *r = (sx_cpu_run *)head;
    const sx_cpu_plan *p = sx_cpu_plan_of(r);
    sx_profile *profile = sx_cpu_platform_of(head->executable)->profile;
    const sx_kernel_time *rows = NULL;
    int n = 0;
    if (profile != NULL && r->profile != NULL) {
        sx_status_free(cpu_profile(head, &rows, &n));
    }
    for (int i = 0, first = 0; i < n; i++) {
        const int row = sx_profile_add(profile, &rows[i]);
        first = i == 0 ? row : first;
        if (i + 1 == n && row == first + i) { /* none was left out */
            add_events(r, first);
        }
    }
    for (int k = 0; r->states != NULL && k < p->n_stages; k++) {
        const sx_cpu_stage *stage = &p->stages[k];
        for (int s = 0; s < p->shards; s++) {
            const sx_cpu_step *steps = steps_of(p, stage, s);
            for (int i = stage->first; i < stage->first + stage->count; i++) {
                void *state = r->states[s * p->n_steps + i];
                if (state != NULL) {
                    steps[i].destroy_state(state);
                }
            }
        }
    }
    sx_free(r->states);
    sx_free_aligned(r->arenas);
    sx_free(r->bases);
    sx_free(r->times_ns);
    sx_free(r->events);
    sx_free(r->n_events);
    sx_free(r->profile);
    sx_run_deinit(head);
    sx_free(r);
}

static sx_status allocate(sx_cpu_run *r, sx_cpu_executable *e)
{
    const sx_cpu_plan *p = e->plan;
    size_t shard = (size_t)p->shard_bytes, common = (size_t)p->common_bytes, total;
    if (__builtin_mul_overflow(shard, (size_t)p->shards, &total) ||
        __builtin_add_overflow(total, common + SX_CPU_ALIGN, &total)) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "cpu: not enough memory for a program");
    }
    r->arenas = sx_alloc_aligned(total, total >= HUGE_PAGE ? HUGE_PAGE : SX_CPU_ALIGN);
    r->bases = sx_alloc((size_t)p->shards, sizeof(char **) + (size_t)p->n_spaces * sizeof(char *));
    if (r->arenas == NULL || r->bases == NULL) {
        return sx_no_memory("for %zu bytes of temporaries", total);
    }
    if (total >= HUGE_PAGE) {
        (void)madvise(r->arenas, total, MADV_HUGEPAGE);
    }
    char **table = (char **)(r->bases + p->shards);
    for (int s = 0; s < p->shards; s++) {
        r->bases[s] = table + (ptrdiff_t)s * p->n_spaces;
        r->bases[s][SX_CPU_SHARD] = r->arenas + (size_t)s * shard;
        r->bases[s][SX_CPU_COMMON] = r->arenas;
        r->bases[s][SX_CPU_CONST] = p->constants;
        r->bases[s][SX_CPU_KEPT] = e->kept;
    }
    pthread_mutex_lock(&e->making);
    sx_cpu_set_block_bases(r, e);
    r->has_blocks = !p->frozen || atomic_load(&e->kept_is_made);
    pthread_mutex_unlock(&e->making);
    if (e->profile) {
        const size_t workers = (size_t)sx_cpu_platform_of(&e->head)->workers,
                     n = (size_t)p->n_steps;
        r->times_ns = sx_alloc((workers + 1) * (n + 1), sizeof(int64_t));
        r->profile = sx_alloc(n + 1, sizeof(*r->profile));
        if (r->times_ns == NULL || r->profile == NULL) {
            return sx_no_memory("for a run");
        }
        r->least_ns = r->times_ns + workers * n;
        if (sx_profile_keeps_events(sx_cpu_platform_of(&e->head)->profile)) {
            r->events = sx_alloc(workers * MAX_EVENTS, sizeof(*r->events));
            r->n_events = sx_alloc(workers, sizeof(*r->n_events));
            if (r->events == NULL || r->n_events == NULL) {
                return sx_no_memory("for the profile of a run");
            }
        }
    }
    r->states = sx_alloc((size_t)p->shards * (size_t)(p->n_steps + 1), sizeof(void *));
    if (r->states == NULL) {
        return sx_no_memory("for a run");
    }
    for (int k = 0; k < p->n_stages; k++) {
        const sx_cpu_stage *stage = &p->stages[k];
        for (int s = 0; s < (stage->sharded ? p->shards : 1); s++) {
            const sx_cpu_step *steps = steps_of(p, stage, s);
            for (int i = stage->first; i < stage->first + stage->count; i++) {
                if (steps[i].make_state != NULL) {
                    SX_TRY(steps[i].make_state(&steps[i], &r->states[s * p->n_steps + i]));
                }
            }
        }
    }
    return SX_OK;
}

static sx_status cpu_run_create(sx_executable *executable, sx_run **out)
{
    sx_cpu_run *r = sx_alloc(1, sizeof(*r));
    if (r == NULL) {
        return sx_no_memory("for a run");
    }
    sx_status status = sx_run_init(&r->head, executable);
    if (status != SX_OK) {
        sx_free(r);
        return status;
    }
    status = allocate(r, (sx_cpu_executable *)executable);
    if (status != SX_OK) {
        cpu_run_destroy(&r->head);
        return status;
    }
    *out = &r->head;
    return SX_OK;
}

/* ---- Execute ---- */

/* What comes after the first MAX_EVENTS of a worker is left out. */
static void keep_event(sx_cpu_run *r, const sx_profile_event *event)
{
    int *n = r->events != NULL ? &r->n_events[event->worker] : NULL;
    if (n != NULL && *n < MAX_EVENTS) {
        r->events[(ptrdiff_t)event->worker * MAX_EVENTS + (*n)++] = *event;
    }
}

/* Whether the steps that follow are left to one thread of the team. */
static bool is_alone(sx_cpu_run *r)
{
    if (r->pacing == SX_CPU_TEAM && sx_cpu_plan_of(r)->team &&
        sx_cpu_pace_is_late(&r->pace, sx_now_ns() - r->start_ns)) {
        r->pacing = SX_CPU_TEAM_FAILED;
    }
    return r->pacing != SX_CPU_TEAM;
}

static void run_step(sx_cpu_run *r, const sx_cpu_step *s, int worker, sx_cpu_call *call)
{
    call->alone = is_alone(r);
    if (sx_cpu_stops(call, s, NULL)) {
        return;
    }
    if (!r->recording) {
        sx_cpu_run_whole(s, call);
        return;
    }
    const int64_t start = sx_now_ns();
    sx_cpu_run_whole(s, call);
    const int64_t end = sx_now_ns(), ns = end - start;
    keep_event(r, &(sx_profile_event){start, end, s->index, worker, call->shard});
    r->times_ns[(int64_t)worker * sx_cpu_plan_of(r)->n_steps + s->index] += ns;
    int64_t *least = &r->least_ns[s->index];
    if (worker == 0 && (*least == 0 || ns < *least)) {
        *least = ns;
    }
}

/* Threads of oneDNN's team that a step may have. */
static int team_of(const sx_cpu_run *r)
{
    return sx_cpu_plan_of(r)->team ? sx_cpu_platform_of(r->head.executable)->workers : 1;
}

sx_cpu_call sx_cpu_call_of(sx_cpu_run *r, int shard)
{
    const sx_cpu_plan *p = sx_cpu_plan_of(r);
    return (sx_cpu_call){.bases = r->bases[shard],
                         .shard_bases = (char *const *const *)r->bases,
                         .states = r->states + (ptrdiff_t)shard * p->n_steps,
                         .shard = shard,
                         .first_example = sx_cpu_shard_first(p, shard),
                         .team = team_of(r),
                         .memory = r->head.executable->memory,
                         .cancel = r->head.cancel,
                         .fault = &r->fault};
}

static void run_sharded(sx_cpu_run *r, const sx_cpu_stage *stage, int worker)
{
    const sx_cpu_plan *p = sx_cpu_plan_of(r);
    for (int shard = worker; shard < p->shards; shard += r->workers) {
        sx_cpu_call call = sx_cpu_call_of(r, shard);
        const sx_cpu_step *steps = steps_of(p, stage, shard);
        for (int i = stage->first; i < stage->first + stage->count; i++) {
            call.end = steps[i].range;
            if (!steps[i].once) {
                run_step(r, &steps[i], worker, &call);
            }
        }
    }
}

/* A common stage: large ranges are divided, other steps go to the workers in turn. */
static void run_common(sx_cpu_run *r, const sx_cpu_stage *stage, int worker)
{
    const sx_cpu_plan *p = sx_cpu_plan_of(r);
    sx_cpu_call call = sx_cpu_call_of(r, 0);
    for (int i = stage->first, turn = 0; i < stage->first + stage->count; i++) {
        const sx_cpu_step *s = &p->steps[0][i];
        if (s->once) {
            continue;
        }
        if (sx_cpu_divide(s, s->grain, worker, r->workers, &call)) {
            if (call.begin == call.end) {
                continue;
            }
        } else if (turn++ % r->workers == worker) {
            call.begin = 0;
            call.end = s->range;
        } else {
            continue;
        }
        run_step(r, s, worker, &call);
    }
}

static void run_serial(sx_cpu_run *r, const sx_cpu_stage *stage, int worker)
{
    const sx_cpu_step *steps = sx_cpu_plan_of(r)->steps[0];
    sx_cpu_call call = sx_cpu_call_of(r, 0);
    for (int i = stage->first; worker == 0 && i < stage->first + stage->count; i++) {
        call.end = steps[i].range;
        if (!steps[i].once) {
            run_step(r, &steps[i], worker, &call);
        }
    }
}

static void run_plan(void *user, int worker)
{
    sx_cpu_run *r = user;
    const sx_cpu_plan *p = sx_cpu_plan_of(r);
    const unsigned before = p->flushes ? sx_subnormals_flush() : 0;
    for (int k = 0; k < p->n_stages; k++) {
        const sx_cpu_stage *stage = &p->stages[k];
        if (stage->sharded) {
            run_sharded(r, stage, worker);
        } else if (stage->serial) {
            run_serial(r, stage, worker);
        } else {
            run_common(r, stage, worker);
        }
        if (r->workers > 1 && k + 1 < p->n_stages) {
            sx_pool_barrier(sx_cpu_platform_of(r->head.executable)->pool);
        }
    }
    if (p->flushes) {
        sx_subnormals_restore(before);
    }
}

static void set_bases(sx_cpu_run *r, int space, char *data, bool batched, int64_t example_bytes)
{
    const sx_cpu_plan *p = sx_cpu_plan_of(r);
    for (int s = 0; s < p->shards; s++) {
        r->bases[s][space] = data + (batched ? sx_cpu_shard_first(p, s) * example_bytes : 0);
    }
}

static void bind_args(sx_cpu_run *r, sx_device_buffer *const *args)
{
    const sx_cpu_plan *p = sx_cpu_plan_of(r);
    for (int i = 0; i < r->head.executable->n_args; i++) {
        union {
            const char *from;
            char *data; /* steps write only to what a result assigns */
        } u = {.from = ((sx_cpu_buffer *)args[i])->data};
        set_bases(r, SX_CPU_ARGS + i, u.data, p->arg_batched[i], p->arg_example_bytes[i]);
    }
}

static void bind(sx_cpu_run *r, sx_device_buffer *const *args, sx_device_buffer *const *outputs)
{
    const sx_cpu_executable *e = (const sx_cpu_executable *)r->head.executable;
    const sx_cpu_plan *p = e->plan;
    int n_args = e->head.n_args;
    for (int i = 0; i < e->head.n_results; i++) {
        if (e->head.result_args[i] >= 0) {
            (void)writable(args[e->head.result_args[i]], true);
        } else {
            set_bases(r, SX_CPU_ARGS + n_args + i, writable(outputs[i], false), p->out_batched[i],
                      p->out_example_bytes[i]);
        }
    }
    bind_args(r, args);
}

/* The rest of the first execution's work beside computing: what follows from frozen arguments, and
 * the system's part of giving memory to the temporaries. */
static sx_status cpu_prepare(sx_run *head, sx_device_buffer *const *args)
{
    sx_cpu_run *r = (sx_cpu_run *)head;
    const sx_cpu_plan *p = sx_cpu_plan_of(r);
    const int before = sx_dnn_enter(team_of(r));
    bind_args(r, args);
    sx_status status = sx_cpu_need_values(r, args);
    sx_dnn_leave(before);
    const int64_t bytes = p->shard_bytes * p->shards + p->common_bytes;
    for (int64_t i = 0; i < bytes; i += PAGE) {
        r->arenas[i] = 0;
    }
    return status;
}

static sx_status cpu_submit(sx_run *head, sx_device_buffer *const *args,
                            sx_device_buffer *const *outputs)
{
    sx_cpu_run *r = (sx_cpu_run *)head;
    sx_cpu_platform *p = sx_cpu_platform_of(head->executable);
    const sx_cpu_plan *plan = sx_cpu_plan_of(r);
    bind(r, args, outputs);
    int before = sx_dnn_enter(team_of(r));
    sx_status status = sx_cpu_need_values(r, args);
    if (status != SX_OK) {
        sx_dnn_leave(before);
        return status;
    }
    r->recording = r->times_ns != NULL && sx_profile_is_recording(p->profile);
    if (plan->team) {
        r->pacing = sx_cpu_pace_begin(&r->pace);
    }
    r->start_ns = r->recording || plan->team ? sx_now_ns() : 0;
    if (plan->parallel) {
        r->workers = p->workers;
        pthread_mutex_lock(&p->running);
        sx_pool_run(p->pool, run_plan, r);
        pthread_mutex_unlock(&p->running);
    } else {
        r->workers = 1;
        run_plan(r, 0);
    }
    const int64_t end = r->recording || plan->team ? sx_now_ns() : 0;
    if (plan->team && atomic_load(&r->fault) == SX_OK) {
        sx_cpu_pace_end(&r->pace, r->pacing, end - r->start_ns, p->workers);
    }
    if (r->recording) {
        r->calls++;
        keep_event(r, &(sx_profile_event){r->start_ns, end, SX_PROFILE_EXECUTION, 0, 0});
        sx_profile_add_execution(p->profile, end - r->start_ns);
    }
    sx_dnn_leave(before);
    status = atomic_exchange(&r->fault, SX_OK);
    if (status != SX_OK) { /* steps before it may have assigned */
        sx_run_lose(head);
    }
    sx_run_end(head, status);
    return SX_OK;
}

/* ---- Progress ---- */

static sx_status cpu_info(const sx_executable *head, sx_executable_info *out)
{
    const sx_cpu_executable *e = (const sx_cpu_executable *)head;
    const sx_cpu_plan *p = e->plan;
    out->temporary_bytes = p->shard_bytes * p->shards + p->common_bytes;
    out->code_bytes = p->const_bytes + p->kept_bytes + p->large_bytes;
    out->flops = p->flops;
    out->shards = p->shards;
    out->kernels = p->n_steps;
    out->numerics = e->numerics;
    return SX_OK;
}

/* In how many pieces the stage's steps were called, and what all of them computed together. */
static void count_pieces(sx_cpu_run *r, const sx_cpu_stage *stage)
{
    const sx_cpu_plan *p = sx_cpu_plan_of(r);
    const int workers = sx_cpu_platform_of(r->head.executable)->workers;
    const int larger = stage->sharded ? p->larger : 1;
    const int smaller = stage->sharded ? p->shards - p->larger : 0;
    for (int i = stage->first; i < stage->first + stage->count; i++) {
        const sx_cpu_step *s = &p->steps[0][i], *less = &p->steps[p->n_variants - 1][i];
        sx_kernel_time *row = &r->profile[i];
        const bool common = !stage->sharded && !stage->serial;
        const int64_t parts = common ? sx_cpu_parts_of(s, s->grain, r->workers) : 1;
        row->pieces = row->calls * (parts > 1 ? parts : larger + smaller);
        row->total_flops = (double)row->calls * (larger * s->flops + smaller * less->flops);
        row->total_bytes = (double)row->calls * (larger * s->bytes + smaller * less->bytes);
        row->alone = row->threads < workers && (!p->parallel || stage->serial);
    }
}

static sx_status cpu_profile(sx_run *head, const sx_kernel_time **out_rows, int *out_count)
{
    sx_cpu_run *r = (sx_cpu_run *)head;
    const sx_cpu_plan *p = sx_cpu_plan_of(r);
    const int workers = sx_cpu_platform_of(head->executable)->workers;
    if (r->times_ns == NULL) {
        return sx_error(SX_FAILED_PRECONDITION, "cpu: compile with .profile = true to keep times");
    }
    for (int i = 0; i < p->n_steps; i++) {
        const sx_cpu_step *s = &p->steps[0][i];
        int64_t ns = 0;
        for (int w = 0; w < workers; w++) {
            ns += r->times_ns[(int64_t)w * p->n_steps + i];
        }
        r->profile[i] = (sx_kernel_time){
            .kernel = s->kernel,
            .node = s->node,
            .ops = s->ops,
            .calls = s->once ? 0 : r->calls, /* it was not recorded */
            .total_ns = ns,
            .least_ns = p->shards == 1 ? r->least_ns[i] : 0,
            .flops = s->flops,
            .bytes = s->bytes,
            .threads = s->onednn ? team_of(r) : (int)sx_cpu_team_parts(s, team_of(r)),
            .host = s->host,
            .bf16 = s->bf16};
    }
    for (int k = 0; k < p->n_stages; k++) {
        count_pieces(r, &p->stages[k]);
    }
    *out_rows = r->profile;
    *out_count = p->n_steps;
    return SX_OK;
}

const sx_backend sx_backend_cpu = {
    .name = "cpu",
    .about = "the CPU, with fused kernels and oneDNN convolutions",
    .capabilities = SX_CAN_TRAIN | SX_CAN_SHARD | SX_CAN_BF16,
    .open = cpu_open,
    .close = cpu_close,
    .buffer_create = cpu_buffer_create,
    .buffer_destroy = cpu_buffer_destroy,
    .buffer_write = cpu_buffer_write,
    .buffer_read = cpu_buffer_read,
    .buffer_data = cpu_buffer_data,
    .buffer_set_source = cpu_buffer_set_source,
    .prepare_products = cpu_prepare_products,
    .compile = cpu_compile,
    .settle = cpu_settle,
    .executable_destroy = cpu_destroy,
    .info = cpu_info,
    .run_create = cpu_run_create,
    .run_destroy = cpu_run_destroy,
    .prepare = cpu_prepare,
    .submit = cpu_submit,
    .profile = cpu_profile,
};
