#include "base/cancel.h"

#include "base/checked.h"
#include "base/clock.h"

void sx_cancel_init(sx_cancel *cancel, int64_t deadline_ns)
{
    cancel->deadline_ns = deadline_ns;
    cancel->max_trips = 0;
    cancel->outer = NULL;
    atomic_store_explicit(&cancel->requested, false, memory_order_relaxed);
}

void sx_cancel_init_ms(sx_cancel *cancel, int64_t timeout_ms)
{
    int64_t until_ns;
    const bool bounded = timeout_ms > 0 && sx_mul_i64(timeout_ms, 1000000, &until_ns) &&
                         sx_add_i64(until_ns, sx_now_ns(), &until_ns);
    sx_cancel_init(cancel, bounded ? until_ns : INT64_MAX);
}

sx_status sx_check_timeout_ms(int64_t timeout_ms)
{
    return timeout_ms >= 0 ? SX_OK
                           : sx_error(SX_INVALID_ARGUMENT, "timeout_ms is %lld; 0 means no limit",
                                      (long long)timeout_ms);
}

sx_status sx_say_timeout_ms(sx_status status, int64_t timeout_ms)
{
    return sx_status_code(status) != SX_DEADLINE_EXCEEDED
               ? status
               : sx_status_annotate(status, __FILE__, __LINE__, "after timeout_ms, %lld ms",
                                    (long long)timeout_ms);
}

void sx_cancel_request(sx_cancel *cancel)
{
    atomic_store_explicit(&cancel->requested, true, memory_order_relaxed);
}

bool sx_cancel_requested(const sx_cancel *cancel)
{
    while (cancel != NULL && !atomic_load_explicit(&cancel->requested, memory_order_relaxed)) {
        cancel = cancel->outer;
    }
    return cancel != NULL;
}

sx_status sx_cancel_check(const sx_cancel *cancel)
{
    if (cancel == NULL) {
        return SX_OK;
    }
    /* The deadline first: when it passes, the owner of the token requests the stop as well. */
    if (cancel->deadline_ns != INT64_MAX && sx_now_ns() >= cancel->deadline_ns) {
        return sx_error(SX_DEADLINE_EXCEEDED, "deadline exceeded");
    }
    return sx_cancel_requested(cancel) ? sx_error(SX_CANCELLED, "cancelled by the caller") : SX_OK;
}

sx_status sx_cancel_check_trip(const sx_cancel *cancel, int64_t trip)
{
    if (cancel != NULL && cancel->max_trips > 0 && trip >= cancel->max_trips) {
        return sx_error(SX_RESOURCE_EXHAUSTED,
                        "the condition is still true after %lld iterations, the limit",
                        (long long)cancel->max_trips);
    }
    return sx_cancel_check(cancel);
}
