/* The memory of loaded models; see residency.h. */
#include "serve/residency.h"

#include <pthread.h>

#include "base/memory.h"
#include "serve/metrics.h"

struct sx_residency {
    size_t limit_bytes;
    pthread_mutex_t mutex; /* guards the fields below, and those of the residents */
    size_t used_bytes;
    sx_resident *residents;
    uint64_t left; /* how often one has made room */
};

sx_status sx_residency_create(size_t limit_bytes, sx_residency **out)
{
    sx_residency *residency = sx_alloc(1, sizeof(*residency));
    if (residency == NULL) {
        return sx_no_memory("for the models");
    }
    residency->limit_bytes = limit_bytes;
    pthread_mutex_init(&residency->mutex, NULL);
    *out = residency;
    return SX_OK;
}

void sx_residency_destroy(sx_residency *residency)
{
    if (residency != NULL) {
        pthread_mutex_destroy(&residency->mutex);
        sx_free(residency);
    }
}

size_t sx_residency_limit(const sx_residency *residency)
{
    return residency->limit_bytes;
}

void sx_residency_join(sx_residency *residency, sx_resident *resident)
{
    pthread_mutex_lock(&residency->mutex);
    resident->next = residency->residents;
    residency->residents = resident;
    pthread_mutex_unlock(&residency->mutex);
}

/* With the mutex held. */
static void wake_waiting(const sx_residency *residency)
{
    for (const sx_resident *r = residency->residents; r != NULL; r = r->next) {
        if (r->waits) {
            r->wake(r->user, false);
        }
    }
}

void sx_residency_go(sx_residency *residency, sx_resident *resident)
{
    pthread_mutex_lock(&residency->mutex);
    sx_resident **at = &residency->residents;
    while (*at != NULL && *at != resident) {
        at = &(*at)->next;
    }
    if (*at != NULL) {
        *at = resident->next;
    }
    residency->used_bytes -= resident->bytes;
    resident->bytes = 0;
    wake_waiting(residency);
    pthread_mutex_unlock(&residency->mutex);
}

/* With the mutex held: the idle one that was used longest ago and has not been asked; or NULL. */
static sx_resident *longest_idle(const sx_residency *residency, const sx_resident *but)
{
    sx_resident *found = NULL;
    int64_t found_ns = INT64_MAX;
    for (sx_resident *r = residency->residents; r != NULL; r = r->next) {
        const int64_t used_ns =
            r != but && r->bytes > 0 && !r->asked ? r->used_ns(r->user) : INT64_MAX;
        if (used_ns < found_ns) {
            found = r;
            found_ns = used_ns;
        }
    }
    return found;
}

/* With the mutex held: asks so many to leave that `missing` bytes become free, if there are. */
static void ask_others(const sx_residency *residency, const sx_resident *but, size_t missing)
{
    size_t expected = 0;
    for (const sx_resident *r = residency->residents; r != NULL; r = r->next) {
        expected += r->asked ? r->bytes : 0;
    }
    while (expected < missing) {
        sx_resident *r = longest_idle(residency, but);
        if (r == NULL) {
            return;
        }
        r->asked = true;
        expected += r->bytes;
        r->wake(r->user, true);
    }
}

bool sx_residency_take(sx_residency *residency, sx_resident *resident, size_t bytes)
{
    pthread_mutex_lock(&residency->mutex);
    const size_t used = residency->used_bytes, limit = residency->limit_bytes;
    const bool fits = bytes <= limit && used <= limit - bytes;
    if (fits) {
        residency->used_bytes += bytes;
        resident->bytes += bytes;
    } else {
        ask_others(residency, resident, used + bytes - limit);
    }
    resident->waits = !fits;
    pthread_mutex_unlock(&residency->mutex);
    return fits;
}

void sx_residency_give_up(sx_residency *residency, sx_resident *resident)
{
    pthread_mutex_lock(&residency->mutex);
    resident->waits = false;
    pthread_mutex_unlock(&residency->mutex);
}

void sx_residency_correct(sx_residency *residency, sx_resident *resident, size_t taken,
                          size_t bytes)
{
    pthread_mutex_lock(&residency->mutex);
    residency->used_bytes += bytes - taken;
    resident->bytes += bytes - taken;
    if (residency->used_bytes > residency->limit_bytes) {
        ask_others(residency, resident, residency->used_bytes - residency->limit_bytes);
    } else {
        wake_waiting(residency);
    }
    pthread_mutex_unlock(&residency->mutex);
}

void sx_residency_answer(sx_residency *residency, sx_resident *resident, bool leaves)
{
    pthread_mutex_lock(&residency->mutex);
    resident->asked = false;
    residency->left += leaves;
    wake_waiting(residency); /* to ask another */
    pthread_mutex_unlock(&residency->mutex);
}

void sx_residency_print_metrics(sx_residency *residency, sx_buf *out)
{
    pthread_mutex_lock(&residency->mutex);
    const uint64_t used = residency->used_bytes, left = residency->left;
    uint64_t loaded = 0;
    for (const sx_resident *r = residency->residents; r != NULL; r = r->next) {
        loaded += r->bytes > 0;
    }
    pthread_mutex_unlock(&residency->mutex);
    sx_metrics_print_value(out, "sextant_loaded_models", "gauge", "Models that are loaded.",
                           loaded);
    sx_metrics_print_value(out, "sextant_loaded_memory_bytes", "gauge", "Memory of loaded models.",
                           used);
    sx_metrics_print_value(out, "sextant_loaded_memory_limit_bytes", "gauge",
                           "Limit of sextant_loaded_memory_bytes.", residency->limit_bytes);
    sx_metrics_print_value(out, "sextant_models_left_total", "counter",
                           "Models that were unloaded to make room for others.", left);
}
