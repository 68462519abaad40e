/* A token that requests to stop work whose result is no longer needed, because the caller is gone
 * or the deadline has passed. The caller owns the token; the worker checks it between pieces of
 * work. Any thread; a token of NULL is never cancelled. */
#ifndef SX_BASE_CANCEL_H
#define SX_BASE_CANCEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sextant/status.h>

typedef struct sx_cancel {
    int64_t deadline_ns;           /* of sx_now_ns(); INT64_MAX = none */
    int64_t max_trips;             /* of one loop of a program; 0 = any number */
    const struct sx_cancel *outer; /* a stop of which stops this work, too; NULL = none */
    atomic_bool requested;
} sx_cancel;

/* Of one loop, where its owner sets no bound of its own. */
#define SX_MAX_TRIPS ((int64_t)1 << 30)

/* Without `max_trips` and `outer`, which the owner may set before the work begins. */
void sx_cancel_init(sx_cancel *cancel, int64_t deadline_ns);
/* The same with a deadline so many milliseconds from now; 0 = none. */
void sx_cancel_init_ms(sx_cancel *cancel, int64_t timeout_ms);
/* For public functions that take `timeout_ms`: INVALID_ARGUMENT if it is negative. */
SX_MUST_USE sx_status sx_check_timeout_ms(int64_t timeout_ms);
/* Adds `timeout_ms` to a DEADLINE_EXCEEDED; any other status stays as it is. */
SX_MUST_USE sx_status sx_say_timeout_ms(sx_status status, int64_t timeout_ms);
/* Requests the stop. */
void sx_cancel_request(sx_cancel *cancel);
/* Whether a stop was requested. Does not read the clock: for inner loops. */
bool sx_cancel_requested(const sx_cancel *cancel);
/* CANCELLED if a stop was requested, DEADLINE_EXCEEDED if the deadline has passed, else OK. */
SX_MUST_USE sx_status sx_cancel_check(const sx_cancel *cancel);
/* The same before trip `trip`, from 0, of a loop whose condition holds; RESOURCE_EXHAUSTED after
 * `max_trips`. */
SX_MUST_USE sx_status sx_cancel_check_trip(const sx_cancel *cancel, int64_t trip);

#endif
