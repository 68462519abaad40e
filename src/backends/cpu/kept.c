/* What the first execution of a program makes and all later ones keep: what follows from frozen
 * arguments, by all workers, group by group (once.c). An argument whose value is read from a source
 * is read just before the step that needs it. */
#include <string.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/onednn2.h"
#include "base/checked.h"
#include "base/memory.h"

void sx_cpu_set_block_bases(sx_cpu_run *r, const sx_cpu_executable *e)
{
    const sx_cpu_plan *p = e->plan;
    for (int s = 0; s < p->shards; s++) {
        for (int i = 0; i < p->n_large; i++) {
            r->bases[s][p->first_large + i] = e->blocks[i] != NULL ? e->blocks[i]->data : NULL;
        }
    }
}

/* Frozen arguments that one worker has read from their sources for one group. */
typedef struct reading {
    char *memory; /* they lie here one after another */
    size_t capacity, used;
    int *of; /* [args]: the group that it was read for last, + 1 */
} reading;

/* What workers take one by one: arguments to fetch, then the groups of what follows from frozen
 * arguments (once.c). */
typedef struct making {
    sx_cpu_run *r;
    sx_device_buffer *const *args;
    atomic_int next;
    char *memory; /* [workers] of `bytes`: SX_CPU_ONCE */
    size_t bytes;
    char **bases;      /* [workers][2 variants][spaces] */
    reading *readings; /* [workers] */
} making;

/* The argument that the part of the step that runs once reads as operand k, if its value is not in
 * memory; or -1. */
static int absent_arg(const making *m, const sx_cpu_step *s, int k)
{
    const int arg = s->in[k].space - SX_CPU_ARGS;
    const bool is_arg = arg >= 0 && arg < m->r->head.executable->n_args;
    const bool reads = s->once || (s->prepare_once != NULL && k < 32 && (s->prepares >> k & 1));
    return is_arg && reads && atomic_load(&((sx_cpu_buffer *)m->args[arg])->absent) ? arg : -1;
}

/* Whether the value of operand k is read to where the step's result lies. */
static bool lies_over(const sx_cpu_step *s, int k)
{
    return k < 32 && (s->over >> k & 1) != 0;
}

static int64_t room_of(const making *m, int arg)
{
    return sx_cpu_round_up(sx_type_bytes(&m->args[arg]->type)) + SX_CPU_ALIGN;
}

/* Reads what the step needs and nobody has, just before it runs; others may read it, too. */
static sx_status read_for_step(making *m, const sx_cpu_step *s, int group, int worker)
{
    const sx_cpu_plan *p = sx_cpu_plan_of(m->r);
    reading *r = &m->readings[worker];
    char **bases = m->bases + (ptrdiff_t)worker * 2 * p->n_spaces;
    for (int k = 0; k < s->n_in; k++) {
        const int arg = absent_arg(m, s, k);
        if (arg < 0 || r->of[arg] == group + 1) {
            continue;
        }
        sx_cpu_buffer *b = (sx_cpu_buffer *)m->args[arg];
        if (!p->arg_read_once[arg]) {
            SX_TRY(sx_cpu_fetch(b));
            continue;
        }
        const bool over = lies_over(s, k);
        char *to = over ? bases[s->out[0].space] + s->out[0].offset : r->memory + r->used;
        SX_TRY(b->source->read(b->source->user, to));
        bases[SX_CPU_ARGS + arg] = bases[p->n_spaces + SX_CPU_ARGS + arg] = to;
        r->used += over ? 0 : (size_t)room_of(m, arg);
        r->of[arg] = group + 1;
    }
    return SX_OK;
}

/* Memory for what the group's steps read. */
static sx_status make_room(const making *m, int group, reading *r)
{
    const sx_cpu_plan *p = sx_cpu_plan_of(m->r);
    int64_t room = 0;
    bool enough = true;
    for (int i = p->once_groups[group]; i < p->once_groups[group + 1]; i++) {
        const sx_cpu_step *s = &p->steps[0][p->once_order[i]];
        for (int k = 0; k < s->n_in && enough; k++) {
            const int arg = absent_arg(m, s, k);
            enough = arg < 0 || lies_over(s, k) || sx_add_i64(room, room_of(m, arg), &room);
        }
    }
    if (enough && (size_t)room > r->capacity) {
        sx_free_aligned(r->memory);
        r->memory = sx_alloc_aligned((size_t)room, SX_CPU_ALIGN);
        r->capacity = r->memory != NULL ? (size_t)room : 0;
        enough = r->memory != NULL;
    }
    r->used = 0;
    return enough ? SX_OK : sx_no_memory("to prepare a program's frozen values");
}

static void make_group(making *m, int group, int worker)
{
    const sx_cpu_plan *p = sx_cpu_plan_of(m->r);
    const sx_cpu_call first = sx_cpu_call_of(m->r, 0);
    sx_status status = make_room(m, group, &m->readings[worker]);
    for (int k = p->once_groups[group]; k < p->once_groups[group + 1]; k++) {
        if (status == SX_OK) {
            status = read_for_step(m, &p->steps[0][p->once_order[k]], group, worker);
        }
        if (status != SX_OK) {
            sx_cpu_fail(&first, status);
        }
        if (sx_cpu_has_failed(&first)) {
            return;
        }
        for (int v = 0; v < p->n_variants; v++) {
            const sx_cpu_step *s = &p->steps[v][p->once_order[k]];
            sx_cpu_call call = sx_cpu_call_of(m->r, v == 0 ? 0 : p->larger);
            call.end = s->range;
            call.bases = m->bases + ((ptrdiff_t)worker * 2 + v) * p->n_spaces;
            if (s->prepare_once != NULL && (!s->once || v == 0)) {
                s->prepare_once(s, &call);
            }
            if (s->once && v == 0) {
                s->run(s, &call);
            }
        }
    }
}

/* A group whose steps need scratch memory is left to the caller's thread: the run has one. */
static bool needs_scratch(const sx_cpu_plan *p, int group)
{
    bool needs = false;
    for (int k = p->once_groups[group]; k < p->once_groups[group + 1]; k++) {
        const sx_cpu_step *s = &p->steps[0][p->once_order[k]];
        needs = needs || (s->once && s->scratch_bytes > 0);
    }
    return needs;
}

static void make_groups(void *user, int worker)
{
    making *m = user;
    const sx_cpu_plan *p = sx_cpu_plan_of(m->r);
    for (int i = 0; i < p->n_once_groups && worker == 0; i++) {
        if (needs_scratch(p, i)) {
            make_group(m, i, worker);
        }
    }
    const int n_args = m->r->head.executable->n_args;
    for (int i; (i = atomic_fetch_add(&m->next, 1)) < n_args + p->n_once_groups;) {
        const int group = i >= n_args ? p->once_by_size[i - n_args] : -1;
        if (group >= 0 && !needs_scratch(p, group)) {
            make_group(m, group, worker);
        } else if (i < n_args && !p->arg_read_once[i]) {
            const sx_cpu_call call = sx_cpu_call_of(m->r, 0);
            sx_status status = sx_cpu_fetch((sx_cpu_buffer *)m->args[i]);
            if (status != SX_OK) {
                sx_cpu_fail(&call, status);
            }
        }
    }
}

enum { MAKE_ALONE = 1 << 20 }; /* bytes that are not worth other workers */

/* Runs the steps that the first execution alone runs. Large parts of what is kept are in made[]. */
static sx_status run_once(sx_cpu_run *r, sx_device_buffer *const *args, char *const *made)
{
    sx_cpu_platform *platform = sx_cpu_platform_of(r->head.executable);
    const sx_cpu_plan *p = sx_cpu_plan_of(r);
    for (int s = 0; s < p->shards; s++) {
        for (int i = 0; i < p->n_large; i++) {
            if (p->large[i].kept) {
                r->bases[s][p->first_large + i] = made[i];
            }
        }
    }
    const int n_args = r->head.executable->n_args;
    int64_t absent = 0;
    for (int i = 0; i < n_args; i++) {
        const sx_cpu_buffer *b = (const sx_cpu_buffer *)args[i];
        absent += atomic_load(&b->absent) ? sx_type_bytes(&b->head.type) : 0;
    }
    const int workers =
        p->kept_bytes + p->large_bytes + absent >= MAKE_ALONE ? platform->workers : 1;
    making m = {
        .r = r, .args = args, .bytes = (size_t)sx_cpu_round_up(p->once_bytes) + SX_CPU_ALIGN};
    size_t bytes;
    m.memory = sx_mul_size(m.bytes, (size_t)workers, &bytes) ? sx_alloc_aligned(bytes, SX_CPU_ALIGN)
                                                             : NULL;
    m.bases = sx_alloc((size_t)workers * 2, (size_t)p->n_spaces * sizeof(char *));
    m.readings = sx_alloc((size_t)workers, sizeof(*m.readings));
    int *of = sx_alloc((size_t)workers, ((size_t)n_args + 1) * sizeof(int));
    sx_status status = m.memory == NULL || m.bases == NULL || m.readings == NULL || of == NULL
                           ? sx_no_memory("to prepare a program's frozen values")
                           : SX_OK;
    for (int i = 0; i < workers * 2 && status == SX_OK; i++) {
        char **bases = m.bases + (ptrdiff_t)i * p->n_spaces;
        memcpy(bases, r->bases[i % 2 < p->n_variants && i % 2 != 0 ? p->larger : 0],
               (size_t)p->n_spaces * sizeof(char *));
        bases[SX_CPU_ONCE] = m.memory + (size_t)(i / 2) * m.bytes;
        m.readings[i / 2].of = of + (ptrdiff_t)(i / 2) * (n_args + 1);
    }
    if (status == SX_OK && workers > 1) {
        const int before = sx_dnn_enter(1);
        pthread_mutex_lock(&platform->running);
        sx_pool_run(platform->pool, make_groups, &m);
        pthread_mutex_unlock(&platform->running);
        sx_dnn_leave(before);
    } else if (status == SX_OK) {
        make_groups(&m, 0);
    }
    for (int i = 0; i < workers && m.readings != NULL; i++) {
        sx_free_aligned(m.readings[i].memory);
    }
    sx_free(m.readings);
    sx_free(of);
    sx_free_aligned(m.memory);
    sx_free(m.bases);
    return status == SX_OK ? atomic_exchange(&r->fault, SX_OK) : status;
}

/* Computes what follows from the frozen arguments, with the mutex held. */
static sx_status make_kept(sx_cpu_run *r, sx_device_buffer *const *args)
{
    sx_cpu_executable *e = (sx_cpu_executable *)r->head.executable;
    const sx_cpu_plan *p = e->plan;
    char **made = sx_alloc((size_t)p->n_large + 1, sizeof(*made));
    bool enough = made != NULL;
    for (int i = 0; i < p->n_large && enough; i++) {
        const int64_t bytes = p->large[i].bytes;
        if (p->large[i].kept) {
            made[i] = sx_alloc_aligned((size_t)bytes + SX_CPU_ALIGN, SX_CPU_ALIGN);
            enough = made[i] != NULL;
        }
        if (made[i] != NULL) { /* what pads it is compared, too */
            memset(made[i] + bytes - SX_CPU_ALIGN, 0, SX_CPU_ALIGN);
        }
    }
    sx_status status =
        enough ? run_once(r, args, made) : sx_no_memory("to prepare a program's frozen values");
    for (int i = 0; i < p->n_large && made != NULL; i++) {
        if (status == SX_OK && made[i] != NULL && e->blocks[i] == NULL) {
            status = sx_cpu_block_get(made[i], p->large[i].bytes, e->head.memory, &e->blocks[i]);
            sx_executable_hand_over(&e->head, status == SX_OK ? p->large[i].bytes : 0);
        } else {
            sx_free_aligned(made[i]);
        }
    }
    for (int i = 0; i < p->n_large && status == SX_OK; i++) {
        if (p->large[i].read_once) {
            sx_cpu_block_release(e->blocks[i]);
            e->blocks[i] = NULL;
        }
    }
    sx_free(made);
    return status;
}

/* What the first execution makes is there, and the run's bases refer to it. */
static sx_status need_kept(sx_cpu_run *r, sx_device_buffer *const *args)
{
    sx_cpu_executable *e = (sx_cpu_executable *)r->head.executable;
    if (r->has_blocks) {
        return SX_OK;
    }
    if (!atomic_load_explicit(&e->kept_is_made, memory_order_acquire)) {
        pthread_mutex_lock(&e->making);
        sx_status status = atomic_load(&e->kept_is_made) ? SX_OK : make_kept(r, args);
        if (status == SX_OK) {
            atomic_store_explicit(&e->kept_is_made, true, memory_order_release);
        }
        pthread_mutex_unlock(&e->making);
        SX_TRY(status);
    }
    sx_cpu_set_block_bases(r, e);
    r->has_blocks = true;
    return SX_OK;
}

sx_status sx_cpu_need_values(sx_cpu_run *r, sx_device_buffer *const *args)
{
    const sx_cpu_plan *p = sx_cpu_plan_of(r);
    SX_TRY(need_kept(r, args));
    for (int i = 0; i < r->head.executable->n_args; i++) {
        if (!p->arg_read_once[i]) {
            SX_TRY(sx_cpu_fetch((sx_cpu_buffer *)args[i]));
        }
    }
    return SX_OK;
}
