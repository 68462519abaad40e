/* See config_watch.h. */
#include "serve/config_watch.h"

#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/thread.h"
#include "io/file.h"
#include "serve/model_config.h"

enum { MAX_CONFIG_BYTES = 16 << 20 };

struct sx_config_watch {
    const sx_config_kind *kind;
    char *path;
    double poll_seconds;
    sx_manager *manager;
    pthread_t thread;
    bool started;
    uint64_t applied; /* hash of the text that is in effect */
    uint64_t said;    /* hash of the mistake that was logged last; 0 = none since a good text */

    pthread_mutex_t mutex; /* guards the fields below */
    pthread_cond_t changed;
    bool reload, stop;
};

static sx_status apply_models(sx_manager *manager, sx_bytes text, const char *path)
{
    size_t count = 0;
    sx_model_config *models = NULL;
    sx_arena arena;
    sx_arena_init(&arena, 0);
    sx_status status = sx_model_config_parse(text, path, &arena, &models, &count);
    status = status == SX_OK ? sx_manager_set_models(manager, models, count) : status;
    sx_arena_deinit(&arena);
    return status;
}

static sx_status apply_traffic(sx_manager *manager, sx_bytes text, const char *path)
{
    size_t count = 0;
    sx_traffic *rows = NULL;
    sx_arena arena;
    sx_arena_init(&arena, 0);
    sx_status status = sx_traffic_parse(text, path, &arena, &rows, &count);
    status = status == SX_OK ? sx_manager_set_traffic(manager, rows, count) : status;
    sx_arena_deinit(&arena);
    return status;
}

const sx_config_kind sx_config_models = {"models", apply_models};
const sx_config_kind sx_config_traffic = {"shares of their versions", apply_traffic};

/* Gives the manager what the file says, if its text is another one, or `always`. */
static sx_status apply(sx_config_watch *watch, bool always, bool *out_applied)
{
    char *text = NULL;
    size_t size = 0;
    SX_TRY(sx_file_read(watch->path, MAX_CONFIG_BYTES, &text, &size));
    const uint64_t hash = sx_hash64(text, size);
    *out_applied = always || hash != watch->applied;
    sx_status status = *out_applied
                           ? watch->kind->apply(watch->manager, (sx_bytes){text, size}, watch->path)
                           : SX_OK;
    sx_free(text);
    watch->applied = status == SX_OK ? hash : watch->applied;
    return status;
}

/* `asked`: by sx_config_watch_reload(); then also a mistake that was logged before is. */
static void reload(sx_config_watch *watch, bool asked)
{
    bool applied = false;
    sx_status status = apply(watch, asked, &applied);
    const char *message = sx_status_message(status);
    const uint64_t hash = sx_hash64(message, strlen(message));
    if (status == SX_OK && applied) {
        sx_log(SX_LOG_INFO, "the %s are now those of %s", watch->kind->what, watch->path);
    } else if (status != SX_OK && (asked || hash != watch->said)) {
        sx_log(SX_LOG_ERROR, "%s; the %s stay as they are", message, watch->kind->what);
    }
    watch->said = status == SX_OK ? 0 : hash;
    sx_status_free(status);
}

static void *run_watch(void *user)
{
    sx_config_watch *watch = user;
    pthread_mutex_lock(&watch->mutex);
    while (!watch->stop) {
        int error = 0;
        const double seconds = SX_MIN(watch->poll_seconds, 1e6);
        const struct timespec until = sx_timespec_of(sx_now_ns() + (int64_t)(seconds * 1e9));
        while (!watch->stop && !watch->reload && error == 0) {
            error = watch->poll_seconds > 0 ? pthread_cond_clockwait(&watch->changed, &watch->mutex,
                                                                     CLOCK_MONOTONIC, &until)
                                            : pthread_cond_wait(&watch->changed, &watch->mutex);
        }
        const bool asked = watch->reload;
        watch->reload = false;
        if (!watch->stop) {
            pthread_mutex_unlock(&watch->mutex);
            reload(watch, asked);
            pthread_mutex_lock(&watch->mutex);
        }
    }
    pthread_mutex_unlock(&watch->mutex);
    return NULL;
}

sx_status sx_config_watch_create(const sx_config_kind *kind, const char *path, double poll_seconds,
                                 sx_manager *manager, sx_config_watch **out_watch)
{
    bool applied;
    sx_config_watch *watch = sx_alloc(1, sizeof(*watch));
    if (watch == NULL) {
        return sx_no_memory("for %s", path);
    }
    pthread_mutex_init(&watch->mutex, NULL);
    pthread_cond_init(&watch->changed, NULL);
    watch->kind = kind;
    watch->path = sx_strdup(path);
    watch->poll_seconds = poll_seconds;
    watch->manager = manager;
    sx_status status =
        watch->path != NULL ? apply(watch, true, &applied) : sx_no_memory("for %s", path);
    if (status != SX_OK) {
        sx_config_watch_destroy(watch);
        return status;
    }
    *out_watch = watch;
    return SX_OK;
}

sx_status sx_config_watch_start(sx_config_watch *watch)
{
    const int error = sx_thread_create(&watch->thread, NULL, run_watch, watch);
    if (error != 0) {
        return sx_error(SX_RESOURCE_EXHAUSTED, "starting a thread for %s: %s", watch->path,
                        strerror(error));
    }
    watch->started = true;
    return SX_OK;
}

static void signal_thread(sx_config_watch *watch, bool *flag)
{
    pthread_mutex_lock(&watch->mutex);
    *flag = true;
    pthread_cond_broadcast(&watch->changed);
    pthread_mutex_unlock(&watch->mutex);
}

void sx_config_watch_reload(sx_config_watch *watch)
{
    signal_thread(watch, &watch->reload);
}

void sx_config_watch_destroy(sx_config_watch *watch)
{
    if (watch == NULL) {
        return;
    }
    if (watch->started) {
        signal_thread(watch, &watch->stop);
        pthread_join(watch->thread, NULL);
    }
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->mutex);
    sx_free(watch->path);
    sx_free(watch);
}
