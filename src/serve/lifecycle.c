/* The life of one model's versions; see lifecycle.h.
 *
 * `mutex` guards the table of versions and who is current; it is held for moments only. Loading and
 * unloading happen on the watcher thread without it. A servable's count is 1 for being current plus
 * one for each request; whoever takes it to 0 marks it idle and wakes the watcher, which unloads.
 */
#include "serve/lifecycle.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "savedmodel/versions.h"
#include "serve/fingerprint.h"

enum {
    MAX_ROWS = 64, /* versions remembered at once */
    MAX_ENDED_SHOWN = 32,
    MAX_CANDIDATES = 8,  /* older versions that are tried when nothing serves */
    BUSY_WAIT_MS = 1000, /* between looks while something is settling or draining, at most */
};

static const int64_t second_ns = 1000000000;

struct sx_served {
    atomic_int users;
    sx_lifecycle *lifecycle;
    int64_t version;
    void *model;
    const sx_serve_signature *signatures;
    size_t signature_count;
    struct sx_served *next_idle; /* in lifecycle->idle */
};

/* What is known about one version. */
struct row {
    int64_t version;
    sx_version_state state;
    sx_code code;
    char *message; /* heap; NULL = "" */
    uint64_t fingerprint;
    int64_t stable_since_ns;     /* the fingerprint has not changed since */
    uint64_t failed_fingerprint; /* that did not load; 0 = none */
    int failures;
    int64_t retry_at_ns;
};

struct sx_lifecycle {
    sx_lifecycle_config config;
    char *name, *base_path;
    pthread_t thread;
    bool started;
    int wake_fd, inotify_fd, watch;
    atomic_bool stopping;

    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    struct row rows[MAX_ROWS];
    size_t row_count;
    sx_served *current;
    sx_served *idle;   /* retired and without users: to be unloaded */
    bool tried;        /* a first look has come to an end */
    sx_code path_code; /* of the latest listing */
    char path_message[512];
};

/* ---------------------------------------------------------------- create */

static char *absolute_path(const char *path)
{
    if (path[0] == '/') {
        return sx_strdup(path);
    }
    char cwd[PATH_MAX];
    if (!getcwd(cwd, sizeof(cwd))) {
        return NULL;
    }
    const size_t size = strlen(cwd) + strlen(path) + 2;
    char *joined = sx_alloc(size, 1);
    if (joined) {
        snprintf(joined, size, "%s/%s", cwd, path);
    }
    return joined;
}

static void complete(sx_lifecycle_config *config)
{
    config->poll_wait_seconds = config->poll_wait_seconds == 0 ? 1 : config->poll_wait_seconds;
    config->max_load_retries = config->max_load_retries == 0 ? 5 : config->max_load_retries;
    config->load_retry_seconds = config->load_retry_seconds == 0 ? 60 : config->load_retry_seconds;
    config->settle_ms = config->settle_ms == 0 ? 100 : config->settle_ms;
}

sx_status sx_lifecycle_create(const sx_lifecycle_config *config, sx_lifecycle **out)
{
    if (!config->name || !config->name[0] || !config->base_path || !config->base_path[0]) {
        return sx_error(SX_INVALID_ARGUMENT,
                        "a model needs a name and a base path, got \"%s\" and "
                        "\"%s\"; set --model_name and --model_base_path",
                        config->name ? config->name : "",
                        config->base_path ? config->base_path : "");
    }
    sx_lifecycle *lc = sx_alloc(1, sizeof(*lc));
    if (!lc) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "model \"%s\": out of memory", config->name);
    }
    lc->config = *config;
    complete(&lc->config);
    lc->name = sx_strdup(config->name);
    lc->base_path = absolute_path(config->base_path);
    lc->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    lc->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK); /* -1: polling alone */
    lc->watch = -1;
    pthread_mutex_init(&lc->mutex, NULL);
    pthread_cond_init(&lc->changed, NULL);
    lc->path_code = SX_UNAVAILABLE;
    snprintf(lc->path_message, sizeof(lc->path_message), "%s has not been looked at yet",
             config->base_path);
    if (!lc->name || !lc->base_path || lc->wake_fd < 0) {
        sx_lifecycle_destroy(lc);
        return sx_error(SX_RESOURCE_EXHAUSTED, "model \"%s\": out of memory or descriptors",
                        config->name);
    }
    *out = lc;
    return SX_OK;
}

const char *sx_lifecycle_name(const sx_lifecycle *lifecycle)
{
    return lifecycle->name;
}

static void wake(sx_lifecycle *lc)
{
    const uint64_t one = 1;
    const ssize_t written = write(lc->wake_fd, &one, sizeof(one));
    (void)written; /* full: a wake-up is pending */
}

/* ---------------------------------------------------------------- rows */

static struct row *find_row(sx_lifecycle *lc, int64_t version)
{
    for (size_t i = 0; i < lc->row_count; i++) {
        if (lc->rows[i].version == version) {
            return &lc->rows[i];
        }
    }
    return NULL;
}

static void remove_row(sx_lifecycle *lc, size_t index)
{
    sx_free(lc->rows[index].message);
    memmove(&lc->rows[index], &lc->rows[index + 1],
            (--lc->row_count - index) * sizeof(lc->rows[0]));
}

/* Forgets the lowest ended version when there are too many. */
static void forget_ended(sx_lifecycle *lc, size_t most)
{
    size_t ended = 0;
    for (size_t i = 0; i < lc->row_count; i++) {
        ended += lc->rows[i].state == SX_VERSION_END;
    }
    for (size_t i = lc->row_count; i-- > 0 && ended > most;) {
        if (lc->rows[i].state == SX_VERSION_END) {
            remove_row(lc, i);
            ended--;
        }
    }
}

/* The row of a version, made in its place if it is new (highest first); NULL if the table is full
 * of versions that have not ended. */
static struct row *need_row(sx_lifecycle *lc, int64_t version)
{
    struct row *found = find_row(lc, version);
    if (found) {
        return found;
    }
    forget_ended(lc, MAX_ENDED_SHOWN - 1);
    if (lc->row_count == MAX_ROWS) {
        return NULL;
    }
    size_t at = 0;
    while (at < lc->row_count && lc->rows[at].version > version) {
        at++;
    }
    memmove(&lc->rows[at + 1], &lc->rows[at], (lc->row_count++ - at) * sizeof(lc->rows[0]));
    lc->rows[at] = (struct row){.version = version, .state = SX_VERSION_START};
    return &lc->rows[at];
}

static void set_row_state(struct row *row, sx_version_state state, sx_code code,
                          const char *message)
{
    row->state = state;
    row->code = code;
    sx_free(row->message);
    row->message = message ? sx_strdup(message) : NULL;
}

/* Sets the state of a version under the lock. */
static void set_state(sx_lifecycle *lc, int64_t version, sx_version_state state, sx_code code,
                      const char *message)
{
    pthread_mutex_lock(&lc->mutex);
    struct row *row = find_row(lc, version);
    if (row) {
        set_row_state(row, state, code, message);
    }
    pthread_cond_broadcast(&lc->changed);
    pthread_mutex_unlock(&lc->mutex);
}

/* ---------------------------------------------------------------- servables */

sx_status sx_lifecycle_acquire(sx_lifecycle *lc, int64_t version, sx_served **out_servable)
{
    pthread_mutex_lock(&lc->mutex);
    sx_served *found = lc->current;
    if (found && version != SX_LATEST_VERSION && found->version != version) {
        found = NULL;
    }
    if (found) {
        atomic_fetch_add_explicit(&found->users, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&lc->mutex);
    if (found) {
        *out_servable = found;
        return SX_OK;
    }
    if (version == SX_LATEST_VERSION) {
        return sx_error(SX_NOT_FOUND, "Servable not found for request: Latest(%s)", lc->name);
    }
    return sx_error(SX_NOT_FOUND, "Servable not found for request: Specific(%s, %" PRId64 ")",
                    lc->name, version);
}

void sx_served_release(sx_served *servable)
{
    if (atomic_fetch_sub_explicit(&servable->users, 1, memory_order_acq_rel) != 1) {
        return;
    }
    sx_lifecycle *lc = servable->lifecycle;
    pthread_mutex_lock(&lc->mutex);
    servable->next_idle = lc->idle;
    lc->idle = servable;
    wake(lc);
    pthread_mutex_unlock(&lc->mutex);
}

int64_t sx_served_version(const sx_served *servable)
{
    return servable->version;
}

const sx_serve_signature *sx_served_signatures(const sx_served *servable, size_t *out_count)
{
    *out_count = servable->signature_count;
    return servable->signatures;
}

sx_status sx_served_run(sx_served *servable, const sx_serve_signature *signature,
                        const sx_tensor *inputs, sx_arena *arena, sx_tensor *outputs)
{
    return servable->lifecycle->config.ops->run(servable->model, signature, inputs, arena, outputs);
}

static void unload(sx_served *servable)
{
    sx_lifecycle *lc = servable->lifecycle;
    lc->config.ops->unload(servable->model);
    sx_log(SX_LOG_INFO, "model %s: version %" PRId64 " is unloaded", lc->name, servable->version);
    pthread_mutex_lock(&lc->mutex);
    struct row *row = find_row(lc, servable->version);
    /* The version may have come back and be current again, with another servable. */
    if (row && row->state == SX_VERSION_UNLOADING) {
        set_row_state(row, SX_VERSION_END, SX_CODE_OK, NULL);
    }
    pthread_cond_broadcast(&lc->changed);
    pthread_mutex_unlock(&lc->mutex);
    sx_free(servable);
}

static void unload_idle(sx_lifecycle *lc)
{
    pthread_mutex_lock(&lc->mutex);
    sx_served *servable = lc->idle;
    lc->idle = NULL;
    pthread_mutex_unlock(&lc->mutex);
    while (servable) {
        sx_served *next = servable->next_idle;
        unload(servable);
        servable = next;
    }
}

/* Makes `next` current and retires the one before; its requests finish on it. */
static void swap_in(sx_lifecycle *lc, sx_served *next)
{
    pthread_mutex_lock(&lc->mutex);
    sx_served *before = lc->current;
    lc->current = next;
    if (before) {
        struct row *row = find_row(lc, before->version);
        if (row) {
            set_row_state(row, SX_VERSION_UNLOADING, SX_CODE_OK, NULL);
        }
    }
    struct row *row = next ? find_row(lc, next->version) : NULL;
    if (row) {
        set_row_state(row, SX_VERSION_AVAILABLE, SX_CODE_OK, NULL);
        row->failures = 0;
        row->failed_fingerprint = 0;
    }
    pthread_cond_broadcast(&lc->changed);
    pthread_mutex_unlock(&lc->mutex);
    if (before) {
        sx_served_release(before);
    }
}

/* ---------------------------------------------------------------- loading */

static sx_status load_servable(sx_lifecycle *lc, int64_t version, const char *dir, sx_served **out)
{
    sx_served *servable = sx_alloc(1, sizeof(*servable));
    if (!servable) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "out of memory");
    }
    sx_status status = lc->config.ops->load(lc->config.ops_user, dir, &servable->model);
    if (status != SX_OK) {
        sx_free(servable);
        return status;
    }
    atomic_init(&servable->users, 1);
    servable->lifecycle = lc;
    servable->version = version;
    servable->signatures = lc->config.ops->signatures(servable->model, &servable->signature_count);
    *out = servable;
    return SX_OK;
}

static void note_failure(sx_lifecycle *lc, int64_t version, sx_status status)
{
    sx_log(SX_LOG_ERROR, "model %s: version %" PRId64 " does not load: %s", lc->name, version,
           sx_status_message(status));
    pthread_mutex_lock(&lc->mutex);
    struct row *row = find_row(lc, version);
    if (row) {
        set_row_state(row, SX_VERSION_END, sx_status_code(status), sx_status_message(status));
        row->failed_fingerprint = row->fingerprint;
        row->failures++;
        row->retry_at_ns = sx_now_ns() + (int64_t)(lc->config.load_retry_seconds * 1e9);
    }
    pthread_cond_broadcast(&lc->changed);
    pthread_mutex_unlock(&lc->mutex);
    sx_status_free(status);
}

static bool load_and_swap(sx_lifecycle *lc, int64_t version, const char *dir)
{
    sx_served *servable = NULL;
    set_state(lc, version, SX_VERSION_LOADING, SX_CODE_OK, NULL);
    sx_status status = load_servable(lc, version, dir, &servable);
    if (status != SX_OK) {
        note_failure(lc, version, status);
        return false;
    }
    sx_log(SX_LOG_INFO, "model %s: version %" PRId64 " is available", lc->name, version);
    swap_in(lc, servable);
    return true;
}

/* What a look at a version on disk says. */
enum verdict { SETTLING, LOADABLE, FAILED };

static enum verdict judge(sx_lifecycle *lc, int64_t version, const char *dir, int64_t now_ns,
                          int64_t *soonest_ns)
{
    const uint64_t fingerprint = sx_dir_fingerprint(dir);
    const int64_t settle_ns = lc->config.settle_ms * (int64_t)1000000;
    enum verdict verdict = FAILED;
    pthread_mutex_lock(&lc->mutex);
    struct row *row = need_row(lc, version);
    if (!row) {
        pthread_mutex_unlock(&lc->mutex);
        return FAILED;
    }
    if (row->fingerprint != fingerprint) {
        row->fingerprint = fingerprint;
        row->stable_since_ns = now_ns;
    }
    const bool failed_before = row->failed_fingerprint == fingerprint;
    if (now_ns - row->stable_since_ns < settle_ns) {
        verdict = SETTLING;
        *soonest_ns = SX_MIN(*soonest_ns, row->stable_since_ns + settle_ns);
    } else if (!failed_before) {
        row->failures = 0;
        verdict = LOADABLE;
    } else if (row->failures <= lc->config.max_load_retries) {
        verdict = now_ns >= row->retry_at_ns ? LOADABLE : FAILED;
        *soonest_ns = SX_MIN(*soonest_ns, row->retry_at_ns);
    }
    pthread_mutex_unlock(&lc->mutex);
    return verdict;
}

static int64_t current_version(sx_lifecycle *lc)
{
    pthread_mutex_lock(&lc->mutex);
    const int64_t version = lc->current ? lc->current->version : -1;
    pthread_mutex_unlock(&lc->mutex);
    return version;
}

static bool contains(const sx_version *found, size_t count, int64_t version)
{
    for (size_t i = 0; i < count; i++) {
        if (found[i].number == version) {
            return true;
        }
    }
    return false;
}

/* Looks at the versions from the highest down, until one serves. Older ones than the current are of
 * interest only when that has lost its directory. */
static void consider(sx_lifecycle *lc, const sx_version *found, size_t count, int64_t *soonest_ns)
{
    const int64_t current = current_version(lc);
    const bool current_on_disk = contains(found, count, current);
    bool settling = false;
    for (size_t i = 0; i < count && i < MAX_CANDIDATES; i++) {
        char dir[PATH_MAX];
        if (found[i].number == current || (current_on_disk && found[i].number < current)) {
            break;
        }
        const int size = snprintf(dir, sizeof(dir), "%s/%s", lc->base_path, found[i].name);
        if (size < 0 || (size_t)size >= sizeof(dir) || atomic_load(&lc->stopping)) {
            break;
        }
        const enum verdict verdict = judge(lc, found[i].number, dir, sx_now_ns(), soonest_ns);
        settling |= verdict == SETTLING;
        if (verdict == SETTLING ||
            (verdict == LOADABLE && load_and_swap(lc, found[i].number, dir))) {
            break; /* one that is being copied is worth waiting for */
        }
    }
    pthread_mutex_lock(&lc->mutex);
    lc->tried = lc->tried || !settling;
    pthread_cond_broadcast(&lc->changed);
    pthread_mutex_unlock(&lc->mutex);
}

static void note_path(sx_lifecycle *lc, sx_code code, const char *message)
{
    pthread_mutex_lock(&lc->mutex);
    const bool news = lc->path_code != code;
    lc->path_code = code;
    snprintf(lc->path_message, sizeof(lc->path_message), "%s", message);
    lc->tried = lc->tried || code != SX_CODE_OK;
    pthread_cond_broadcast(&lc->changed);
    pthread_mutex_unlock(&lc->mutex);
    if (news && code != SX_CODE_OK) {
        sx_log(SX_LOG_WARN, "model %s: %s; will look again", lc->name, message);
    }
}

/* What there is below the base path, and what to do about it. */
static sx_status look_below(sx_lifecycle *lc, sx_arena *arena, int64_t *soonest_ns)
{
    sx_version *found = NULL;
    size_t count = 0;
    SX_TRY(sx_versions_list(lc->base_path, NULL, arena, &found, &count),
           "Could not find base path %s", lc->base_path);
    if (count == 0) {
        return sx_error(SX_NOT_FOUND, "No versions of servable %.100s found under base path %.300s",
                        lc->name, lc->base_path);
    }
    note_path(lc, SX_CODE_OK, "");
    consider(lc, found, count, soonest_ns);
    return SX_OK;
}

/* One look at the base path. */
static void look(sx_lifecycle *lc, int64_t *soonest_ns)
{
    sx_arena arena;
    sx_arena_init(&arena, 0);
    sx_status status = look_below(lc, &arena, soonest_ns);
    if (status != SX_OK) {
        note_path(lc, sx_status_code(status), sx_status_message(status));
        sx_status_free(status);
    }
    sx_arena_deinit(&arena);
}

/* ---------------------------------------------------------------- the watcher */

static void watch_base_path(sx_lifecycle *lc)
{
    if (lc->inotify_fd >= 0 && lc->watch < 0) {
        lc->watch = inotify_add_watch(lc->inotify_fd, lc->base_path,
                                      IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
                                          IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
    }
}

/* Drops the events: each only means "look again". A lost base path is watched anew later. */
static void drain_events(sx_lifecycle *lc)
{
    _Alignas(struct inotify_event) char events[4096];
    ssize_t size;
    uint64_t wakeups;
    const ssize_t got = read(lc->wake_fd, &wakeups, sizeof(wakeups));
    (void)got;
    while (lc->inotify_fd >= 0 && (size = read(lc->inotify_fd, events, sizeof(events))) > 0) {
        for (char *at = events; at < events + size;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            if (event->mask & (IN_IGNORED | IN_MOVE_SELF)) {
                lc->watch = -1;
            }
            at += sizeof(*event) + event->len;
        }
    }
}

/* Sleeps until something may have changed: an event, the next poll, a moment that `look` named. */
static void wait_for_change(sx_lifecycle *lc, int64_t soonest_ns)
{
    struct pollfd fds[2] = {{.fd = lc->wake_fd, .events = POLLIN},
                            {.fd = lc->inotify_fd, .events = POLLIN}};
    int64_t wait_ms = -1;
    if (lc->config.poll_wait_seconds > 0) {
        wait_ms = (int64_t)(lc->config.poll_wait_seconds * 1000);
    }
    if (soonest_ns != INT64_MAX) {
        const int64_t until_ms = SX_MAX((soonest_ns - sx_now_ns()) / 1000000 + 1, (int64_t)1);
        const int64_t busy_ms = SX_MIN(until_ms, (int64_t)BUSY_WAIT_MS);
        wait_ms = wait_ms < 0 ? busy_ms : SX_MIN(wait_ms, busy_ms);
    }
    poll(fds, lc->inotify_fd >= 0 ? 2 : 1, (int)SX_MIN(wait_ms, (int64_t)INT_MAX));
    drain_events(lc);
}

static void *run_watcher(void *user)
{
    sx_lifecycle *lc = user;
    while (!atomic_load(&lc->stopping)) {
        int64_t soonest_ns = INT64_MAX;
        watch_base_path(lc);
        unload_idle(lc);
        look(lc, &soonest_ns);
        if (!atomic_load(&lc->stopping)) {
            wait_for_change(lc, soonest_ns);
        }
    }
    return NULL;
}

sx_status sx_lifecycle_start(sx_lifecycle *lc)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&lc->thread, NULL, run_watcher, lc);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "model \"%s\": starting its thread: %s", lc->name,
                        strerror(error));
    }
    lc->started = true;
    return SX_OK;
}

void sx_lifecycle_destroy(sx_lifecycle *lc)
{
    if (!lc) {
        return;
    }
    atomic_store(&lc->stopping, true);
    if (lc->started) {
        wake(lc);
        pthread_join(lc->thread, NULL);
    }
    swap_in(lc, NULL);
    unload_idle(lc);
    for (size_t i = 0; i < lc->row_count; i++) {
        sx_free(lc->rows[i].message);
    }
    if (lc->wake_fd >= 0) {
        close(lc->wake_fd);
    }
    if (lc->inotify_fd >= 0) {
        close(lc->inotify_fd);
    }
    pthread_cond_destroy(&lc->changed);
    pthread_mutex_destroy(&lc->mutex);
    sx_free(lc->name);
    sx_free(lc->base_path);
    sx_free(lc);
}

/* ---------------------------------------------------------------- status */

bool sx_lifecycle_ready(sx_lifecycle *lc)
{
    return current_version(lc) >= 0;
}

bool sx_lifecycle_wait_ready(sx_lifecycle *lc, int timeout_ms)
{
    const int64_t deadline_ns = sx_now_ns() + (int64_t)timeout_ms * 1000000;
    const struct timespec deadline = {deadline_ns / second_ns, deadline_ns % second_ns};
    int error = 0;
    pthread_mutex_lock(&lc->mutex);
    while (!lc->current && !lc->tried && error == 0) {
        error = pthread_cond_clockwait(&lc->changed, &lc->mutex, CLOCK_MONOTONIC, &deadline);
    }
    const bool ready = lc->current != NULL;
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

static sx_status copy_rows(sx_lifecycle *lc, sx_arena *arena, sx_version_status **out_rows,
                           size_t *out_count)
{
    sx_version_status *rows =
        sx_arena_array(arena, SX_MAX(lc->row_count, (size_t)1), sx_version_status);
    if (!rows) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "status of model \"%s\": out of memory", lc->name);
    }
    for (size_t i = 0; i < lc->row_count; i++) {
        const struct row *row = &lc->rows[i];
        const char *message = row->message ? sx_arena_strdup(arena, row->message) : "";
        rows[i] = (sx_version_status){row->version, row->state, row->code, message ? message : ""};
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
        status = sx_error(SX_NOT_FOUND, "Could not find any versions of model %s: %s", lc->name,
                          lc->path_message);
    }
    pthread_mutex_unlock(&lc->mutex);
    return status;
}
