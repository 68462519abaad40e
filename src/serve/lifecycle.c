/* The table of a model's versions and those that are served; see lifecycle.h.
 *
 * `mutex` guards the table and the lists of servables; it is held only briefly. A servable's count
 * is 1 for being served plus one for each request; the thread that takes it to 0 marks it idle and
 * wakes the lifecycle's thread (lifecycle_watch.c), which unloads it. */
#include "serve/lifecycle_internal.h"

#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "io/path.h"

enum {
    MAX_ENDED_SHOWN = 32, /* unloaded versions kept for the status */
    MAX_WAITING = 4096,   /* requests that wait for a model to be loaded */
};

static void wake(sx_lifecycle *lc)
{
    const uint64_t one = 1;
    const ssize_t written = write(lc->wake_fd, &one, sizeof(one));
    (void)written; /* if it is full, a wake-up is pending */
}

static void remove_row(sx_lifecycle *lc, size_t index)
{
    sx_free(lc->rows[index].message);
    memmove(&lc->rows[index], &lc->rows[index + 1],
            (--lc->row_count - index) * sizeof(lc->rows[0]));
}

/* ---- As a resident (residency.h) ---- */

/* With the mutex held: whether a request uses a version, or waits for one. */
static bool is_in_use(const sx_lifecycle *lc)
{
    bool in_use = lc->waiting > 0 || lc->draining != NULL || lc->served == NULL;
    for (const sx_served *s = lc->served; s != NULL; s = s->next) {
        in_use |= atomic_load(&s->users) > 1;
    }
    return in_use;
}

static int64_t used_ns(void *user)
{
    sx_lifecycle *lc = user;
    pthread_mutex_lock(&lc->mutex);
    const int64_t used_ns = is_in_use(lc) ? INT64_MAX : lc->used_ns;
    pthread_mutex_unlock(&lc->mutex);
    return used_ns;
}

static void wake_resident(void *user, bool leave)
{
    sx_lifecycle *lc = user;
    if (leave) {
        atomic_store(&lc->leave, true);
    }
    wake(lc);
}

/* ---- Create ---- */

/* Without empty and "." components, so that the last component is the directory's name. Symbolic
 * links are not resolved: they may be replaced later. */
static char *absolute_path(const char *path)
{
    char cwd[PATH_MAX] = "";
    if (path[0] != '/' && getcwd(cwd, sizeof(cwd)) == NULL) {
        return NULL;
    }
    const size_t size = strlen(cwd) + strlen(path) + 3;
    char *joined = sx_alloc(size, 1);
    if (joined == NULL) {
        return NULL;
    }
    snprintf(joined, size, "%s/%s", cwd, path);
    size_t end = 0;
    for (const char *part = joined; *part != '\0';) {
        part += strspn(part, "/");
        const size_t length = strcspn(part, "/");
        if (length > 0 && !(length == 1 && part[0] == '.')) {
            joined[end++] = '/';
            memmove(joined + end, part, length);
            end += length;
        }
        part += length;
    }
    joined[end == 0 ? 1 : end] = '\0'; /* "/" if nothing is left */
    return joined;
}

static double or_default(double value, double fallback)
{
    return value == 0 ? fallback : value;
}

/* A copy whose list is on the heap. */
static sx_status copy_policy(const sx_version_policy *policy, sx_version_policy *out)
{
    const size_t count = policy->specific_count;
    int64_t *specific = sx_alloc(count + 1, sizeof(specific[0]));
    if (specific == NULL) {
        return sx_no_memory("for a list of %zu versions", count);
    }
    for (size_t i = 0; i < count; i++) {
        specific[i] = policy->specific[i];
    }
    *out = *policy;
    out->specific = specific;
    return SX_OK;
}

sx_status sx_lifecycle_set_source(sx_lifecycle *lc, const char *base_path,
                                  const sx_version_policy *policy)
{
    char *path = absolute_path(base_path);
    sx_version_policy copy = {0};
    sx_status status = copy_policy(policy, &copy);
    if (path == NULL || status != SX_OK) {
        sx_free(path);
        sx_free((void *)(uintptr_t)copy.specific);
        return status != SX_OK ? status : sx_no_memory("for model \"%s\"", lc->name);
    }
    pthread_mutex_lock(&lc->mutex);
    sx_free(lc->next_base_path);
    sx_free((void *)(uintptr_t)lc->next_policy.specific);
    lc->next_base_path = path;
    lc->next_policy = copy;
    pthread_mutex_unlock(&lc->mutex);
    wake(lc);
    return SX_OK;
}

void sx_lifecycle_take_source(sx_lifecycle *lc)
{
    pthread_mutex_lock(&lc->mutex);
    char *path = lc->next_base_path;
    const sx_version_policy policy = lc->next_policy;
    lc->next_base_path = NULL;
    lc->next_policy = (sx_version_policy){0};
    const bool moved = path != NULL && strcmp(path, lc->base_path) != 0;
    if (moved) {
        /* What is known of versions with the same numbers is not true of these. */
        for (size_t i = lc->row_count; i-- > 0;) {
            struct sx_version_row *row = &lc->rows[i];
            const bool shown = row->state == SX_VERSION_AVAILABLE ||
                               row->state == SX_VERSION_UNLOADING || row->hung != NULL;
            if (!shown) {
                remove_row(lc, i);
                continue;
            }
            row->fingerprint = row->failed_fingerprint = row->failed_with = 0;
            row->stable_since_ns = row->look_again_at_ns = 0;
            row->failures = 0;
            row->settled = row->settles_slowly = false;
        }
        lc->source++;
        lc->tried = false;
    }
    pthread_mutex_unlock(&lc->mutex);
    if (path == NULL) {
        return;
    }
    if (moved) {
        if (lc->watch >= 0) {
            inotify_rm_watch(lc->inotify_fd, lc->watch);
            lc->watch = -1;
        }
        sx_lifecycle_give_up(lc, lc->hung_listing);
        lc->hung_listing = NULL;
    }
    sx_free(lc->base_path);
    sx_free((void *)(uintptr_t)lc->policy.specific);
    lc->base_path = path;
    lc->policy = policy;
}

sx_status sx_lifecycle_create(const sx_lifecycle_config *config, sx_lifecycle **out)
{
    if (config->name == NULL || !config->name[0] || config->base_path == NULL ||
        !config->base_path[0]) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "a model needs a name and a base path, got \"%s\" and "
                        "\"%s\"; set model_name and model_base_path",
                        config->name ? config->name : "",
                        config->base_path ? config->base_path : "");
    }
    sx_lifecycle *lc = sx_alloc(1, sizeof(*lc));
    if (lc == NULL) {
        return sx_no_memory("for model \"%s\"", config->name);
    }
    lc->config = *config;
    lc->config.poll_wait_seconds = or_default(config->poll_wait_seconds, 1);
    lc->config.max_load_retries = config->max_load_retries == 0 ? 5 : config->max_load_retries;
    lc->config.load_retry_seconds = or_default(config->load_retry_seconds, 60);
    lc->config.load_timeout_seconds = or_default(config->load_timeout_seconds, 300);
    lc->config.look_timeout_seconds =
        or_default(config->look_timeout_seconds, SX_MIN(lc->config.load_timeout_seconds, 30.0));
    lc->config.drain_timeout_seconds = or_default(config->drain_timeout_seconds, 60);
    lc->config.remind_seconds = or_default(config->remind_seconds, 60);
    lc->config.max_settle_seconds = or_default(config->max_settle_seconds, 10);
    lc->config.settle_ms = config->settle_ms == 0 ? 100 : config->settle_ms;
    lc->name = sx_strdup(config->name);
    lc->base_path = absolute_path(config->base_path);
    lc->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    lc->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK); /* -1: polling only */
    lc->watch = -1;
    lc->awaiting_end = &lc->awaiting;
    pthread_mutex_init(&lc->mutex, NULL);
    pthread_cond_init(&lc->changed, NULL);
    lc->path_code = SX_UNAVAILABLE;
    sx_status_free(
        sx_path_format(&lc->path_message, "%s has not been listed yet", config->base_path));
    lc->resident = (sx_resident){.user = lc, .used_ns = used_ns, .wake = wake_resident};
    sx_status status = copy_policy(&config->policy, &lc->policy);
    if (lc->name == NULL || lc->base_path == NULL || lc->path_message == NULL || lc->wake_fd < 0 ||
        status != SX_OK) {
        sx_status_free(status);
        sx_lifecycle_destroy(lc);
        return sx_no_memory("or file descriptors for model \"%s\"", config->name);
    }
    if (config->residency != NULL) {
        sx_residency_join(config->residency, &lc->resident);
    }
    *out = lc;
    return SX_OK;
}

const char *sx_lifecycle_name(const sx_lifecycle *lifecycle)
{
    return lifecycle->name;
}

sx_model_metrics *sx_lifecycle_metrics(sx_lifecycle *lifecycle)
{
    return &lifecycle->metrics;
}

void sx_lifecycle_close(sx_lifecycle *lc)
{
    atomic_store(&lc->stopping, true);
    wake(lc);
}

bool sx_lifecycle_closed(sx_lifecycle *lc)
{
    pthread_mutex_lock(&lc->mutex);
    const bool closed = lc->closed || !lc->started;
    pthread_mutex_unlock(&lc->mutex);
    return closed;
}

/* ---- Rows ---- */

struct sx_version_row *sx_lifecycle_find_row(sx_lifecycle *lc, int64_t version)
{
    for (size_t i = 0; i < lc->row_count; i++) {
        if (lc->rows[i].version == version) {
            return &lc->rows[i];
        }
    }
    return NULL;
}

struct sx_version_row *sx_lifecycle_need_row(sx_lifecycle *lc, int64_t version)
{
    struct sx_version_row *found = sx_lifecycle_find_row(lc, version);
    if (found != NULL) {
        return found;
    }
    if (lc->row_count == lc->row_capacity) {
        const size_t capacity = lc->row_capacity == 0 ? 16 : 2 * lc->row_capacity;
        struct sx_version_row *rows = sx_realloc(lc->rows, capacity, sizeof(*rows));
        if (rows == NULL) {
            return NULL;
        }
        lc->rows = rows;
        lc->row_capacity = capacity;
    }
    size_t at = 0;
    while (at < lc->row_count && lc->rows[at].version > version) {
        at++;
    }
    memmove(&lc->rows[at + 1], &lc->rows[at], (lc->row_count++ - at) * sizeof(lc->rows[0]));
    lc->rows[at] = (struct sx_version_row){.version = version, .state = SX_VERSION_START};
    return &lc->rows[at];
}

void sx_lifecycle_set_state(struct sx_version_row *row, sx_version_state state, sx_code code,
                            const char *message)
{
    row->state = state;
    row->code = code;
    sx_free(row->message);
    row->message = message != NULL ? sx_strdup(message) : NULL;
}

void sx_lifecycle_forget_rows(sx_lifecycle *lc, const sx_version *found, size_t count,
                              int64_t floor)
{
    size_t unloaded = 0;
    for (size_t i = 0; i < lc->row_count;) {
        const struct sx_version_row *row = &lc->rows[i];
        const bool gone = !sx_versions_contain(found, count, row->version);
        bool forget = false;
        if (row->state == SX_VERSION_START) {
            forget = gone || row->version < floor;
        } else if (row->state == SX_VERSION_END) {
            forget = row->code != SX_CODE_OK ? gone : ++unloaded > MAX_ENDED_SHOWN;
        }
        if (forget && row->hung == NULL) {
            remove_row(lc, i);
        } else {
            i++;
        }
    }
}

/* ---- Servables ---- */

/* TensorFlow Serving's text, which its clients know. */
static sx_status not_found(const sx_lifecycle *lc, int64_t version)
{
    return version == SX_LATEST_VERSION
               ? sx_error(SX_NOT_FOUND, "Servable not found for request: Latest(%s)", lc->name)
               : sx_error(SX_NOT_FOUND, "Servable not found for request: Specific(%s, %" PRId64 ")",
                          lc->name, version);
}

/* The error for a version that is not served: not loaded yet, or unknown. It is sent to clients,
 * who get no paths: the log has those. */
static sx_status not_served(sx_lifecycle *lc, int64_t version)
{
    const struct sx_version_row *row = version != SX_LATEST_VERSION
                                           ? sx_lifecycle_find_row(lc, version)
                                       : lc->row_count > 0 ? &lc->rows[0]
                                                           : NULL;
    const bool unknown =
        version != SX_LATEST_VERSION && (row == NULL || row->state >= SX_VERSION_AVAILABLE);
    if (unknown || atomic_load(&lc->stopping)) {
        return not_found(lc, version);
    }
    if (row == NULL) {
        return sx_error(SX_UNAVAILABLE, "model %s has no version available yet", lc->name);
    }
    return sx_error(SX_UNAVAILABLE, "model %s is not available yet: version %" PRId64 " %s",
                    lc->name, row->version,
                    row->code != SX_CODE_OK ? "cannot be loaded" : "is being loaded");
}

sx_served *sx_lifecycle_find_served(sx_lifecycle *lc, int64_t version)
{
    sx_served *s = lc->served;
    while (s != NULL && version != SX_LATEST_VERSION && s->version != version) {
        s = s->next;
    }
    return s;
}

/* With the mutex held; NULL: none is served. */
static sx_served *find_chosen(sx_lifecycle *lc, sx_version_choice choice)
{
    sx_served *chosen = sx_lifecycle_find_served(lc, choice.version), *other = lc->served;
    if (choice.kind == SX_THIS_VERSION || other == NULL) {
        return chosen;
    }
    if (other == chosen) {
        other = other->next;
    }
    const bool canary = choice.kind == SX_THE_CANARY && chosen != NULL;
    atomic_fetch_add_explicit(&lc->metrics.shared_out[canary], 1, memory_order_relaxed);
    return canary || other == NULL ? chosen : other;
}

/* With the mutex held: whether a version that is not served will be if it is asked for. */
static bool may_be_loaded(const sx_lifecycle *lc, sx_version_choice choice)
{
    const bool any = choice.kind != SX_THIS_VERSION || choice.version == SX_LATEST_VERSION;
    bool found = false;
    for (size_t i = 0; i < lc->row_count && !found; i++) {
        const struct sx_version_row *row = &lc->rows[i];
        found = (any || row->version == choice.version) && row->state < SX_VERSION_AVAILABLE;
    }
    return found && lc->config.residency != NULL && !atomic_load(&lc->stopping);
}

/* With the mutex held: the version that a request gets; NULL: it is not served, and is now to be
 * loaded, if it may be. */
static sx_served *take_chosen(sx_lifecycle *lc, sx_version_choice choice)
{
    sx_served *chosen = find_chosen(lc, choice);
    lc->used_ns = lc->config.residency != NULL ? sx_now_ns() : 0;
    if (chosen != NULL) {
        atomic_fetch_add_explicit(&chosen->users, 1, memory_order_relaxed);
    } else if (!lc->demanded && may_be_loaded(lc, choice)) {
        lc->demanded = true;
        wake(lc);
    }
    return chosen;
}

/* With the mutex held. */
static sx_status choice_not_served(sx_lifecycle *lc, sx_version_choice choice)
{
    return not_served(lc, choice.kind == SX_THIS_VERSION ? choice.version : SX_LATEST_VERSION);
}

sx_status sx_lifecycle_choose(sx_lifecycle *lc, sx_version_choice choice, sx_served **out_servable,
                              sx_awaited *out_awaited)
{
    sx_status status = SX_OK;
    pthread_mutex_lock(&lc->mutex);
    sx_served *chosen = take_chosen(lc, choice);
    if (chosen != NULL) {
        *out_servable = chosen;
    } else if (out_awaited != NULL && lc->waiting < MAX_WAITING && may_be_loaded(lc, choice)) {
        lc->waiting++;
        *out_servable = NULL;
        *out_awaited = (sx_awaited){.lifecycle = lc, .choice = choice};
    } else {
        status = choice_not_served(lc, choice);
    }
    pthread_mutex_unlock(&lc->mutex);
    return status;
}

sx_status sx_lifecycle_acquire(sx_lifecycle *lc, int64_t version, sx_served **out_servable)
{
    return sx_lifecycle_choose(lc, (sx_version_choice){SX_THIS_VERSION, version}, out_servable,
                               NULL);
}

/* With the mutex held: whether a wait is over, with its result. */
static bool is_over(sx_lifecycle *lc, sx_awaited *awaited)
{
    awaited->servable = take_chosen(lc, awaited->choice);
    if (awaited->servable != NULL) {
        return true;
    }
    const bool loads = lc->attempts == awaited->attempts && may_be_loaded(lc, awaited->choice);
    awaited->status =
        loads ? sx_cancel_check(awaited->cancel) : choice_not_served(lc, awaited->choice);
    return awaited->status != SX_OK;
}

/* With the mutex held: wakes those whose wait is over, in the order in which they came. */
static void wake_awaiting(sx_lifecycle *lc)
{
    sx_awaited **at = &lc->awaiting;
    while (*at != NULL) {
        sx_awaited *awaited = *at;
        if (is_over(lc, awaited)) {
            *at = awaited->next;
            awaited->wake(awaited);
        } else {
            at = &awaited->next;
        }
    }
    lc->awaiting_end = at;
}

bool sx_lifecycle_await(sx_awaited *awaited)
{
    sx_lifecycle *lc = awaited->lifecycle;
    pthread_mutex_lock(&lc->mutex);
    awaited->attempts = lc->attempts;
    const bool over = is_over(lc, awaited);
    if (!over) {
        if (lc->awaiting == NULL) {
            wake(lc); /* to look at the list from time to time */
        }
        awaited->next = NULL;
        *lc->awaiting_end = awaited;
        lc->awaiting_end = &awaited->next;
    }
    pthread_mutex_unlock(&lc->mutex);
    return over;
}

void sx_lifecycle_changed(sx_lifecycle *lc)
{
    pthread_cond_broadcast(&lc->changed);
    wake_awaiting(lc);
}

void sx_lifecycle_end_await(sx_awaited *awaited)
{
    sx_lifecycle *lc = awaited->lifecycle;
    pthread_mutex_lock(&lc->mutex);
    if (--lc->waiting == 0) {
        wake(lc); /* it may be unloaded, or be waited for to end */
    }
    pthread_mutex_unlock(&lc->mutex);
    awaited->lifecycle = NULL;
}

static void unlink_from(sx_served **list, const sx_served *servable)
{
    while (*list != servable) {
        list = &(*list)->next;
    }
    *list = servable->next;
}

void sx_served_release(sx_served *servable)
{
    if (atomic_fetch_sub_explicit(&servable->users, 1, memory_order_acq_rel) != 1) {
        return;
    }
    sx_lifecycle *lc = servable->lifecycle;
    pthread_mutex_lock(&lc->mutex);
    unlink_from(&lc->draining, servable);
    servable->next = lc->idle;
    lc->idle = servable;
    wake(lc);
    pthread_mutex_unlock(&lc->mutex);
}

int64_t sx_served_version(const sx_served *servable)
{
    return servable->version;
}

const char *sx_served_name(const sx_served *servable)
{
    return servable->lifecycle->name;
}

sx_model_metrics *sx_served_metrics(const sx_served *servable)
{
    return &servable->lifecycle->metrics;
}

sx_served_pace *sx_served_pace_of(sx_served *servable)
{
    return &servable->pace;
}

void sx_served_count(sx_served *servable, bool succeeded, int64_t duration_ns)
{
    atomic_fetch_add_explicit(&servable->requests, 1, memory_order_relaxed);
    sx_rate_add(&servable->rate, sx_now_ns());
    if (succeeded) {
        sx_latency_add(&servable->latency, duration_ns);
    } else {
        atomic_fetch_add_explicit(&servable->failed, 1, memory_order_relaxed);
    }
}

const sx_serve_signature *sx_served_signatures(const sx_served *servable, size_t *out_count)
{
    *out_count = servable->signature_count;
    return servable->signatures;
}

sx_status sx_served_run(sx_served *servable, const sx_serve_signature *signature,
                        const sx_tensor *inputs, const sx_cancel *cancel, sx_arena *arena,
                        sx_tensor *outputs)
{
    sx_lifecycle *lc = servable->lifecycle;
    struct sx_served_run run = {.link = &servable->runs};
    sx_cancel_init(&run.cancel, cancel != NULL ? cancel->deadline_ns : INT64_MAX);
    run.cancel.max_trips = cancel != NULL ? cancel->max_trips : 0;
    run.cancel.outer = cancel;
    pthread_mutex_lock(&lc->mutex);
    run.next = servable->runs;
    servable->runs = &run;
    if (run.next != NULL) {
        run.next->link = &run.next;
    }
    if (servable->stopped) {
        sx_cancel_request(&run.cancel);
    }
    pthread_mutex_unlock(&lc->mutex);
    sx_status status =
        lc->config.ops->run(servable->model, signature, inputs, &run.cancel, arena, outputs);
    pthread_mutex_lock(&lc->mutex);
    *run.link = run.next;
    if (run.next != NULL) {
        run.next->link = run.link;
    }
    pthread_mutex_unlock(&lc->mutex);
    if (sx_status_code(status) == SX_CANCELLED && !sx_cancel_requested(cancel)) {
        sx_status_free(status);
        status =
            sx_error(SX_UNAVAILABLE, "version %" PRId64 " of model %s is being unloaded; try again",
                     servable->version, lc->name);
    }
    return status;
}

static sx_status run_line(void *user, const sx_serve_signature *signature, const sx_tensor *inputs,
                          const sx_cancel *cancel, sx_arena *arena, sx_tensor *outputs)
{
    return sx_served_run(user, signature, inputs, cancel, arena, outputs);
}

static bool is_wide(void *user, const sx_serve_signature *signature, int64_t rows)
{
    const sx_served *servable = user;
    return servable->lifecycle->config.ops->is_wide(servable->model, signature, rows);
}

sx_status sx_lifecycle_add_lines(sx_lifecycle *lc, sx_served *servable)
{
    if (lc->config.batcher == NULL) {
        return SX_OK;
    }
    servable->lines = sx_alloc(servable->signature_count + 1, sizeof(*servable->lines));
    if (servable->lines == NULL) {
        return sx_no_memory("for the calls of model %s", lc->name);
    }
    for (size_t i = 0; i < servable->signature_count; i++) {
        const sx_batch_runner runner = {.model = lc->name,
                                        .signature = &servable->signatures[i],
                                        .run = run_line,
                                        .is_wide = lc->config.ops->is_wide != NULL ? is_wide : NULL,
                                        .user = servable};
        SX_TRY(sx_batcher_add(lc->config.batcher, &runner, &servable->lines[i]));
    }
    return SX_OK;
}

void sx_lifecycle_remove_lines(sx_served *servable)
{
    for (size_t i = 0; servable->lines != NULL && i < servable->signature_count; i++) {
        sx_batch_line_remove(servable->lines[i]);
    }
    sx_free(servable->lines);
}

sx_status sx_served_admit(const sx_served *servable, const sx_cancel *cancel, int64_t arrives_ns,
                          bool others_wait)
{
    const size_t count = servable->lines != NULL ? servable->signature_count : 0;
    sx_status status = SX_OK;
    for (size_t i = 0; i < count; i++) { /* calls that wait are run first, whatever the signature */
        SX_TRY(sx_batch_line_admit(servable->lines[i], cancel, arrives_ns, false));
    }
    for (size_t i = 0; i < count && others_wait; i++) {
        sx_status_free(status);
        status = sx_batch_line_admit(servable->lines[i], cancel, arrives_ns, true);
        others_wait = status != SX_OK;
    }
    return status;
}

sx_batch_line *sx_served_line(const sx_served *servable, const sx_serve_signature *signature)
{
    return servable->lines != NULL ? servable->lines[signature - servable->signatures] : NULL;
}

static void unload(sx_served *servable)
{
    sx_lifecycle *lc = servable->lifecycle;
    sx_lifecycle_remove_lines(servable);
    sx_log(SX_LOG_INFO, "Unloading servable version {name: %s version: %" PRId64 "}", lc->name,
           servable->version);
    lc->config.ops->unload(servable->model);
    malloc_trim(0); /* the weights' memory belongs to other programs now */
    if (lc->config.residency != NULL) {
        sx_residency_correct(lc->config.residency, &lc->resident, servable->bytes, 0);
    }
    sx_log(SX_LOG_INFO, "Done unloading servable version {name: %s version: %" PRId64 "}", lc->name,
           servable->version);
    pthread_mutex_lock(&lc->mutex);
    struct sx_version_row *row = sx_lifecycle_find_row(lc, servable->version);
    /* The version may have returned and be served again, by another servable. */
    if (row != NULL && row->state == SX_VERSION_UNLOADING) {
        sx_lifecycle_set_state(row, SX_VERSION_END, SX_CODE_OK, NULL);
    }
    sx_lifecycle_changed(lc);
    pthread_mutex_unlock(&lc->mutex);
    sx_free(servable);
}

void sx_lifecycle_discard(sx_served *servable)
{
    if (servable != NULL) {
        unload(servable);
    }
}

/* Stops the runs of the versions that drain for too long. */
static void stop_runs(sx_lifecycle *lc)
{
    const int64_t now_ns = sx_now_ns();
    int runs = 0;
    pthread_mutex_lock(&lc->mutex);
    for (sx_served *s = lc->draining; s != NULL; s = s->next) {
        if (s->stopped || now_ns < s->drain_until_ns) {
            continue;
        }
        s->stopped = true;
        for (struct sx_served_run *run = s->runs; run != NULL; run = run->next) {
            sx_cancel_request(&run->cancel);
            runs++;
        }
    }
    pthread_mutex_unlock(&lc->mutex);
    if (runs > 0) {
        sx_log(SX_LOG_WARN,
               "model %s: stopped %d request%s of versions that are to be unloaded: still running "
               "after %g s",
               lc->name, runs, runs == 1 ? "" : "s", lc->config.drain_timeout_seconds);
    }
}

void sx_lifecycle_unload_idle(sx_lifecycle *lc)
{
    stop_runs(lc);
    pthread_mutex_lock(&lc->mutex);
    sx_served *servable = lc->idle;
    lc->idle = NULL;
    pthread_mutex_unlock(&lc->mutex);
    while (servable != NULL) {
        sx_served *next = servable->next;
        unload(servable);
        servable = next;
    }
}

int64_t sx_lifecycle_drain_until(sx_lifecycle *lc)
{
    int64_t soonest_ns = INT64_MAX;
    pthread_mutex_lock(&lc->mutex);
    for (const sx_served *s = lc->draining; s != NULL; s = s->next) {
        soonest_ns = s->stopped ? soonest_ns : SX_MIN(soonest_ns, s->drain_until_ns);
    }
    pthread_mutex_unlock(&lc->mutex);
    return soonest_ns;
}

/* With the mutex held: from the served to the draining ones. The caller releases it later. */
static void start_drain(sx_lifecycle *lc, sx_served *servable)
{
    unlink_from(&lc->served, servable);
    servable->next = lc->draining;
    lc->draining = servable;
    servable->drain_until_ns = sx_now_ns() + (int64_t)(lc->config.drain_timeout_seconds * 1e9);
    struct sx_version_row *row = sx_lifecycle_find_row(lc, servable->version);
    if (row != NULL) {
        sx_lifecycle_set_state(row, SX_VERSION_UNLOADING, SX_CODE_OK, NULL);
    }
}

static void log_drain(const sx_lifecycle *lc, const sx_served *servable)
{
    sx_log(SX_LOG_INFO, "Quiescing servable version {name: %s version: %" PRId64 "}", lc->name,
           servable->version);
}

void sx_lifecycle_add(sx_lifecycle *lc, sx_served *servable)
{
    sx_served *before = sx_lifecycle_find_served(lc, servable->version);
    if (before != NULL) {
        log_drain(lc, before);
    }
    pthread_mutex_lock(&lc->mutex);
    if (before != NULL) {
        start_drain(lc, before);
    }
    sx_served **at = &lc->served;
    while (*at != NULL && (*at)->version > servable->version) {
        at = &(*at)->next;
    }
    servable->next = *at;
    *at = servable;
    struct sx_version_row *row = sx_lifecycle_find_row(lc, servable->version);
    if (row != NULL) {
        sx_lifecycle_set_state(row, SX_VERSION_AVAILABLE, SX_CODE_OK, NULL);
        row->failures = 0;
        row->failed_fingerprint = row->failed_with = 0;
    }
    sx_lifecycle_changed(lc);
    pthread_mutex_unlock(&lc->mutex);
    if (before != NULL) {
        sx_served_release(before);
    }
}

void sx_lifecycle_retire(sx_lifecycle *lc, sx_served *servable)
{
    log_drain(lc, servable);
    pthread_mutex_lock(&lc->mutex);
    start_drain(lc, servable);
    sx_lifecycle_changed(lc);
    pthread_mutex_unlock(&lc->mutex);
    sx_served_release(servable);
}

/* ---- Making room for other models ---- */

void sx_lifecycle_leave_if_asked(sx_lifecycle *lc)
{
    if (!atomic_exchange(&lc->leave, false)) {
        return;
    }
    sx_served *left = NULL;
    pthread_mutex_lock(&lc->mutex);
    const bool leaves = !is_in_use(lc);
    while (leaves && lc->served != NULL) {
        sx_served *servable = lc->served;
        start_drain(lc, servable);
        struct sx_version_row *row = sx_lifecycle_find_row(lc, servable->version);
        if (row != NULL) { /* to be loaded again */
            sx_lifecycle_set_state(row, SX_VERSION_START, SX_CODE_OK, NULL);
        }
        left = servable;
    }
    lc->demanded = lc->demanded && !leaves;
    pthread_mutex_unlock(&lc->mutex);
    if (leaves) {
        sx_log(SX_LOG_INFO,
               "model %s: unloaded until a request asks for it: others need its memory", lc->name);
    }
    while (left != NULL) { /* they are the first ones of the list */
        sx_served *next = left->next;
        sx_served_release(left);
        left = next;
    }
    sx_lifecycle_unload_idle(lc);
    /* Not before: until the memory is given back, it is counted as what will be. */
    sx_residency_answer(lc->config.residency, &lc->resident, leaves);
}

void sx_lifecycle_retire_all(sx_lifecycle *lc)
{
    while (lc->served != NULL) {
        sx_lifecycle_retire(lc, lc->served);
    }
}

void sx_lifecycle_give_up(sx_lifecycle *lc, sx_timed_call *call)
{
    lc->left_behind |= call != NULL && !sx_timed_call_done(call);
    sx_timed_call_release(call);
}

bool sx_lifecycle_destroy(sx_lifecycle *lc)
{
    if (lc == NULL) {
        return true;
    }
    atomic_store(&lc->stopping, true);
    if (lc->started) {
        wake(lc);
        pthread_join(lc->thread, NULL);
    }
    sx_lifecycle_retire_all(lc);
    sx_lifecycle_unload_idle(lc);
    if (lc->config.residency != NULL) {
        sx_residency_go(lc->config.residency, &lc->resident);
    }
    for (size_t i = 0; i < lc->row_count; i++) {
        sx_lifecycle_give_up(lc, lc->rows[i].hung);
        sx_free(lc->rows[i].message);
    }
    sx_free(lc->rows);
    sx_lifecycle_give_up(lc, lc->hung_listing);
    if (lc->wake_fd >= 0) {
        close(lc->wake_fd);
    }
    if (lc->inotify_fd >= 0) {
        close(lc->inotify_fd);
    }
    pthread_cond_destroy(&lc->changed);
    pthread_mutex_destroy(&lc->mutex);
    sx_free(lc->path_message);
    sx_free(lc->path_advice);
    sx_free(lc->name);
    sx_free(lc->base_path);
    sx_free((void *)(uintptr_t)lc->policy.specific);
    sx_free(lc->next_base_path);
    sx_free((void *)(uintptr_t)lc->next_policy.specific);
    const bool all_ended = !lc->left_behind;
    sx_free(lc);
    return all_ended;
}

/* ---- Status ---- */

bool sx_lifecycle_ready(sx_lifecycle *lc)
{
    pthread_mutex_lock(&lc->mutex);
    const bool ready = lc->served != NULL || lc->loadable;
    pthread_mutex_unlock(&lc->mutex);
    return ready;
}

bool sx_lifecycle_is_settled(sx_lifecycle *lc)
{
    pthread_mutex_lock(&lc->mutex);
    const bool settled = lc->served != NULL || lc->loadable || lc->tried;
    pthread_mutex_unlock(&lc->mutex);
    return settled;
}

bool sx_lifecycle_wait_ready(sx_lifecycle *lc, int timeout_ms)
{
    const int64_t deadline_ns = sx_now_ns() + (int64_t)timeout_ms * 1000000;
    const struct timespec deadline = sx_timespec_of(deadline_ns);
    int error = 0;
    pthread_mutex_lock(&lc->mutex);
    while (lc->served == NULL && !lc->tried && error == 0) {
        error = pthread_cond_clockwait(&lc->changed, &lc->mutex, CLOCK_MONOTONIC, &deadline);
    }
    const bool ready = lc->served != NULL || lc->loadable;
    pthread_mutex_unlock(&lc->mutex);
    return ready;
}

const char *sx_version_state_name(sx_version_state state)
{
    switch (state) {
    case SX_VERSION_START:
        return "START";
    case SX_VERSION_LOADING:
        return "LOADING";
    case SX_VERSION_AVAILABLE:
        return "AVAILABLE";
    case SX_VERSION_UNLOADING:
        return "UNLOADING";
    case SX_VERSION_END:
        return "END";
    }
    return "UNKNOWN";
}

const char *sx_version_error_text(sx_code code)
{
    return code == SX_CODE_OK ? ""
                              : "the version cannot be loaded; the reason is in the server's log";
}

/* With the mutex held: what a served version has done. */
static void describe_served(sx_lifecycle *lc, const sx_served *servable, sx_version_status *out)
{
    size_t (*const memory_bytes)(void *model) = lc->config.ops->memory_bytes;
    out->requests = atomic_load_explicit(&servable->requests, memory_order_relaxed);
    out->failed = atomic_load_explicit(&servable->failed, memory_order_relaxed);
    out->per_second = sx_rate_per_second(&servable->rate, sx_now_ns());
    out->median_ms = sx_latency_quantile_ms(&servable->latency, 0.5);
    out->p99_ms = sx_latency_quantile_ms(&servable->latency, 0.99);
    out->memory_bytes = memory_bytes != NULL ? memory_bytes(servable->model) : 0;
}

static sx_status copy_rows(sx_lifecycle *lc, sx_arena *arena, sx_version_status **out_rows,
                           size_t *out_count)
{
    sx_version_status *rows =
        sx_arena_array(arena, SX_MAX(lc->row_count, (size_t)1), sx_version_status);
    if (rows == NULL) {
        return sx_no_memory("for the status of model \"%s\"", lc->name);
    }
    for (size_t i = 0; i < lc->row_count; i++) {
        const struct sx_version_row *row = &lc->rows[i];
        const char *message = row->message != NULL ? sx_arena_strdup(arena, row->message) : "";
        rows[i] = (sx_version_status){.version = row->version,
                                      .state = row->state,
                                      .code = row->code,
                                      .message = message != NULL ? message : ""};
        const sx_served *servable =
            row->state == SX_VERSION_AVAILABLE ? sx_lifecycle_find_served(lc, row->version) : NULL;
        if (servable != NULL) {
            describe_served(lc, servable, &rows[i]);
        }
    }
    *out_rows = rows;
    *out_count = lc->row_count;
    return SX_OK;
}

sx_status sx_lifecycle_status(sx_lifecycle *lc, sx_arena *arena, sx_version_status **out_rows,
                              size_t *out_count)
{
    sx_status status;
    pthread_mutex_lock(&lc->mutex);
    if (lc->row_count > 0) {
        status = copy_rows(lc, arena, out_rows, out_count);
    } else {
        status = sx_error(SX_NOT_FOUND, "Could not find any versions of model %s: %s%s%s", lc->name,
                          lc->path_message, lc->path_advice ? "; " : "",
                          lc->path_advice ? lc->path_advice : "");
    }
    pthread_mutex_unlock(&lc->mutex);
    return status;
}
