/* How the thread of a lifecycle loads a version, in the room that the models may take; see
 * lifecycle.h. */
#include <inttypes.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "serve/lifecycle_internal.h"

enum { ROOM_LOOK_MS = 50 }; /* whether another model has become idle */

/* ---- On a thread of its own ---- */

struct loading {
    sx_timed_call call;
    const sx_serve_model_ops *ops;
    void *ops_user;
    bool warm_up;
    sx_warmup_options warmup;
    char *dir;
    sx_cancel cancel; /* requested when nobody waits any more */
    bool loaded;      /* the model is owned by this call */
    void *model;
    sx_status status;
};

static void run_loading(sx_timed_call *call)
{
    struct loading *l = (struct loading *)call;
    l->status = l->ops->load(l->ops_user, l->dir, &l->cancel, &l->model);
    l->loaded = l->status == SX_OK;
    if (l->loaded && l->warm_up) {
        l->status = sx_warmup(l->dir, l->ops, l->model, &l->warmup, &l->cancel);
    }
}

static void destroy_loading(sx_timed_call *call)
{
    struct loading *l = (struct loading *)call;
    if (l->loaded) {
        l->ops->unload(l->model);
    }
    sx_status_free(l->status);
    sx_free(l->dir);
    sx_free(l);
}

/* Loads a version on its own thread. A load that does not end in time is returned in `*out_hung`,
 * with an error. */
static sx_status load_servable(sx_lifecycle *lc, int64_t version, const char *dir, sx_served **out,
                               sx_timed_call **out_hung)
{
    sx_served *servable = sx_alloc(1, sizeof(*servable));
    struct loading *l = sx_alloc(1, sizeof(*l));
    char *copy = sx_strdup(dir);
    if (servable == NULL || l == NULL || copy == NULL) {
        sx_free(servable);
        sx_free(l);
        sx_free(copy);
        return sx_no_memory("loading a model");
    }
    *l = (struct loading){.call = {.run = run_loading, .destroy = destroy_loading},
                          .ops = lc->config.ops,
                          .ops_user = lc->config.ops_user,
                          .warm_up = lc->config.warm_up,
                          .warmup = lc->config.warmup,
                          .dir = copy};
    sx_cancel_init(&l->cancel, INT64_MAX);
    sx_status status = sx_timed_call_start(&l->call);
    if (status != SX_OK) {
        sx_free(servable);
        return status;
    }
    if (!sx_lifecycle_wait_for_call(lc, &l->call, lc->config.load_timeout_seconds)) {
        sx_free(servable);
        sx_cancel_request(&l->cancel);
        *out_hung = &l->call;
        return sx_error(SX_DEADLINE_EXCEEDED, "loading %s did not finish within %g s", dir,
                        lc->config.load_timeout_seconds);
    }
    status = l->status;
    l->status = SX_OK;
    if (status == SX_OK) {
        atomic_init(&servable->users, 1);
        servable->lifecycle = lc;
        servable->version = version;
        servable->source = lc->source;
        servable->model = l->model;
        servable->signatures = l->ops->signatures(l->model, &servable->signature_count);
        status = sx_lifecycle_add_lines(lc, servable);
    }
    if (status == SX_OK) {
        l->loaded = false;
        *out = servable;
    } else {
        sx_lifecycle_remove_lines(servable);
        sx_free(servable);
    }
    sx_timed_call_release(&l->call);
    return status;
}

/* ---- The room for it ---- */

static void end_outage(sx_lifecycle *lc)
{
    if (lc->outage_since_ns != 0) {
        sx_log(SX_LOG_WARN, "model %s: was not served for %.3f s", lc->name,
               (double)(sx_now_ns() - lc->outage_since_ns) / 1e9);
        lc->outage_since_ns = 0;
    }
}

size_t sx_lifecycle_expected_bytes(sx_lifecycle *lc, int64_t version)
{
    const size_t limit = sx_residency_limit(lc->config.residency);
    size_t bytes = 0;
    pthread_mutex_lock(&lc->mutex);
    const struct sx_version_row *row = sx_lifecycle_find_row(lc, version);
    if (row != NULL) {
        bytes = row->loaded_bytes > 0     ? row->loaded_bytes
                : row->file_bytes < limit ? (size_t)SX_MIN(2 * row->file_bytes, (uint64_t)limit)
                                          : (size_t)row->file_bytes;
    }
    pthread_mutex_unlock(&lc->mutex);
    return bytes;
}

/* Takes room for a version of the residency, if there is one; waits for others to leave.
 * UNAVAILABLE: they have not. */
static sx_status take_room(sx_lifecycle *lc, int64_t version, size_t *out_bytes)
{
    sx_residency *residency = lc->config.residency;
    *out_bytes = 0;
    if (residency == NULL) {
        return SX_OK;
    }
    const size_t limit = sx_residency_limit(residency),
                 bytes = sx_lifecycle_expected_bytes(lc, version);
    const int64_t deadline_ns = sx_now_ns() + (int64_t)(lc->config.load_timeout_seconds * 1e9);
    if (bytes > limit) {
        return sx_error(SX_RESOURCE_EXHAUSTED,
                        "version %" PRId64 " needs %zu bytes of memory; the models may take %zu "
                        "together",
                        version, bytes, limit);
    }
    bool taken = sx_residency_take(residency, &lc->resident, bytes);
    while (!taken && !atomic_load(&lc->stopping) && sx_now_ns() < deadline_ns) {
        sx_lifecycle_sleep(lc, -1, ROOM_LOOK_MS);
        sx_lifecycle_leave_if_asked(lc);
        sx_lifecycle_unload_idle(lc);
        taken = sx_residency_take(residency, &lc->resident, bytes);
    }
    if (taken) {
        *out_bytes = bytes;
        return SX_OK;
    }
    sx_residency_give_up(residency, &lc->resident);
    return sx_error(SX_UNAVAILABLE,
                    "version %" PRId64 " needs %zu bytes of memory, which other models use",
                    version, bytes);
}

/* The version has been loaded, or could not be: it has taken what it holds. An error if that is
 * more than all models may take. */
static sx_status settle_room(sx_lifecycle *lc, int64_t version, size_t taken, sx_served *servable)
{
    if (lc->config.residency == NULL) {
        return SX_OK;
    }
    size_t bytes = servable == NULL ? 0
                   : lc->config.ops->memory_bytes == NULL
                       ? taken
                       : lc->config.ops->memory_bytes(servable->model);
    pthread_mutex_lock(&lc->mutex);
    struct sx_version_row *row = sx_lifecycle_find_row(lc, version);
    if (row != NULL && servable != NULL) {
        row->loaded_bytes = bytes;
    }
    pthread_mutex_unlock(&lc->mutex);
    const size_t limit = sx_residency_limit(lc->config.residency);
    sx_residency_correct(lc->config.residency, &lc->resident, taken, bytes);
    if (servable != NULL) {
        servable->bytes = bytes;
    }
    return bytes <= limit
               ? SX_OK
               : sx_error(SX_RESOURCE_EXHAUSTED,
                          "version %" PRId64 " takes %zu bytes of memory; the models may take %zu "
                          "together",
                          version, bytes, limit);
}

bool sx_lifecycle_load(sx_lifecycle *lc, int64_t version, const char *dir)
{
    sx_served *servable = NULL;
    sx_timed_call *hung = NULL;
    size_t taken = 0;
    pthread_mutex_lock(&lc->mutex);
    struct sx_version_row *row = sx_lifecycle_find_row(lc, version);
    if (row != NULL) {
        sx_lifecycle_set_state(row, SX_VERSION_LOADING, SX_CODE_OK, NULL);
    }
    pthread_mutex_unlock(&lc->mutex);
    const int64_t begin_ns = sx_now_ns();
    sx_status status = take_room(lc, version, &taken);
    const bool lacks_room = sx_status_code(status) == SX_UNAVAILABLE;
    if (status == SX_OK) {
        status = load_servable(lc, version, dir, &servable, &hung);
        sx_status room = settle_room(lc, version, taken, servable);
        if (room != SX_OK) {
            sx_lifecycle_discard(servable);
            status = room;
        }
    }
    sx_metrics_add_load(&lc->metrics, status == SX_OK, sx_now_ns() - begin_ns);
    if (status == SX_OK) {
        sx_log(SX_LOG_INFO, "Successfully loaded servable version {name: %s version: %" PRId64 "}",
               lc->name, version);
        sx_lifecycle_add(lc, servable);
        end_outage(lc);
        return true;
    }
    if (lacks_room) {
        if (!atomic_load(&lc->stopping)) {
            sx_log(SX_LOG_WARN, "model %s: %s", lc->name, sx_status_message(status));
        }
        pthread_mutex_lock(&lc->mutex);
        row = sx_lifecycle_find_row(lc, version);
        if (row != NULL) {
            sx_lifecycle_set_state(row, SX_VERSION_START, SX_CODE_OK, NULL);
        }
        pthread_mutex_unlock(&lc->mutex);
        sx_status_free(status);
        return false;
    }
    if (hung != NULL && atomic_load(&lc->stopping)) { /* interrupted by the stop, not failed */
        sx_status_free(status);
        sx_lifecycle_give_up(lc, hung);
        return false;
    }
    sx_lifecycle_note_failure(lc, version, status, hung);
    return false;
}
