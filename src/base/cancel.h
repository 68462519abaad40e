/* A request to stop work that nobody waits for any more: because its caller is gone, or because its
 * time is over. Whoever gives the work owns the token; whoever does it checks the token between
 * pieces of the work. Any thread; a token of NULL is never cancelled. */
#ifndef SX_BASE_CANCEL_H
#define SX_BASE_CANCEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sextant/status.h>

typedef struct sx_cancel {
    int64_t deadline_ns; /* of sx_now_ns(); INT64_MAX = none */
    atomic_bool requested;
} sx_cancel;

void sx_cancel_init(sx_cancel *cancel, int64_t deadline_ns);
/* Asks for the work to stop. */
void sx_cancel_request(sx_cancel *cancel);
/* Has it been asked for? Does not look at the clock: for inner loops. */
bool sx_cancel_requested(const sx_cancel *cancel);
/* CANCELLED if it has been asked for, DEADLINE_EXCEEDED if the deadline has passed, else OK. */
SX_MUST_USE sx_status sx_cancel_check(const sx_cancel *cancel);

#endif
