/* The thread of a lifecycle: finds and loads a model's versions; see lifecycle.h.
 *
 * It makes the decisions and unloads, but does not access files. Everything that
 * does (listing, fingerprints, loading) is a timed call on its own thread, which may hang without
 * delaying anything else. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/thread.h"
#include "io/path.h"
#include "savedmodel/names.h"
#include "serve/fingerprint.h"
#include "serve/lifecycle_internal.h"

enum {
    MAX_CANDIDATES = 64,      /* versions above the current one that are tried */
    MAX_HUNG = 32,            /* abandoned calls that have not returned */
    BUSY_WAIT_MS = 1000,      /* maximum time between scans while a version settles or drains */
    MAX_RETRY_DOUBLINGS = 10, /* of the wait before a retry */
    STOP_GRACE_MS = 1000,     /* how long stopping waits for a running call */
    SLOW_LOOKS = 10, /* a version that never settles is looked at for a tenth of the time */
    LOOK_MS = 50,    /* whether requests that wait are to stop */
};

/* ---- Waiting for calls ---- */

void sx_lifecycle_sleep(sx_lifecycle *lc, int fd, int64_t wait_ms)
{
    struct pollfd fds[2] = {{.fd = lc->wake_fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
    uint64_t wakeups;
    int ready = 0;
    while (ready == 0) {
        pthread_mutex_lock(&lc->mutex);
        if (lc->awaiting != NULL) {
            sx_lifecycle_changed(lc);
        }
        const bool looks = lc->awaiting != NULL && (wait_ms < 0 || wait_ms > LOOK_MS);
        pthread_mutex_unlock(&lc->mutex);
        ready = poll(fds, 2, looks ? LOOK_MS : (int)SX_MIN(wait_ms, (int64_t)INT_MAX));
        ready = looks ? ready : 1;
        wait_ms = wait_ms < 0 ? wait_ms : wait_ms - LOOK_MS;
    }
    const ssize_t got = read(lc->wake_fd, &wakeups, sizeof(wakeups));
    (void)got;
}

bool sx_lifecycle_wait_for_call(sx_lifecycle *lc, sx_timed_call *call, double timeout_seconds)
{
    int64_t deadline_ns = sx_now_ns() + (int64_t)(timeout_seconds * 1e9);
    bool stopping = false;
    while (!sx_timed_call_done(call)) {
        if (!stopping && atomic_load(&lc->stopping)) {
            stopping = true;
            deadline_ns = SX_MIN(deadline_ns, sx_now_ns() + (int64_t)STOP_GRACE_MS * 1000000);
        }
        if (sx_now_ns() >= deadline_ns) {
            return false;
        }
        const int64_t until_ns = SX_MIN(deadline_ns, sx_lifecycle_drain_until(lc));
        const int64_t left_ms = SX_MAX((until_ns - sx_now_ns() + 999999) / 1000000, (int64_t)0);
        sx_lifecycle_sleep(lc, call->done_fd, left_ms);
        sx_lifecycle_leave_if_asked(lc);
        sx_lifecycle_unload_idle(lc);
    }
    return true;
}

void sx_lifecycle_note_failure(sx_lifecycle *lc, int64_t version, sx_status status,
                               sx_timed_call *hung)
{
    const char *message = sx_status_message(status);
    bool news = true;
    pthread_mutex_lock(&lc->mutex);
    struct sx_version_row *row = sx_lifecycle_need_row(lc, version);
    if (row != NULL) {
        news = row->failed_with != sx_hash64(message, strlen(message));
        sx_lifecycle_set_state(row, SX_VERSION_END, sx_status_code(status), message);
        row->failed_fingerprint = row->fingerprint;
        row->failed_with = sx_hash64(message, strlen(message));
        const double wait_seconds = lc->config.load_retry_seconds *
                                    (double)(1 << SX_MIN(row->failures, MAX_RETRY_DOUBLINGS));
        row->retry_at_ns = sx_now_ns() + (int64_t)(wait_seconds * 1e9);
        row->failures++;
        row->hung = hung;
        lc->failed_again += !news;
        lc->gave_up += !news && row->failures > lc->config.max_load_retries;
    }
    sx_lifecycle_changed(lc);
    pthread_mutex_unlock(&lc->mutex);
    if (news) {
        sx_log(SX_LOG_ERROR, "model %s: cannot load version %" PRId64 ": %s", lc->name, version,
               message);
    }
    if (row == NULL) {
        sx_lifecycle_give_up(lc, hung);
    }
    lc->remind_at_ns = sx_now_ns() + (int64_t)(lc->config.remind_seconds * 1e9);
    sx_status_free(status);
}

/* Releases abandoned calls that have returned after all, and their results. */
static void release_returned(sx_lifecycle *lc)
{
    for (;;) {
        sx_timed_call *returned = NULL;
        int64_t version = 0;
        pthread_mutex_lock(&lc->mutex);
        for (size_t i = 0; i < lc->row_count && returned == NULL; i++) {
            struct sx_version_row *row = &lc->rows[i];
            if (row->hung != NULL && sx_timed_call_done(row->hung)) {
                returned = row->hung;
                version = row->version;
                row->hung = NULL;
            }
        }
        pthread_mutex_unlock(&lc->mutex);
        if (returned == NULL) {
            return;
        }
        sx_log(SX_LOG_INFO, "model %s: version %" PRId64 " responds again", lc->name, version);
        sx_timed_call_release(returned);
        lc->said_hung = false;
    }
}

/* Whether a version may be inspected: it has no hung call, and there are not too many in total. */
static bool may_look(sx_lifecycle *lc, int64_t version)
{
    int hung = 0;
    bool hangs = false;
    pthread_mutex_lock(&lc->mutex);
    for (size_t i = 0; i < lc->row_count; i++) {
        const struct sx_version_row *row = &lc->rows[i];
        hung += row->hung != NULL;
        hangs |= row->hung != NULL && row->version == version;
    }
    pthread_mutex_unlock(&lc->mutex);
    if (hung >= MAX_HUNG && !lc->said_hung) {
        sx_log(SX_LOG_ERROR,
               "model %s: %d versions do not respond; no others are read until one does", lc->name,
               hung);
        lc->said_hung = true;
    }
    return !hangs && hung < MAX_HUNG;
}

/* ---- Inspecting a version ---- */

struct print {
    sx_timed_call call;
    char *dir;
    bool is_dir;
    uint64_t fingerprint; /* 0: cannot be read */
    uint64_t bytes;
};

static void run_print(sx_timed_call *call)
{
    struct print *p = (struct print *)call;
    p->is_dir = sx_path_is_dir(p->dir);
    p->fingerprint = p->is_dir ? sx_dir_fingerprint(p->dir, &p->bytes) : 0;
}

static void destroy_print(sx_timed_call *call)
{
    struct print *p = (struct print *)call;
    sx_free(p->dir);
    sx_free(p);
}

/* The fingerprint of a version's directory; false if it is not a directory, or after an error,
 * which is recorded. */
static bool take_fingerprint(sx_lifecycle *lc, int64_t version, const char *dir,
                             uint64_t *out_fingerprint, uint64_t *out_bytes)
{
    const double timeout_seconds = lc->config.look_timeout_seconds;
    struct print *p = sx_alloc(1, sizeof(*p));
    char *copy = sx_strdup(dir);
    if (p == NULL || copy == NULL) {
        sx_free(p);
        sx_free(copy);
        sx_lifecycle_note_failure(lc, version, sx_no_memory("inspecting %s", dir), NULL);
        return false;
    }
    *p = (struct print){.call = {.run = run_print, .destroy = destroy_print}, .dir = copy};
    sx_status status = sx_timed_call_start(&p->call);
    if (status != SX_OK) {
        sx_lifecycle_note_failure(lc, version, status, NULL);
        return false;
    }
    if (sx_lifecycle_wait_for_call(lc, &p->call, timeout_seconds)) {
        const bool is_dir = p->is_dir;
        *out_fingerprint = p->fingerprint;
        *out_bytes = p->bytes;
        sx_timed_call_release(&p->call);
        return is_dir;
    }
    if (atomic_load(&lc->stopping)) {
        sx_lifecycle_give_up(lc, &p->call);
        return false;
    }
    sx_lifecycle_note_failure(lc, version,
                              sx_error(SX_DEADLINE_EXCEEDED,
                                       "%s has not responded for %g s; is it mounted?", dir,
                                       timeout_seconds),
                              &p->call);
    return false;
}

/* The result of inspecting a version on disk. */
enum verdict { SETTLING, LOADABLE, FAILED };

static enum verdict judge(sx_lifecycle *lc, int64_t version, const char *dir, int64_t *soonest_ns)
{
    const int64_t settle_ns = lc->config.settle_ms * (int64_t)1000000;
    const int64_t begin_ns = sx_now_ns();
    uint64_t fingerprint = 0, file_bytes = 0;
    pthread_mutex_lock(&lc->mutex);
    struct sx_version_row *row = sx_lifecycle_find_row(lc, version);
    const int64_t look_at_ns = row != NULL ? row->look_again_at_ns : 0;
    pthread_mutex_unlock(&lc->mutex);
    if (begin_ns < look_at_ns) {
        *soonest_ns = SX_MIN(*soonest_ns, look_at_ns);
        return FAILED;
    }
    if (!may_look(lc, version) || !take_fingerprint(lc, version, dir, &fingerprint, &file_bytes)) {
        return FAILED;
    }
    const int64_t now_ns = sx_now_ns();
    enum verdict verdict = FAILED;
    bool slow = false;
    pthread_mutex_lock(&lc->mutex);
    row = sx_lifecycle_need_row(lc, version);
    if (row == NULL) {
        pthread_mutex_unlock(&lc->mutex);
        sx_log(SX_LOG_ERROR, "model %s: out of memory; skipped version %" PRId64, lc->name,
               version);
        return FAILED;
    }
    lc->path_code = SX_CODE_OK;
    if (row->fingerprint != fingerprint || row->stable_since_ns == 0) {
        if (row->settled || row->stable_since_ns == 0) {
            row->unstable_since_ns = now_ns;
        }
        row->fingerprint = fingerprint;
        row->file_bytes = file_bytes;
        row->loaded_bytes = 0;
        row->stable_since_ns = now_ns;
    }
    row->settled = now_ns - row->stable_since_ns >= settle_ns;
    row->look_again_at_ns = 0;
    const bool failed_before = row->failures > 0 && row->failed_fingerprint == fingerprint;
    if (!row->settled) {
        /* A version that never settles, like a link to /proc, must not block lower ones, nor keep
         * this thread busy. */
        const bool patient =
            now_ns - row->unstable_since_ns < (int64_t)(lc->config.max_settle_seconds * 1e9);
        slow = !patient && !row->settles_slowly;
        row->settles_slowly |= !patient;
        verdict = patient ? SETTLING : FAILED;
        row->look_again_at_ns =
            patient ? 0 : now_ns + SX_MAX(settle_ns, SLOW_LOOKS * (now_ns - begin_ns));
        *soonest_ns =
            SX_MIN(*soonest_ns, patient ? row->stable_since_ns + settle_ns : row->look_again_at_ns);
    } else if (!failed_before) {
        row->failures = 0;
        verdict = LOADABLE;
    } else if (row->failures <= lc->config.max_load_retries) {
        verdict = now_ns >= row->retry_at_ns ? LOADABLE : FAILED;
        *soonest_ns = SX_MIN(*soonest_ns, row->retry_at_ns);
    }
    lc->tried = lc->tried && verdict == FAILED;
    pthread_mutex_unlock(&lc->mutex);
    if (slow) {
        sx_log(
            SX_LOG_INFO,
            "model %s: the files of version %" PRId64
            " keep changing; waiting until they are unchanged for %d ms, and trying lower versions",
            lc->name, version, lc->config.settle_ms);
    }
    return verdict;
}

/* ---- What the policy wants ---- */

static size_t wanted_count(const sx_lifecycle *lc)
{
    return lc->policy.kind == SX_VERSIONS_LATEST ? (size_t)SX_MAX(lc->policy.latest, 1) : SIZE_MAX;
}

static bool may_want(const sx_lifecycle *lc, int64_t version)
{
    bool found = lc->policy.kind != SX_VERSIONS_SPECIFIC;
    for (size_t i = 0; i < lc->policy.specific_count && !found; i++) {
        found = lc->policy.specific[i] == version;
    }
    return found;
}

/* Whether a version is served as it is on disk now: not one with its number of another base path.
 */
static bool is_served(sx_lifecycle *lc, int64_t version)
{
    const sx_served *s = sx_lifecycle_find_served(lc, version);
    return s != NULL && s->source == lc->source;
}

static bool is_wanted(sx_lifecycle *lc, const sx_served *s, const sx_version *found, size_t count)
{
    return s->source == lc->source && may_want(lc, s->version) &&
           sx_versions_contain(found, count, s->version);
}

/* Retires the served versions beyond those that are wanted. `loading`: a version that is about to
 * be loaded and takes the place of one; -1: none. While nothing that is wanted is served or will
 * be, what is served stays. */
static void retire_unwanted(sx_lifecycle *lc, const sx_version *found, size_t count,
                            int64_t loading)
{
    size_t left = wanted_count(lc);
    bool any = loading >= 0;
    for (const sx_served *s = lc->served; s != NULL; s = s->next) {
        any |= is_wanted(lc, s, found, count);
    }
    for (sx_served *s = lc->served, *next; s != NULL; s = next) {
        next = s->next;
        if (loading > s->version) {
            left--;
            loading = -1;
        }
        if ((!any || is_wanted(lc, s, found, count)) && left > 0) {
            left--;
        } else {
            sx_lifecycle_retire(lc, s);
        }
    }
}

/* resource_preserving: makes room for a version, and waits until it is there. */
static void make_room(sx_lifecycle *lc, const sx_version *found, size_t count, int64_t loading)
{
    const bool serving = lc->served != NULL;
    retire_unwanted(lc, found, count, loading);
    if (serving && lc->served == NULL) {
        sx_log(SX_LOG_WARN,
               "model %s: is not served until version %" PRId64 " has been loaded (%s)", lc->name,
               loading,
               lc->config.resource_preserving ? "--version_transition=resource_preserving"
                                              : "both do not fit into the memory of all models");
        lc->outage_since_ns = sx_now_ns();
    }
    sx_lifecycle_unload_idle(lc);
    while (sx_lifecycle_drain_until(lc) != INT64_MAX && !atomic_load(&lc->stopping)) {
        const int64_t left_ms = (sx_lifecycle_drain_until(lc) - sx_now_ns()) / 1000000 + 1;
        sx_lifecycle_sleep(lc, -1, SX_MIN(SX_MAX(left_ms, (int64_t)1), (int64_t)BUSY_WAIT_MS));
        sx_lifecycle_unload_idle(lc);
    }
}

/* Whether a version does not fit beside those of the model that are served. */
static bool fits_alone_only(sx_lifecycle *lc, int64_t version)
{
    size_t served = 0;
    if (lc->config.residency == NULL) {
        return false;
    }
    for (const sx_served *s = lc->served; s != NULL; s = s->next) {
        served += s->bytes;
    }
    return served > 0 && served + sx_lifecycle_expected_bytes(lc, version) >
                             sx_residency_limit(lc->config.residency);
}

/* Loads the wanted versions that can be, from the highest down. */
static void consider(sx_lifecycle *lc, const sx_version *found, size_t count, int64_t *soonest_ns)
{
    size_t left = wanted_count(lc), passed = 0;
    bool settling = false, loadable = false;
    pthread_mutex_lock(&lc->mutex);
    const bool demanded = lc->config.residency == NULL || lc->demanded;
    pthread_mutex_unlock(&lc->mutex);
    for (size_t i = 0; i < count && left > 0; i++) {
        char dir[PATH_MAX];
        const int64_t version = found[i].number;
        if (!may_want(lc, version)) {
            continue;
        }
        if (is_served(lc, version)) {
            left--;
            continue;
        }
        if (passed == MAX_CANDIDATES) {
            if (!lc->said_too_many) {
                sx_log(SX_LOG_WARN,
                       "model %s: none of the highest %d versions (%" PRId64 " to %" PRId64
                       ") can be loaded; the %zu below them (%" PRId64 " to %" PRId64
                       ") are not tried; remove some of the former",
                       lc->name, MAX_CANDIDATES, found[0].number, found[i - 1].number, count - i,
                       version, found[count - 1].number);
            }
            lc->said_too_many = true;
            break;
        }
        const int size = snprintf(dir, sizeof(dir), "%s/%s", lc->base_path, found[i].name);
        if (size < 0 || (size_t)size >= sizeof(dir) || atomic_load(&lc->stopping)) {
            break;
        }
        const enum verdict verdict = judge(lc, version, dir, soonest_ns);
        if (verdict == LOADABLE && demanded &&
            (lc->config.resource_preserving || fits_alone_only(lc, version))) {
            make_room(lc, found, count, version);
        }
        if (verdict == SETTLING) {
            settling = true;
            left--; /* its place is kept for it */
        } else if (verdict == LOADABLE && !demanded) {
            loadable = true;
            left--;
        } else if (verdict == LOADABLE && sx_lifecycle_load(lc, version, dir)) {
            left--;
            retire_unwanted(lc, found, count, -1);
        } else {
            passed++;
        }
    }
    retire_unwanted(lc, found, count, -1);
    pthread_mutex_lock(&lc->mutex);
    lc->tried = !settling;
    lc->loadable = loadable;
    if (demanded && !settling) {
        lc->attempts++;
        lc->demanded = lc->served != NULL;
    } else if (lc->demanded && !demanded) { /* meanwhile */
        *soonest_ns = 0;
    }
    sx_lifecycle_changed(lc);
    pthread_mutex_unlock(&lc->mutex);
}

/* Versions below it are not wanted while those that are served are. */
static int64_t lowest_wanted(sx_lifecycle *lc)
{
    size_t left = wanted_count(lc);
    int64_t lowest = -1;
    for (const sx_served *s = lc->served; s != NULL && left > 0; s = s->next) {
        lowest = s->version;
        left--;
    }
    return left == 0 ? lowest : -1;
}

/* ---- Scanning the base path ---- */

struct listing {
    sx_timed_call call;
    char *name, *base_path;
    int inotify_fd; /* a duplicate; -1: add no watch */
    int watch;
    sx_arena arena;
    sx_version *found;
    size_t count;
    sx_status status;   /* NOT_FOUND also if there is no version, */
    const char *advice; /* with advice on what to do, or NULL */
};

/* Advice if a base path without versions is itself a model; else NULL. */
static const char *advise(struct listing *l)
{
    const char *file = sx_arena_printf(&l->arena, "%s/" SX_SAVED_MODEL_FILE, l->base_path);
    if (file == NULL || !sx_path_exists(file)) {
        return NULL;
    }
    char *parent = NULL;
    const char *text = NULL;
    if (sx_version_number(sx_path_basename(l->base_path)) < 0) {
        text = sx_arena_printf(&l->arena,
                               "it contains " SX_SAVED_MODEL_FILE
                               "; move that to a numbered directory, %s/1",
                               l->base_path);
    } else {
        sx_status_free(sx_path_dirname(l->base_path, &parent));
        text = parent != NULL
                   ? sx_arena_printf(&l->arena,
                                     "it is a version itself; did you mean its parent, %s?", parent)
                   : NULL;
        sx_free(parent);
    }
    return text;
}

static void run_listing(sx_timed_call *call)
{
    struct listing *l = (struct listing *)call;
    if (l->inotify_fd >= 0) { /* before listing, so that no change is missed */
        l->watch = inotify_add_watch(l->inotify_fd, l->base_path,
                                     IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
                                         IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
    }
    l->status = sx_versions_list(l->base_path, NULL, &l->arena, &l->found, &l->count);
    l->status = sx_status_annotate(l->status, __FILE__, __LINE__, "Could not find base path %s",
                                   l->base_path);
    if (l->status == SX_OK && l->count == 0) {
        l->status = sx_error(SX_NOT_FOUND, "No versions of servable %s found under base path %s",
                             l->name, l->base_path);
        l->advice = advise(l);
    }
}

static void destroy_listing(sx_timed_call *call)
{
    struct listing *l = (struct listing *)call;
    if (l->inotify_fd >= 0) {
        close(l->inotify_fd);
    }
    sx_status_free(l->status);
    sx_arena_deinit(&l->arena);
    sx_free(l->name);
    sx_free(l->base_path);
    sx_free(l);
}

/* Records why there is nothing to load below the base path, and logs it if it changed. `advice` may
 * be NULL. Takes the status. */
static void note_path_error(sx_lifecycle *lc, sx_status status, const char *advice)
{
    const char *message = sx_status_message(status);
    char *message_copy = sx_strdup(message),
         *advice_copy = advice != NULL ? sx_strdup(advice) : NULL;
    pthread_mutex_lock(&lc->mutex);
    /* Not each time that a directory comes and goes. */
    const uint64_t hash = sx_hash64(message, strlen(message));
    const int64_t now_ns = sx_now_ns();
    const bool changed =
        lc->path_code != sx_status_code(status) || strcmp(lc->path_message, message) != 0;
    const bool news = changed && (hash != lc->said_path || now_ns >= lc->say_path_again_at_ns);
    if (sx_status_code(status) == SX_NOT_FOUND) {
        sx_lifecycle_forget_rows(lc, NULL, 0, -1);
    }
    lc->path_code = sx_status_code(status);
    if (message_copy != NULL) {
        sx_free(lc->path_message);
        lc->path_message = message_copy;
    }
    sx_free(lc->path_advice);
    lc->path_advice = advice_copy;
    lc->tried = true;
    sx_lifecycle_changed(lc);
    pthread_mutex_unlock(&lc->mutex);
    if (news) {
        sx_log(SX_LOG_WARN, "model %s: %s%s%s", lc->name, message, advice ? "; " : "",
               advice ? advice : "");
        lc->remind_at_ns = now_ns + (int64_t)(lc->config.remind_seconds * 1e9);
        lc->said_path = hash;
        lc->say_path_again_at_ns = lc->remind_at_ns;
    }
    sx_status_free(status);
}

static struct listing *create_listing(const sx_lifecycle *lc)
{
    struct listing *l = sx_alloc(1, sizeof(*l));
    if (l == NULL) {
        return NULL;
    }
    *l = (struct listing){.call = {.run = run_listing, .destroy = destroy_listing, .done_fd = -1},
                          .name = sx_strdup(lc->name),
                          .base_path = sx_strdup(lc->base_path),
                          .inotify_fd = -1,
                          .watch = lc->watch};
    sx_arena_init(&l->arena, 0);
    if (lc->inotify_fd >= 0 && lc->watch < 0) {
        l->inotify_fd = fcntl(lc->inotify_fd, F_DUPFD_CLOEXEC, 0);
    }
    if (l->name == NULL || l->base_path == NULL) {
        destroy_listing(&l->call);
        return NULL;
    }
    return l;
}

/* One scan of the base path and its versions. */
static void look(sx_lifecycle *lc, int64_t *soonest_ns)
{
    const double timeout_seconds = lc->config.look_timeout_seconds;
    if (lc->hung_listing != NULL && !sx_timed_call_done(lc->hung_listing)) {
        return;
    }
    sx_timed_call_release(lc->hung_listing);
    lc->hung_listing = NULL;
    struct listing *l = create_listing(lc);
    sx_status status =
        l != NULL ? sx_timed_call_start(&l->call) : sx_no_memory("listing %s", lc->base_path);
    if (status != SX_OK) {
        note_path_error(lc, status, NULL);
        return;
    }
    if (!sx_lifecycle_wait_for_call(lc, &l->call, timeout_seconds)) {
        if (atomic_load(&lc->stopping)) {
            sx_lifecycle_give_up(lc, &l->call);
            return;
        }
        lc->hung_listing = &l->call;
        note_path_error(lc,
                        sx_error(SX_DEADLINE_EXCEEDED,
                                 "base path %s has not responded for %g s; is it mounted?",
                                 lc->base_path, timeout_seconds),
                        NULL);
        return;
    }
    lc->watch = l->watch;
    if (l->status != SX_OK) {
        note_path_error(lc, l->status, l->advice);
        l->status = SX_OK;
    } else {
        pthread_mutex_lock(&lc->mutex);
        sx_lifecycle_forget_rows(lc, l->found, l->count, lowest_wanted(lc));
        pthread_mutex_unlock(&lc->mutex);
        consider(lc, l->found, l->count, soonest_ns);
        pthread_mutex_lock(&lc->mutex);
        const bool none = lc->row_count == 0;
        pthread_mutex_unlock(&lc->mutex);
        if (none && !atomic_load(&lc->stopping)) {
            note_path_error(lc,
                            sx_error(SX_NOT_FOUND,
                                     "No versions of servable %s found under base path %s",
                                     lc->name, lc->base_path),
                            "its numbered entries are not directories");
        }
    }
    sx_timed_call_release(&l->call);
}

/* ---- The thread ---- */

/* While nothing is served, logs the reason once a minute. */
static void remind(sx_lifecycle *lc)
{
    const int64_t now_ns = sx_now_ns();
    char reason[1024] = "";
    if (now_ns < lc->remind_at_ns || lc->served != NULL || sx_lifecycle_ready(lc)) {
        return;
    }
    lc->remind_at_ns = now_ns + (int64_t)(lc->config.remind_seconds * 1e9);
    pthread_mutex_lock(&lc->mutex);
    for (size_t i = 0; i < lc->row_count && reason[0] == '\0'; i++) {
        if (lc->rows[i].code != SX_CODE_OK) {
            snprintf(reason, sizeof(reason), "version %" PRId64 ": %s", lc->rows[i].version,
                     lc->rows[i].message != NULL ? lc->rows[i].message : "");
        }
    }
    if (reason[0] == '\0') {
        snprintf(reason, sizeof(reason), "%s",
                 lc->path_message); /* the advice is logged only once */
    }
    pthread_mutex_unlock(&lc->mutex);
    sx_log(SX_LOG_WARN, "model %s: still nothing to serve: %s", lc->name, reason);
}

/* While versions fail again and again, logs once a minute how many did, and at once when no retry
 * is left. */
static void say_failed_again(sx_lifecycle *lc)
{
    const int64_t now_ns = sx_now_ns();
    const int again = lc->failed_again;
    if (again == 0) {
        lc->say_again_at_ns = now_ns + (int64_t)(lc->config.remind_seconds * 1e9);
        return;
    }
    bool more = false;
    pthread_mutex_lock(&lc->mutex);
    for (size_t i = 0; i < lc->row_count; i++) {
        const struct sx_version_row *row = &lc->rows[i];
        more |= row->code != SX_CODE_OK && row->failures > 0 &&
                row->failures <= lc->config.max_load_retries;
    }
    pthread_mutex_unlock(&lc->mutex);
    if (more && now_ns < lc->say_again_at_ns) {
        return;
    }
    char gave_up[100] = "";
    if (lc->gave_up > 0) {
        snprintf(gave_up, sizeof(gave_up), "; %d will be tried again only if %s files change",
                 lc->gave_up, lc->gave_up == 1 ? "its" : "their");
    }
    sx_log(SX_LOG_WARN, "model %s: %d retr%s to load a version failed with the same error%s%s",
           lc->name, again, again == 1 ? "y" : "ies", again == 1 ? "" : "s", gave_up);
    lc->failed_again = lc->gave_up = 0;
}

/* Discards the events: each only means that the path must be scanned again. If the base path is
 * gone, a new watch is added later. */
static void drain_events(sx_lifecycle *lc)
{
    _Alignas(struct inotify_event) char events[4096];
    ssize_t size;
    while (lc->inotify_fd >= 0 && (size = read(lc->inotify_fd, events, sizeof(events))) > 0) {
        for (char *at = events; at < events + size;) {
            const struct inotify_event *event = (const struct inotify_event *)at;
            if (event->wd == lc->watch && (event->mask & (IN_IGNORED | IN_MOVE_SELF))) {
                lc->watch = -1;
            }
            at += sizeof(*event) + event->len;
        }
    }
}

/* Sleeps until something may have changed: an event, the next poll, or the time given by `look`. */
static void wait_for_change(sx_lifecycle *lc, int64_t soonest_ns)
{
    int64_t wait_ms = -1;
    if (lc->config.poll_wait_seconds > 0) {
        wait_ms = (int64_t)(lc->config.poll_wait_seconds * 1000);
    }
    soonest_ns = SX_MIN(soonest_ns, sx_lifecycle_drain_until(lc));
    if (soonest_ns != INT64_MAX) {
        const int64_t until_ms = SX_MAX((soonest_ns - sx_now_ns()) / 1000000 + 1, (int64_t)1);
        const int64_t busy_ms = SX_MIN(until_ms, (int64_t)BUSY_WAIT_MS);
        wait_ms = wait_ms < 0 ? busy_ms : SX_MIN(wait_ms, busy_ms);
    }
    if (lc->served == NULL && !sx_lifecycle_ready(lc)) {
        const int64_t until_ms = SX_MAX((lc->remind_at_ns - sx_now_ns()) / 1000000 + 1, (int64_t)1);
        wait_ms = wait_ms < 0 ? until_ms : SX_MIN(wait_ms, until_ms);
    }
    sx_lifecycle_sleep(lc, lc->inotify_fd, wait_ms);
    drain_events(lc);
}

/* Drains and unloads what is served, and waits for that. */
static void close_down(sx_lifecycle *lc)
{
    bool busy = true;
    sx_lifecycle_retire_all(lc);
    while (busy) {
        sx_lifecycle_unload_idle(lc);
        pthread_mutex_lock(&lc->mutex);
        busy = lc->draining != NULL || lc->idle != NULL || lc->waiting > 0;
        lc->closed = !busy;
        pthread_mutex_unlock(&lc->mutex);
        if (busy) {
            wait_for_change(lc, INT64_MAX);
        }
    }
}

static void *run_lifecycle(void *user)
{
    sx_lifecycle *lc = user;
    lc->remind_at_ns = sx_now_ns() + (int64_t)(lc->config.remind_seconds * 1e9);
    while (!atomic_load(&lc->stopping)) {
        int64_t soonest_ns = INT64_MAX;
        sx_lifecycle_take_source(lc);
        sx_lifecycle_leave_if_asked(lc);
        sx_lifecycle_unload_idle(lc);
        release_returned(lc);
        look(lc, &soonest_ns);
        remind(lc);
        say_failed_again(lc);
        soonest_ns = lc->failed_again > 0 ? SX_MIN(soonest_ns, lc->say_again_at_ns) : soonest_ns;
        if (!atomic_load(&lc->stopping)) {
            wait_for_change(lc, soonest_ns);
        }
    }
    close_down(lc);
    return NULL;
}

sx_status sx_lifecycle_start(sx_lifecycle *lc)
{
    const int error = sx_thread_create(&lc->thread, NULL, run_lifecycle, lc);
    if (error != 0) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "model \"%s\": starting its thread: %s", lc->name,
                        strerror(error));
    }
    lc->started = true;
    return SX_OK;
}
