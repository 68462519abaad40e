/* The memory that the models of a server may take together: models are loaded at their first
 * request, and where there is not enough room, idle ones leave, those that were used longest ago
 * first.
 *
 *   lifecycle A   sx_residency_take(bytes)   false: B is asked to leave
 *   lifecycle B   retires its versions, unloads them, sx_residency_correct(to 0): A is woken
 *   lifecycle A   sx_residency_take(bytes)   true: it loads
 *
 * Functions may be called from any thread, but not with a lifecycle's mutex held. */
#ifndef SX_SERVE_RESIDENCY_H
#define SX_SERVE_RESIDENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sextant/status.h>

#include "base/buffer.h"

typedef struct sx_residency sx_residency;

/* A model; in its lifecycle. The owner sets the first three fields. */
typedef struct sx_resident {
    void *user;
    /* When it was used last; INT64_MAX: it is in use. */
    int64_t (*used_ns)(void *user);
    /* It has been asked to leave (`leave`), or there may be room for what it waits for. Returns at
     * once. */
    void (*wake)(void *user, bool leave);
    size_t bytes; /* that it has taken */
    bool waits;   /* for room */
    bool asked;   /* to leave, and has not answered */
    struct sx_resident *next;
} sx_resident;

SX_MUST_USE sx_status sx_residency_create(size_t limit_bytes, sx_residency **out);
void sx_residency_destroy(sx_residency *residency); /* all have gone; NULL is allowed */
size_t sx_residency_limit(const sx_residency *residency);

void sx_residency_join(sx_residency *residency, sx_resident *resident);
void sx_residency_go(sx_residency *residency, sx_resident *resident); /* with all it has taken */

/* Takes room for `bytes`. False: there is not enough; others have been asked to leave, if they are
 * idle, and the resident is woken when there may be. */
bool sx_residency_take(sx_residency *residency, sx_resident *resident, size_t bytes);
/* Waits for room no more. */
void sx_residency_give_up(sx_residency *residency, sx_resident *resident);
/* It turns out that `taken` bytes, which were taken, are `bytes`: fewer, none, or more. */
void sx_residency_correct(sx_residency *residency, sx_resident *resident, size_t taken,
                          size_t bytes);
/* The answer to the question whether it leaves; if so, once it has given back what it took. */
void sx_residency_answer(sx_residency *residency, sx_resident *resident, bool leaves);

/* Appends its metrics. */
void sx_residency_print_metrics(sx_residency *residency, sx_buf *out);

#endif
