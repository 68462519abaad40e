/* Clients, and devices with their threads: see objects.h. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "pjrt_ref/fault.h"
#include "pjrt_ref/objects.h"

typedef struct ref_job {
    ref_job_fn *fn;
    void *user;
    struct ref_job *next;
} ref_job;

/* ---- The thread ---- */

/* The next piece of work; NULL = it is over. */
static ref_job *next_job(ref_engine *d)
{
    pthread_mutex_lock(&d->lock);
    while (d->first == NULL && !d->is_over) {
        pthread_cond_wait(&d->changed, &d->lock);
    }
    ref_job *job = d->first;
    if (job != NULL) {
        d->first = job->next;
        d->last = d->first == NULL ? NULL : d->last;
    }
    pthread_mutex_unlock(&d->lock);
    return job;
}

static void *work(void *user)
{
    ref_engine *d = user;
    ref_job *job;
    while ((job = next_job(d)) != NULL) {
        if (d->client->delay_us > 0) {
            usleep((useconds_t)d->client->delay_us);
        }
        job->fn(job->user);
        sx_free(job);
    }
    return NULL;
}

sx_status ref_device_do(ref_device *device, ref_engine_kind kind, ref_job_fn *fn, void *user)
{
    ref_engine *d = &device->engines[kind];
    ref_job *job = sx_alloc(1, sizeof(*job));
    if (job == NULL) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for work of a device");
    }
    *job = (ref_job){.fn = fn, .user = user};
    pthread_mutex_lock(&d->lock);
    if (d->last == NULL) {
        d->first = job;
    } else {
        d->last->next = job;
    }
    d->last = job;
    pthread_cond_signal(&d->changed);
    pthread_mutex_unlock(&d->lock);
    return SX_OK;
}

/* ---- Devices ---- */

static void describe(ref_device *d, ref_client *c, int process, int index, int id)
{
    char kind[REF_WORDS];
    d->client = c;
    d->process = process;
    d->index = index;
    d->id = id;
    d->self = d;
    d->coords[0] = id / 2; /* as a v5e host: two in a row */
    d->coords[1] = id % 2;
    d->memory.limit = ref_setting("limit", 0);
    snprintf(d->kind, sizeof(d->kind), "%s", ref_setting_text("kind", "cpu", kind));
    snprintf(d->text, sizeof(d->text), "pjrt_ref(id=%d)", id);
    d->attributes[0] = (sx_pjrt_named){.struct_size = sizeof(sx_pjrt_named),
                                       .name = "coords",
                                       .name_size = 6,
                                       .type = SX_PJRT_INT64_LIST,
                                       .int64_list = d->coords,
                                       .value_size = 3};
    d->attributes[1] = (sx_pjrt_named){.struct_size = sizeof(sx_pjrt_named),
                                       .name = "core_on_chip",
                                       .name_size = 12,
                                       .type = SX_PJRT_INT64,
                                       .value_size = 1};
}

static bool start(ref_engine *e, ref_client *c)
{
    e->client = c;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
    if (pthread_create(&e->thread, NULL, work, e) == 0) {
        return true;
    }
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    return false;
}

static void end(ref_engine *e)
{
    pthread_mutex_lock(&e->lock);
    e->is_over = true;
    pthread_cond_signal(&e->changed);
    pthread_mutex_unlock(&e->lock);
    pthread_join(e->thread, NULL);
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
}

/* The engines that have been started end in order: what is computed waits for what is copied in. */
static void end_engines(ref_device *d, int n)
{
    static const ref_engine_kind order[REF_ENGINES] = {REF_COPIES_IN, REF_COMPUTES, REF_COPIES_OUT};
    for (int i = 0; i < REF_ENGINES; i++) {
        if ((int)order[i] < n) {
            end(&d->engines[order[i]]);
        }
    }
}

static bool start_engines(ref_device *d, ref_client *c)
{
    for (int i = 0; i < REF_ENGINES; i++) {
        if (!start(&d->engines[i], c)) {
            end_engines(d, i);
            return false;
        }
    }
    return true;
}

/* ---- Pinned memory ---- */

/* The index of the memory that has the byte; with NULL, of one that is free. REF_MAX_PINNED = none.
 */
static int find_pinned(const ref_client *c, const char *byte)
{
    int i = 0;
    while (i < REF_MAX_PINNED &&
           (byte == NULL ? c->pinned[i].data != NULL
                         : c->pinned[i].data == NULL || byte < c->pinned[i].data ||
                               byte >= c->pinned[i].data + c->pinned[i].size)) {
        i++;
    }
    return i;
}

sx_status ref_client_pin(ref_client *c, const void *data, size_t size)
{
    pthread_mutex_lock(&c->pinning);
    const int at = find_pinned(c, NULL);
    const bool can =
        data != NULL && size > 0 && at < REF_MAX_PINNED && find_pinned(c, data) == REF_MAX_PINNED;
    if (can) {
        c->pinned[at].data = data;
        c->pinned[at].size = size;
    }
    pthread_mutex_unlock(&c->pinning);
    return can ? SX_OK
               : sx_error(SX_INVALID_ARGUMENT, "memory that is pinned already, or too much of it");
}

sx_status ref_client_unpin(ref_client *c, const void *data)
{
    pthread_mutex_lock(&c->pinning);
    const int at = data != NULL ? find_pinned(c, data) : REF_MAX_PINNED;
    const bool can = at < REF_MAX_PINNED && c->pinned[at].data == data;
    if (can) {
        c->pinned[at].data = NULL;
    }
    pthread_mutex_unlock(&c->pinning);
    return can ? SX_OK : sx_error(SX_INVALID_ARGUMENT, "memory that is not pinned");
}

bool ref_client_has_pinned(ref_client *c, const void *data)
{
    bool any = false;
    pthread_mutex_lock(&c->pinning);
    for (int i = 0; i < REF_MAX_PINNED && data == NULL; i++) {
        any = any || c->pinned[i].data != NULL;
    }
    any = any || (data != NULL && find_pinned(c, data) < REF_MAX_PINNED);
    pthread_mutex_unlock(&c->pinning);
    return any;
}

/* ---- Clients ---- */

static void client_free(ref_client *c)
{
    pthread_mutex_destroy(&c->pinning);
    pthread_mutex_destroy(&c->submitting);
    ref_peers_destroy(c->peers);
    sx_free(c->devices);
    sx_free(c->list);
    sx_free(c);
}

void ref_client_destroy(ref_client *c)
{
    for (int i = 0; i < c->n_devices; i++) {
        end_engines(c->list[c->first + i], REF_ENGINES);
    }
    client_free(c);
}

sx_status ref_client_create(const int *counts, int process, int processes, ref_peers *peers,
                            ref_client **out)
{
    char text[REF_WORDS];
    ref_client *c = sx_alloc(1, sizeof(*c));
    if (c == NULL) {
        ref_peers_destroy(peers);
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for a client");
    }
    pthread_mutex_init(&c->submitting, NULL);
    pthread_mutex_init(&c->pinning, NULL);
    c->process = process;
    c->peers = peers;
    for (int i = 0; i < processes; i++) {
        c->first += i < process ? counts[i] : 0;
        c->n_all += counts[i];
    }
    c->devices = sx_alloc((size_t)c->n_all, sizeof(*c->devices));
    c->list = sx_alloc((size_t)c->n_all, sizeof(*c->list));
    if (c->devices == NULL || c->list == NULL) {
        client_free(c);
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory for %d devices", c->n_all);
    }
    c->delay_us = ref_setting("delay", 20);
    c->step_us = ref_setting("step", 0);
    c->mib_us = ref_setting("mib", 0);
    c->out_us = ref_setting("out", 0);
    snprintf(c->platform, sizeof(c->platform), "%s", ref_setting_text("platform", "cpu", text));
    snprintf(c->version, sizeof(c->version), "pjrt_ref %s", SX_VERSION);
    for (int of = 0, id = 0; of < processes; of++) {
        for (int i = 0; i < counts[of]; i++, id++) {
            describe(&c->devices[id], c, of, i, id);
            c->list[id] = &c->devices[id];
        }
    }
    while (c->n_devices < counts[process]) {
        if (!start_engines(c->list[c->first + c->n_devices], c)) {
            ref_client_destroy(c);
            return sx_error(SX_RESOURCE_EXHAUSTED, "no thread for a device");
        }
        c->n_devices++;
    }
    *out = c;
    return SX_OK;
}
