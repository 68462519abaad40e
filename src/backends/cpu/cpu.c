/* The cpu backend: the contract's functions around plans. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "backends/cpu/kernel.h"
#include "backends/cpu/onednn2.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/pool.h"

typedef struct cpu_platform {
    sx_platform head;
    sx_device device;
    sx_device *devices[1];
    char kind[160];
    int workers;
    sx_pool *pool;
    pthread_mutex_t running; /* the pool has one run at a time */
} cpu_platform;

typedef struct cpu_buffer {
    sx_buffer head;
    char *own;        /* row-major */
    const char *data; /* own, or borrowed */
} cpu_buffer;

typedef struct cpu_executable {
    sx_executable head;
    sx_cpu_plan *plan;
    sx_type *types; /* args, results */
    int *result_args;
    char *arenas;      /* [shards] of shard_bytes, then the common one */
    char ***bases;     /* [shards][spaces] */
    int64_t *times_ns; /* [workers][steps], or NULL */
    int64_t calls;
    sx_kernel_time *profile; /* [steps] */
    char numerics[256];
    _Atomic(sx_status) fault; /* of the running execution */
} cpu_executable;

static cpu_platform *platform_of(const sx_executable *e)
{
    return (cpu_platform *)e->platform;
}

/* --- platform ------------------------------------------------------------------------------------
 */

/* Workers keep their OpenMP team at one for ever; the caller's is set while it executes. */
static void cap_team(void *user, int worker)
{
    (void)user;
    if (worker > 0) {
        (void)sx_dnn_enter(1);
    }
}

static void read_kind(char *text, size_t size)
{
    char line[256], model[128] = "CPU";
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        if (sscanf(line, "model name : %127[^\n]", model) == 1) {
            break;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    snprintf(text, size, "%s (%s)", model, sx_cpu_vec_best()->name);
}

static sx_status cpu_open(const sx_platform_options *options, sx_platform **out)
{
    cpu_platform *p = sx_alloc(1, sizeof(*p));
    if (p == NULL) {
        return sx_cpu_no_memory();
    }
    p->workers = options->threads > 0 ? options->threads : sx_cpu_count();
    if (p->workers > 1) {
        sx_status status = sx_pool_create(p->workers, &p->pool);
        if (status != SX_OK) {
            sx_free(p);
            return status;
        }
        sx_pool_run(p->pool, cap_team, NULL);
    }
    read_kind(p->kind, sizeof(p->kind));
    pthread_mutex_init(&p->running, NULL);
    p->device = (sx_device){.platform = &p->head, .name = "/device:CPU:0", .kind = p->kind};
    p->devices[0] = &p->device;
    p->head = (sx_platform){.backend = &sx_backend_cpu, .devices = p->devices, .n_devices = 1};
    *out = &p->head;
    return SX_OK;
}

static void cpu_close(sx_platform *head)
{
    cpu_platform *p = (cpu_platform *)head;
    sx_pool_destroy(p->pool);
    pthread_mutex_destroy(&p->running);
    sx_free(p);
}

/* --- buffers -------------------------------------------------------------------------------------
 */

static sx_status cpu_buffer_create(sx_device *device, const sx_type *type, sx_buffer **out)
{
    cpu_buffer *b = sx_alloc(1, sizeof(*b));
    size_t bytes = (size_t)sx_type_bytes(type) + SX_CPU_ALIGN;
    if (b == NULL || (b->own = sx_alloc_aligned(bytes, SX_CPU_ALIGN)) == NULL) {
        sx_free(b);
        return sx_error(SX_RESOURCE_EXHAUSTED, "cpu: out of memory for a buffer of %zu bytes",
                        bytes);
    }
    memset(b->own, 0, bytes);
    b->head.device = device;
    b->head.type = *type;
    atomic_init(&b->head.refs, 1);
    b->data = b->own;
    *out = &b->head;
    return SX_OK;
}

static void cpu_buffer_destroy(sx_buffer *head)
{
    cpu_buffer *b = (cpu_buffer *)head;
    sx_free_aligned(b->own);
    sx_free(b);
}

static sx_status cpu_buffer_write(sx_buffer *head, const void *data, bool borrow)
{
    cpu_buffer *b = (cpu_buffer *)head;
    if (borrow && (uintptr_t)data % 16 == 0) {
        b->data = data;
        return SX_OK;
    }
    memcpy(b->own, data, (size_t)sx_type_bytes(&head->type));
    b->data = b->own;
    return SX_OK;
}

static sx_status cpu_buffer_read(sx_buffer *head, void *data)
{
    memcpy(data, ((cpu_buffer *)head)->data, (size_t)sx_type_bytes(&head->type));
    return SX_OK;
}

/* What the program may write to: a borrowed variable becomes our own first. */
static char *writable(sx_buffer *head, bool keep)
{
    cpu_buffer *b = (cpu_buffer *)head;
    if (b->data != b->own) {
        if (keep) {
            memcpy(b->own, b->data, (size_t)sx_type_bytes(&head->type));
        }
        b->data = b->own;
    }
    return b->own;
}

/* --- compile -------------------------------------------------------------------------------------
 */

static void cpu_destroy(sx_executable *head)
{
    cpu_executable *e = (cpu_executable *)head;
    sx_executable_discharge(head);
    sx_cpu_plan_destroy(e->plan);
    sx_free_aligned(e->arenas);
    sx_free(e->bases);
    sx_free(e->types);
    sx_free(e->result_args);
    sx_free(e->times_ns);
    sx_free(e->profile);
    sx_free(e);
}

static sx_status describe(cpu_executable *e, int64_t batch)
{
    const sx_graph *g = e->plan->graph;
    e->types = sx_alloc((size_t)(g->n_args + g->n_results) + 1, sizeof(sx_type));
    e->result_args = sx_alloc((size_t)g->n_results + 1, sizeof(int));
    if (e->types == NULL || e->result_args == NULL) {
        return sx_cpu_no_memory();
    }
    for (int i = 0; i < g->n_args; i++) {
        e->types[i] = sx_type_with_batch(*sx_graph_type(g, g->args[i].value), batch);
    }
    for (int i = 0; i < g->n_results; i++) {
        e->types[g->n_args + i] = sx_type_with_batch(*sx_graph_type(g, g->results[i].value), batch);
        e->result_args[i] = g->results[i].arg;
    }
    e->head.n_args = g->n_args;
    e->head.n_results = g->n_results;
    e->head.arg_types = e->types;
    e->head.result_types = e->types + g->n_args;
    e->head.result_args = e->result_args;
    return SX_OK;
}

enum { HUGE_PAGE = 2 << 20 };

static sx_status allocate(cpu_executable *e, bool profile)
{
    const sx_cpu_plan *p = e->plan;
    cpu_platform *platform = platform_of(&e->head);
    size_t shard = (size_t)p->shard_bytes, common = (size_t)p->common_bytes, total;
    if (__builtin_mul_overflow(shard, (size_t)p->shards, &total) ||
        __builtin_add_overflow(total, common + SX_CPU_ALIGN, &total)) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "cpu: a program needs more memory than there is");
    }
    e->arenas = sx_alloc_aligned(total, total >= HUGE_PAGE ? HUGE_PAGE : SX_CPU_ALIGN);
    e->bases = sx_alloc((size_t)p->shards, sizeof(char **) + (size_t)p->n_spaces * sizeof(char *));
    if (e->arenas == NULL || e->bases == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "cpu: out of memory for %zu bytes of temporaries",
                        total);
    }
    if (total >= HUGE_PAGE) {
        (void)madvise(e->arenas, total, MADV_HUGEPAGE);
    }
    char **table = (char **)(e->bases + p->shards);
    for (int s = 0; s < p->shards; s++) {
        e->bases[s] = table + (ptrdiff_t)s * p->n_spaces;
        e->bases[s][SX_CPU_SHARD] = e->arenas + (size_t)s * shard;
        e->bases[s][SX_CPU_COMMON] = e->arenas + (size_t)p->shards * shard;
        e->bases[s][SX_CPU_CONST] = p->constants;
    }
    if (profile) {
        e->times_ns =
            sx_alloc((size_t)platform->workers * (size_t)(p->n_steps + 1), sizeof(int64_t));
        e->profile = sx_alloc((size_t)p->n_steps + 1, sizeof(*e->profile));
        if (e->times_ns == NULL || e->profile == NULL) {
            return sx_cpu_no_memory();
        }
    }
    return SX_OK;
}

static sx_status cpu_compile(sx_platform *platform, const sx_graph *graph,
                             const sx_compile_options *options, sx_executable **out)
{
    cpu_executable *e = sx_alloc(1, sizeof(*e));
    if (e == NULL) {
        return sx_cpu_no_memory();
    }
    e->head.platform = platform;
    e->head.memory = options->memory;
    atomic_init(&e->head.refs, 1);
    sx_cpu_plan_options o = {.batch = options->batch,
                             .shards = options->shards,
                             .workers = platform_of(&e->head)->workers,
                             .executable = &e->head};
    sx_status status = sx_cpu_plan_create(graph, &o, &e->plan);
    if (status == SX_OK) {
        status = describe(e, e->plan->batch);
    }
    if (status == SX_OK) {
        status = allocate(e, options->profile);
    }
    if (status != SX_OK) {
        cpu_destroy(&e->head);
        return status;
    }
    char dnn[160];
    sx_dnn_numerics(dnn, sizeof(dnn));
    snprintf(e->numerics, sizeof(e->numerics), "cpu %s%s kernels:%d shards:%d%s %s",
             sx_cpu_vec_best()->name, e->plan->bf16 ? " bf16" : "", SX_CPU_KERNEL_TABLE_VERSION,
             e->plan->shards, e->plan->team ? " team" : "", dnn);
    *out = &e->head;
    return SX_OK;
}

/* --- execute -------------------------------------------------------------------------------------
 */

void sx_cpu_fail(const sx_cpu_call *call, sx_status status)
{
    sx_status none = SX_OK;
    if (!atomic_compare_exchange_strong(call->fault, &none, status)) {
        sx_status_free(status);
    }
}

typedef struct run {
    cpu_executable *e;
    int workers;
} run;

static void run_step(cpu_executable *e, const sx_cpu_step *s, int index, int worker,
                     const sx_cpu_call *call)
{
    if (e->times_ns == NULL) {
        s->run(s, call);
        return;
    }
    int64_t start = sx_now_ns();
    s->run(s, call);
    e->times_ns[(int64_t)worker * e->plan->n_steps + index] += sx_now_ns() - start;
}

static void run_sharded(const run *r, const sx_cpu_stage *stage, int worker)
{
    const sx_cpu_plan *p = r->e->plan;
    for (int shard = worker; shard < p->shards; shard += r->workers) {
        sx_cpu_call call = {.bases = r->e->bases[shard],
                            .shard_bases = (char *const *const *)r->e->bases,
                            .shard = shard,
                            .first_example = sx_cpu_shard_first(p, shard),
                            .fault = &r->e->fault};
        const sx_cpu_step *steps = p->steps[shard < p->larger ? 0 : 1];
        for (int i = stage->first; i < stage->first + stage->count; i++) {
            call.end = steps[i].range;
            run_step(r->e, &steps[i], i, worker, &call);
        }
    }
}

enum { RANGE_MIN = 16 * 1024, RANGE_ALIGN = 1024 };

/* A common stage: large ranges are divided, other steps go to the workers in turn. */
static void run_common(const run *r, const sx_cpu_stage *stage, int worker)
{
    const sx_cpu_plan *p = r->e->plan;
    sx_cpu_call call = {.bases = r->e->bases[0],
                        .shard_bases = (char *const *const *)r->e->bases,
                        .fault = &r->e->fault};
    for (int i = stage->first, turn = 0; i < stage->first + stage->count; i++) {
        const sx_cpu_step *s = &p->steps[0][i];
        call.begin = 0;
        call.end = s->range;
        if (s->range >= RANGE_MIN && r->workers > 1) {
            int64_t blocks = (s->range + RANGE_ALIGN - 1) / RANGE_ALIGN;
            call.begin = blocks * worker / r->workers * RANGE_ALIGN;
            call.end = blocks * (worker + 1) / r->workers * RANGE_ALIGN;
            call.end = call.end < s->range ? call.end : s->range;
            if (call.begin >= call.end) {
                continue;
            }
        } else if (turn++ % r->workers != worker) {
            continue;
        }
        run_step(r->e, s, i, worker, &call);
    }
}

static void run_serial(const run *r, const sx_cpu_stage *stage, int worker)
{
    const sx_cpu_step *steps = r->e->plan->steps[0];
    sx_cpu_call call = {.bases = r->e->bases[0],
                        .shard_bases = (char *const *const *)r->e->bases,
                        .fault = &r->e->fault};
    for (int i = stage->first; worker == 0 && i < stage->first + stage->count; i++) {
        call.end = steps[i].range;
        run_step(r->e, &steps[i], i, worker, &call);
    }
}

static void run_plan(void *user, int worker)
{
    const run *r = user;
    const sx_cpu_plan *p = r->e->plan;
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
            sx_pool_barrier(platform_of(&r->e->head)->pool);
        }
    }
}

static void set_bases(cpu_executable *e, int space, char *data, bool batched, int64_t example_bytes)
{
    const sx_cpu_plan *p = e->plan;
    for (int s = 0; s < p->shards; s++) {
        e->bases[s][space] = data + (batched ? sx_cpu_shard_first(p, s) * example_bytes : 0);
    }
}

static void bind(cpu_executable *e, sx_buffer *const *args, sx_buffer *const *outputs)
{
    const sx_cpu_plan *p = e->plan;
    int n_args = e->head.n_args;
    for (int i = 0; i < e->head.n_results; i++) {
        if (e->result_args[i] >= 0) {
            (void)writable(args[e->result_args[i]], true);
        } else {
            set_bases(e, SX_CPU_ARGS + n_args + i, writable(outputs[i], false), p->out_batched[i],
                      p->out_example_bytes[i]);
        }
    }
    for (int i = 0; i < n_args; i++) {
        union {
            const char *from;
            char *data; /* steps write only to what a result assigns */
        } u = {.from = ((cpu_buffer *)args[i])->data};
        set_bases(e, SX_CPU_ARGS + i, u.data, p->arg_batched[i], p->arg_example_bytes[i]);
    }
}

static sx_status cpu_execute(sx_executable *head, sx_buffer *const *args, sx_buffer *const *outputs)
{
    cpu_executable *e = (cpu_executable *)head;
    cpu_platform *p = platform_of(head);
    bind(e, args, outputs);
    e->calls++;
    int before = sx_dnn_enter(e->plan->team ? p->workers : 1);
    if (e->plan->parallel) {
        run r = {.e = e, .workers = p->workers};
        pthread_mutex_lock(&p->running);
        sx_pool_run(p->pool, run_plan, &r);
        pthread_mutex_unlock(&p->running);
    } else {
        run r = {.e = e, .workers = 1};
        run_plan(&r, 0);
    }
    sx_dnn_leave(before);
    return atomic_exchange(&e->fault, SX_OK);
}

/* --- telling -------------------------------------------------------------------------------------
 */

static sx_status cpu_info(const sx_executable *head, sx_executable_info *out)
{
    const cpu_executable *e = (const cpu_executable *)head;
    const sx_cpu_plan *p = e->plan;
    *out = (sx_executable_info){.temporary_bytes = p->shard_bytes * p->shards + p->common_bytes,
                                .code_bytes = p->const_bytes,
                                .flops = p->flops,
                                .shards = p->shards,
                                .kernels = p->n_steps,
                                .numerics = e->numerics};
    for (int i = 0; i < head->n_args; i++) {
        out->argument_bytes += sx_type_bytes(&head->arg_types[i]);
    }
    for (int i = 0; i < head->n_results; i++) {
        out->output_bytes += head->result_args[i] < 0 ? sx_type_bytes(&head->result_types[i]) : 0;
    }
    return SX_OK;
}

static sx_status cpu_profile(const sx_executable *head, const sx_kernel_time **out_rows,
                             int *out_count)
{
    const cpu_executable *e = (const cpu_executable *)head;
    const sx_cpu_plan *p = e->plan;
    if (e->times_ns == NULL) {
        return sx_error(SX_FAILED_PRECONDITION, "cpu: compile with .profile = true to keep times");
    }
    for (int i = 0; i < p->n_steps; i++) {
        const sx_cpu_step *s = &p->steps[0][i];
        int64_t ns = 0;
        for (int w = 0; w < platform_of(head)->workers; w++) {
            ns += e->times_ns[(int64_t)w * p->n_steps + i];
        }
        e->profile[i] = (sx_kernel_time){.kernel = s->kernel,
                                         .node = s->node,
                                         .calls = e->calls,
                                         .total_ns = ns,
                                         .flops = s->flops,
                                         .bytes = s->bytes};
    }
    *out_rows = e->profile;
    *out_count = p->n_steps;
    return SX_OK;
}

const sx_backend sx_backend_cpu = {
    .name = "cpu",
    .about = "this machine's processors: fused plans, oneDNN convolutions",
    .capabilities = SX_CAN_TRAIN | SX_CAN_SHARD | SX_CAN_BF16,
    .open = cpu_open,
    .close = cpu_close,
    .buffer_create = cpu_buffer_create,
    .buffer_destroy = cpu_buffer_destroy,
    .buffer_write = cpu_buffer_write,
    .buffer_read = cpu_buffer_read,
    .compile = cpu_compile,
    .executable_destroy = cpu_destroy,
    .execute = cpu_execute,
    .info = cpu_info,
    .profile = cpu_profile,
};
