/* See executable.h. */
#include "backends/pjrt/executable.h"

#include <stdio.h>
#include <string.h>

#include "backends/pjrt/buffer.h"
#include "backends/pjrt/compile_within.h"
#include "backends/pjrt/pjrt.h"
#include "backends/pjrt/module.h"
#include "backends/pjrt/record.h"
#include "backends/pjrt/trace.h"
#include "base/checked.h"
#include "base/cpus.h"
#include "base/memory.h"

typedef struct pjrt_executable {
    sx_executable head;
    void *loaded;
    int *cuts;       /* args, then results: SX_PJRT_WHOLE, 0, 1 */
    bool *donated;   /* [n_args]: an execution takes it, beside the variables that it assigns */
    bool has_bounds; /* the program has a result more, for those of loops (module.h) */
    sx_hlo_bound *bounds; /* [n_bounds]; the names are ours */
    int n_bounds;
    sx_executable_info info;
    char numerics[320];
} pjrt_executable;

typedef struct pjrt_run pjrt_run;
struct pjrt_run {
    sx_run head;
    /* for Execute, of this process's replicas: [local][args], [local][results], [local] */
    void **arg_arrays, **result_arrays, **events; /* events: [2 local] with bounds */
    void *const **arg_lists;
    void ***result_lists;
    /* watched: what each event's callback is given; replicas that have not answered, and one more
     * while they are being asked; the first error */
    struct watched *watched; /* [2 local] */
    atomic_int waiting;
    const char *device; /* its name, of the last execution */
    int32_t *reached; /* [local]: of which loop the bound is reached; copied by the later events */
    _Atomic(sx_status) fault;
};

struct watched {
    pjrt_run *run;
    void *event;
};

/* ---- Compile ---- */

void sx_pjrt_executable_destroy(sx_executable *head)
{
    pjrt_executable *e = (pjrt_executable *)head;
    const sx_pjrt_platform *p = (const sx_pjrt_platform *)head->platform;
    sx_pjrt_end(p->client->plugin, SX_PJRT_LOADED_DESTROY, e->loaded);
    sx_executable_deinit(head);
    for (int i = 0; i < e->n_bounds; i++) {
        sx_free(e->bounds[i].name);
    }
    sx_free(e->bounds);
    sx_free(e->cuts);
    sx_free(e->donated);
    sx_free(e);
}

static sx_status allocate(pjrt_executable *e)
{
    SX_TRY(sx_executable_allocate(&e->head));
    e->cuts = sx_alloc((size_t)e->head.n_args + (size_t)e->head.n_results + 1, sizeof(*e->cuts));
    e->donated = sx_alloc((size_t)e->head.n_args + 1, sizeof(*e->donated));
    return e->cuts == NULL || e->donated == NULL ? sx_no_memory("for an executable") : SX_OK;
}

/* The dimension along which replicas split a value; `is_stack`: of a superbatch or ring. */
static int cut_of(const sx_graph *g, sx_value v, int replicas, bool is_stack)
{
    int axis = sx_batch_axis(sx_graph_type(g, v));
    return replicas > 1 && axis >= 0 ? axis + is_stack : SX_PJRT_WHOLE;
}

static void describe(pjrt_executable *e, const sx_graph *g, const sx_pjrt_module_options *o)
{
    bool loop = o->steps > 1;
    int parts = sx_pjrt_batch_parts(o);
    for (int i = 0; i < e->head.n_args; i++) {
        e->head.arg_types[i] = sx_pjrt_module_arg_type(g, o, i);
        e->cuts[i] = i < g->n_args ? cut_of(g, g->args[i].value, parts, loop) : SX_PJRT_WHOLE;
        e->donated[i] = sx_pjrt_module_donates(g, o, i);
    }
    for (int i = 0; i < e->head.n_results; i++) {
        bool own = i < g->n_results;
        e->head.result_types[i] = sx_pjrt_module_result_type(g, o, i);
        e->head.result_args[i] = own ? g->results[i].arg : SX_RESULT_IS_OUTPUT;
        e->cuts[e->head.n_args + i] =
            own && !o->whole_results
                ? cut_of(g, g->results[i].value, parts, loop && e->head.result_args[i] < 0)
                : SX_PJRT_WHOLE;
    }
}

static sx_status keep_bounds(pjrt_executable *e, const sx_pjrt_module *program)
{
    int n;
    const sx_hlo_bound *bounds = sx_hlo_bounds(program->writer, &n);
    e->has_bounds = program->bounds;
    e->bounds = sx_alloc((size_t)n + 1, sizeof(*e->bounds));
    for (int i = 0; i < n && e->bounds != NULL; i++) {
        e->bounds[i] = bounds[i];
        e->bounds[i].name = sx_strdup(bounds[i].name);
        e->n_bounds = i + 1;
        if (e->bounds[i].name == NULL) {
            return sx_no_memory("for an executable");
        }
    }
    return e->bounds == NULL ? sx_no_memory("for an executable") : SX_OK;
}

/* Results of the program, of each replica. */
static size_t result_count(const pjrt_executable *e)
{
    return (size_t)e->head.n_results + e->has_bounds;
}

/* Writes the program to a file named by the FNV-1a hash of its text. */
static sx_status dump(const sx_pjrt_platform *p, const sx_pjrt_module *program)
{
    uint64_t hash = 14695981039346656037u;
    char path[SX_PJRT_PATH_BYTES];
    for (size_t i = 0; i < program->size; i++) {
        hash = (hash ^ (uint8_t)program->text[i]) * 1099511628211u;
    }
    snprintf(path, sizeof(path), "%s/program-%016llx.mlir", p->dump_dir, (unsigned long long)hash);
    return sx_pjrt_module_save(program, path);
}

/* Whether it is XLA's CPU, whose programs need care that those of other devices do not. */
static bool is_cpu(const sx_pjrt_platform *p)
{
    return strcmp(p->client->platform, "cpu") == 0;
}

static sx_status inspect(sx_pjrt_platform *p, pjrt_executable *e, const sx_pjrt_module_options *o)
{
    void *executable = NULL;
    SX_TRY(sx_pjrt_executable_of(p->client, e->loaded, &executable));
    sx_pjrt_pointer outputs = SX_PJRT_ARGS(pointer, .object = executable);
    sx_status status = sx_pjrt_call(p->client->plugin, SX_PJRT_NUM_OUTPUTS, &outputs);
    if (status == SX_OK && (size_t)outputs.value != result_count(e)) {
        status = sx_error(SX_INTERNAL, "the compiled program has %zu results, expected %zu",
                          (size_t)outputs.value, result_count(e));
    }
    if (p->head.timeline != NULL) { /* what is timed is to be named */
        sx_pjrt_note_names(p, executable);
    }
    sx_pjrt_end(p->client->plugin, SX_PJRT_EXECUTABLE_DESTROY, executable);
    char division[64]; /* with shards, the replicas change no bit */
    char threads[48] = "";
    if (o->shards > 0) {
        snprintf(division, sizeof(division), "%d shards", o->shards);
    } else if (p->processes > 1) { /* which may add up in another order than one would */
        snprintf(division, sizeof(division), "%d replicas in %d processes%s", p->replicas,
                 p->processes, p->ordered_sums ? ", sums in order" : "");
    } else {
        snprintf(division, sizeof(division), "%d replicas%s", p->replicas,
                 p->ordered_sums ? ", sums in order" : "");
    }
    if (is_cpu(p)) { /* one for each processor or device */
        snprintf(threads, sizeof(threads), ", %d threads",
                 SX_MAX(sx_cpu_affinity(NULL, 0), p->client->n_devices));
    }
    snprintf(e->numerics, sizeof(e->numerics), "pjrt %s, %s, %s%s, loop of %lld",
             p->client->platform, p->client->version, division, threads,
             (long long)(o->steps > 1 ? o->steps : 1));
    e->info.numerics = e->numerics;
    e->info.shards = o->shards > 0 ? o->shards : p->replicas;
    return status;
}

/* Adds the node, the user's line and the file of the whole program to the plugin's message. */
static sx_status explain(const sx_pjrt_platform *p, const sx_graph *g, sx_status status)
{
    bool named;
    status = sx_pjrt_locate(g, status, &named);
    const char *what =
        named ? "the device's compiler rejected the program" : "compiling the program";
    return p->dump_dir != NULL
               ? sx_status_annotate(status, __FILE__, __LINE__, "%s (see %s)", what, p->dump_dir)
               : sx_status_annotate(status, __FILE__, __LINE__,
                                    "%s (use --dump-stablehlo DIR to see it)", what);
}

static sx_status compile_text(sx_pjrt_platform *p, const sx_pjrt_module_options *how,
                              const sx_cancel *cancel, const sx_pjrt_module *program,
                              pjrt_executable *e)
{
    sx_pjrt_compiled made;
    const sx_pjrt_compile_request request = {.text = program->text,
                                             .size = program->size,
                                             .replicas = p->replicas,
                                             .ids = p->ids,
                                             .unfused = how->shards > 0 && is_cpu(p),
                                             .cache_dir = p->cache_dir};
    SX_TRY(sx_pjrt_compile_within(p, &request, cancel, &made));
    e->loaded = made.loaded;
    e->info = (sx_executable_info){.argument_bytes = made.facts.argument_bytes,
                                   .output_bytes = made.facts.output_bytes,
                                   .alias_bytes = made.facts.alias_bytes,
                                   .temporary_bytes = made.facts.temporary_bytes,
                                   .code_bytes = made.facts.code_bytes,
                                   .flops = made.facts.flops,
                                   .from_cache = made.from_cache};
    return SX_OK;
}

static sx_status compile_into(sx_pjrt_platform *p, const sx_graph *g,
                              const sx_compile_options *options, pjrt_executable *e)
{
    bool bf16 = options->precision == SX_PRECISION_BF16;
    const sx_pjrt_module_options how = {
        .batch = options->batch,
        .replicas = p->replicas,
        .whole_results = p->processes > 1,
        .shards = options->shards > 1 ? options->shards : 0,
        .ordered_sums = p->ordered_sums,
        .steps = options->steps,
        .ok_output = options->ok_output,
        .any_batch = options->any_batch,
        .donate_inputs = options->donate_inputs,
        .hlo = {.bf16_products = bf16,
                .wide_products = is_cpu(p),
                .precision = bf16 ? "DEFAULT" : "HIGHEST",
                .max_trips = options->max_trips},
    };
    sx_pjrt_module program = {0};
    e->head.n_args = g->n_args + (options->steps > 1);
    e->head.n_results = g->n_results + (options->steps > 1);
    SX_TRY(sx_pjrt_module_create(g, &how, &program));
    sx_status status = allocate(e);
    if (status == SX_OK) {
        status = keep_bounds(e, &program);
    }
    if (status == SX_OK) {
        describe(e, g, &how);
    }
    if (status == SX_OK && p->dump_dir != NULL) {
        status = dump(p, &program);
    }
    if (status == SX_OK) {
        status = explain(p, g, compile_text(p, &how, options->cancel, &program, e));
    }
    sx_pjrt_module_destroy(&program);
    return status != SX_OK ? status : inspect(p, e, &how);
}

sx_status sx_pjrt_executable_create(sx_platform *platform, const sx_graph *graph,
                                    const sx_compile_options *options, sx_executable **out)
{
    pjrt_executable *e = sx_alloc(1, sizeof(*e));
    if (e == NULL) {
        return sx_no_memory("for an executable");
    }
    e->head.platform = platform;
    atomic_init(&e->head.refs, 1);
    sx_status status = compile_into((sx_pjrt_platform *)platform, graph, options, e);
    if (status != SX_OK) {
        sx_pjrt_executable_destroy(&e->head);
        return status;
    }
    *out = &e->head;
    return SX_OK;
}

/* ---- Runs ---- */

/* Of the last execution: the arrays of the result for bounds. */
static void drop_reached(pjrt_run *run)
{
    const pjrt_executable *e = (const pjrt_executable *)run->head.executable;
    if (e == NULL || !e->has_bounds || run->result_arrays == NULL) {
        return;
    }
    const sx_pjrt_platform *p = (const sx_pjrt_platform *)e->head.platform;
    for (int r = 0; r < p->local; r++) {
        void **array = &run->result_arrays[(size_t)r * result_count(e) + (size_t)e->head.n_results];
        sx_pjrt_array_destroy(p->client, *array);
        *array = NULL;
    }
}

void sx_pjrt_run_destroy(sx_run *head)
{
    pjrt_run *run = (pjrt_run *)head;
    drop_reached(run);
    sx_free(run->reached);
    sx_free(run->arg_arrays);
    sx_free(run->result_arrays);
    sx_free(run->events);
    sx_free(run->watched);
    sx_free(run->arg_lists);
    sx_free(run->result_lists);
    sx_run_deinit(head);
    sx_free(run);
}

sx_status sx_pjrt_run_create(sx_executable *executable, sx_run **out)
{
    const pjrt_executable *e = (const pjrt_executable *)executable;
    const size_t n_args = (size_t)executable->n_args, n_results = result_count(e),
                 n = (size_t)((const sx_pjrt_platform *)executable->platform)->local;
    pjrt_run *run = sx_alloc(1, sizeof(*run));
    if (run == NULL) {
        return sx_no_memory("for a run");
    }
    run->device = executable->platform->devices[0]->name;
    run->arg_arrays = sx_alloc(n_args * n + 1, sizeof(*run->arg_arrays));
    run->result_arrays = sx_alloc(n_results * n + 1, sizeof(*run->result_arrays));
    run->events = sx_alloc(2 * n, sizeof(*run->events));
    run->watched = sx_alloc(2 * n, sizeof(*run->watched));
    run->reached = sx_alloc(n, sizeof(*run->reached));
    run->arg_lists = sx_alloc(n, sizeof(*run->arg_lists));
    run->result_lists = sx_alloc(n, sizeof(*run->result_lists));
    sx_status status = run->arg_arrays == NULL || run->result_arrays == NULL ||
                               run->events == NULL || run->watched == NULL ||
                               run->arg_lists == NULL || run->result_lists == NULL ||
                               run->reached == NULL
                           ? sx_no_memory("for a run")
                           : sx_run_init(&run->head, executable);
    if (status != SX_OK) {
        sx_pjrt_run_destroy(&run->head);
        return status;
    }
    for (size_t r = 0; r < n; r++) {
        run->arg_lists[r] = run->arg_arrays + r * n_args;
        run->result_lists[r] = run->result_arrays + r * n_results;
    }
    *out = &run->head;
    return SX_OK;
}

/* ---- Execute ---- */

static sx_pjrt_buffer *result_buffer(const pjrt_executable *e, sx_device_buffer *const *args,
                                     sx_device_buffer *const *outputs, int i)
{
    int arg = e->head.result_args[i];
    return (sx_pjrt_buffer *)(arg >= 0 ? args[arg] : outputs[i]);
}

static sx_status place_args(pjrt_run *run, sx_device_buffer *const *args, int replicas)
{
    const pjrt_executable *e = (const pjrt_executable *)run->head.executable;
    for (int i = 0; i < e->head.n_args; i++) {
        sx_pjrt_buffer *b = (sx_pjrt_buffer *)args[i];
        pthread_mutex_lock(&b->lock);
        sx_status status = sx_pjrt_buffer_place(b, e->cuts[i]);
        for (int r = 0; r < replicas; r++) {
            run->arg_arrays[r * e->head.n_args + i] = b->arrays[r];
        }
        pthread_mutex_unlock(&b->lock);
        SX_TRY(status, "argument %d", i);
    }
    return SX_OK;
}

/* What the execution has taken, accepted or not, is no longer the buffers'. */
static void give_up(const pjrt_executable *e, sx_device_buffer *const *args)
{
    for (int i = 0; i < e->head.n_args; i++) {
        sx_pjrt_buffer *b = (sx_pjrt_buffer *)args[i];
        if (e->donated[i]) {
            pthread_mutex_lock(&b->lock);
            sx_pjrt_buffer_give_up(b);
            pthread_mutex_unlock(&b->lock);
        }
    }
}

/* Stores the results' arrays in their buffers. */
static void take_results(const pjrt_run *run, sx_device_buffer *const *args,
                         sx_device_buffer *const *outputs)
{
    const pjrt_executable *e = (const pjrt_executable *)run->head.executable;
    for (int i = 0; i < e->head.n_results; i++) {
        sx_pjrt_buffer *b = result_buffer(e, args, outputs, i);
        pthread_mutex_lock(&b->lock);
        sx_pjrt_buffer_take(b, run->result_arrays + i, (int)result_count(e),
                            e->cuts[e->head.n_args + i]);
        pthread_mutex_unlock(&b->lock);
    }
}

/* Tells the timeline when the execution ends: with its outputs, of which one that the next
 * execution does not take is asked. */
static void trace(const pjrt_run *run, int64_t start_ns)
{
    const pjrt_executable *e = (const pjrt_executable *)run->head.executable;
    const sx_pjrt_platform *p = (const sx_pjrt_platform *)e->head.platform;
    int i = 0;
    while (i + 1 < e->head.n_results && e->head.result_args[i] >= 0) {
        i++;
    }
    if (e->head.n_results > 0) {
        sx_pjrt_trace(p->client, p->head.timeline, SX_SPAN_COMPUTE, start_ns, 0,
                      run->result_arrays[i]);
    }
}

/* After a rejected execution: donated arrays may be lost anyway. */
static void find_lost(const pjrt_executable *e, sx_device_buffer *const *args,
                      const sx_pjrt_platform *p)
{
    for (int i = 0; i < e->head.n_results; i++) {
        int arg = e->head.result_args[i];
        sx_pjrt_buffer *b = arg < 0 ? NULL : (sx_pjrt_buffer *)args[arg];
        if (b == NULL) {
            continue;
        }
        pthread_mutex_lock(&b->lock);
        if (b->arrays[0] != NULL && sx_pjrt_array_is_gone(p->client, b->arrays[0])) {
            sx_pjrt_buffer_lose(b);
        }
        pthread_mutex_unlock(&b->lock);
    }
}

static sx_status submit(pjrt_run *run, sx_device_buffer *const *args,
                        sx_device_buffer *const *outputs)
{
    const pjrt_executable *e = (const pjrt_executable *)run->head.executable;
    const sx_pjrt_platform *p = (const sx_pjrt_platform *)e->head.platform;
    const sx_device_buffer *any = e->head.n_args > 0 ? args[0] : NULL;
    for (int i = 0; any == NULL && i < e->head.n_results; i++) {
        any = outputs[i];
    }
    drop_reached(run);
    sx_pjrt_execute_options options = {.struct_size =
                                           SX_PJRT_INNER_SIZE(p->client->plugin, execute_options)};
    sx_pjrt_execute call = SX_PJRT_ARGS(execute, .executable = e->loaded, .options = &options,
                                        .arguments = run->arg_lists, .n_devices = (size_t)p->local,
                                        .n_args = (size_t)e->head.n_args,
                                        .outputs = run->result_lists, .events = run->events);
    const int on = any == NULL ? 0 : any->device->index;
    run->device = p->devices[on]->name;
    if (p->replicas == 1) { /* a portable program runs on the device of its arguments */
        call.device = p->client->devices[sx_pjrt_number(p, on)];
    }
    const int64_t start = sx_timeline_now(p->head.timeline);
    sx_status status = sx_pjrt_call(p->client->plugin, SX_PJRT_EXECUTE, &call);
    give_up(e, args);
    if (status != SX_OK) {
        find_lost(e, args, p);
        return status;
    }
    trace(run, start);
    take_results(run, args, outputs);
    for (int r = 0; r < p->local && e->has_bounds; r++) {
        const sx_type type = sx_scalar_type(SX_I32);
        run->reached[r] = 0;
        sx_pjrt_keep_first(
            &status,
            sx_pjrt_begin_get(
                p->client,
                run->result_arrays[(size_t)r * result_count(e) + (size_t)e->head.n_results], &type,
                &run->reached[r], &run->events[p->local + r]));
    }
    for (int k = 0; k < 2 * p->local && status != SX_OK; k++) { /* it has started all the same */
        sx_status_free(sx_pjrt_await(p->client, run->events[k]));
        run->events[k] = NULL;
    }
    return status;
}

/* Waits for the copies of an execution that did not start, because the caller may free the memory
 * that it lent. */
static void settle_args(const pjrt_executable *e, sx_device_buffer *const *args)
{
    for (int i = 0; i < e->head.n_args; i++) {
        sx_pjrt_buffer *b = (sx_pjrt_buffer *)args[i];
        pthread_mutex_lock(&b->lock);
        sx_status_free(sx_pjrt_buffer_settle(b));
        pthread_mutex_unlock(&b->lock);
    }
}

sx_status sx_pjrt_run_submit(sx_run *head, sx_device_buffer *const *args,
                             sx_device_buffer *const *outputs)
{
    pjrt_run *run = (pjrt_run *)head;
    sx_pjrt_platform *p = (sx_pjrt_platform *)head->executable->platform;
    if (p->replicas > 1) {
        pthread_mutex_lock(&p->lock);
    }
    sx_status status = place_args(run, args, p->local);
    status = status != SX_OK ? status : submit(run, args, outputs);
    if (status != SX_OK) {
        settle_args((const pjrt_executable *)head->executable, args);
    }
    if (p->replicas > 1) {
        pthread_mutex_unlock(&p->lock);
    }
    SX_TRY(status, "executing on %s", run->device);
    return SX_OK;
}

static void end_run(pjrt_run *run, sx_status status)
{
    const pjrt_executable *e = (const pjrt_executable *)run->head.executable;
    const sx_pjrt_platform *p = (const sx_pjrt_platform *)e->head.platform;
    for (int r = 0; r < p->local && e->has_bounds && status == SX_OK; r++) {
        if (run->reached[r] > 0 && run->reached[r] <= e->n_bounds) {
            const sx_hlo_bound *bound = &e->bounds[run->reached[r] - 1];
            sx_run_lose(&run->head);
            sx_run_end(&run->head, sx_error(bound->limit ? SX_RESOURCE_EXHAUSTED : SX_OUT_OF_RANGE,
                                            "while \"%s\": the condition is still true after %lld "
                                            "iterations%s",
                                            bound->name, (long long)bound->trips,
                                            bound->limit ? ", the limit" : ""));
            return;
        }
    }
    if (status != SX_OK) {
        status = sx_status_annotate(status, __FILE__, __LINE__, "executing on %s", run->device);
    }
    sx_run_end(&run->head, status);
}

void sx_pjrt_run_await(sx_run *head)
{
    pjrt_run *run = (pjrt_run *)head;
    const sx_pjrt_platform *p = (const sx_pjrt_platform *)head->executable->platform;
    sx_status first = SX_OK;
    for (int k = 0; k < 2 * p->local; k++) {
        sx_pjrt_keep_first(&first, sx_pjrt_await(p->client, run->events[k]));
        run->events[k] = NULL;
    }
    end_run(run, first);
}

/* One event of a replica has come; the last of them ends the run. On a thread of the plugin's. */
static void count_answer(pjrt_run *run, sx_status status)
{
    sx_status none = SX_OK;
    if (status != SX_OK && !atomic_compare_exchange_strong(&run->fault, &none, status)) {
        sx_status_free(status);
    }
    if (atomic_fetch_sub(&run->waiting, 1) == 1) {
        end_run(run, atomic_exchange(&run->fault, SX_OK));
    }
}

/* The callback ends the event, as no other thread may use it any more. */
static void on_ready(void *error, void *user)
{
    const struct watched *w = user;
    pjrt_run *run = w->run;
    const sx_pjrt_platform *p = (const sx_pjrt_platform *)run->head.executable->platform;
    sx_pjrt_end(p->client->plugin, SX_PJRT_EVENT_DESTROY, w->event);
    count_answer(run, sx_pjrt_status(p->client->plugin, "Event_OnReady", error));
}

void sx_pjrt_run_watch(sx_run *head)
{
    pjrt_run *run = (pjrt_run *)head;
    const sx_pjrt_platform *p = (const sx_pjrt_platform *)head->executable->platform;
    atomic_store(&run->waiting, 2 * p->local + 1);
    for (int r = 0; r < 2 * p->local; r++) {
        run->watched[r] = (struct watched){run, run->events[r]};
        run->events[r] = NULL;
        if (run->watched[r].event == NULL) {
            count_answer(run, SX_OK);
            continue;
        }
        sx_pjrt_on_ready args = SX_PJRT_ARGS(on_ready, .event = run->watched[r].event,
                                             .callback = on_ready, .user = &run->watched[r]);
        sx_status status = sx_pjrt_call(p->client->plugin, SX_PJRT_EVENT_ON_READY, &args);
        if (status != SX_OK) {
            sx_pjrt_end(p->client->plugin, SX_PJRT_EVENT_DESTROY, run->watched[r].event);
            count_answer(run, status);
        }
    }
    count_answer(run, SX_OK); /* the loop's own: the run has not ended under it */
}

sx_status sx_pjrt_executable_info(const sx_executable *head, sx_executable_info *out)
{
    *out = ((const pjrt_executable *)head)->info;
    return SX_OK;
}
