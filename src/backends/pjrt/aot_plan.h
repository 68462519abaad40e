/* Whether a batch fits in memory, and the largest that does, with a few ahead-of-time compiles.
 *
 * The memory of a step is almost linear in the batch size. Two compiles determine the line, the
 * line predicts the largest batch, and a third compile confirms it. Near the limit a compiler
 * recomputes values instead of keeping them, and small batches stay on the chip, so the points of
 * the line are in between. They do not depend on the requested batch. */
#ifndef SX_BACKENDS_PJRT_AOT_PLAN_H
#define SX_BACKENDS_PJRT_AOT_PLAN_H

#include "backends/pjrt/aot.h"

/* The limit of the search for the largest batch. */
enum { SX_AOT_MOST_BATCH = 1 << 20 };

/* Called before each compile, and after it with a result, whose batch is 0 if it did not compile.
 */
typedef void sx_aot_tell(void *user, int64_t batch, const sx_aot_result *result, bool fits);

typedef struct sx_aot_plan_request {
    sx_aot_request compile; /* with the requested batch */
    sx_aot_tell *tell;      /* may be NULL */
    void *user;
} sx_aot_plan_request;

typedef struct sx_aot_plan {
    sx_aot_result asked; /* for the requested batch, or a smaller one if that does not fit and did
                            not compile */
    bool fits;
    double asked_bytes; /* per device, from the compiler or the line; 0 = unknown */
    int64_t largest;    /* the largest that compiled and fits; 0 = unknown: not searched for, or
                           the device's memory is unknown */
    int64_t points[2];  /* the line's batches; 0 = no line */
    int64_t by_line;    /* the largest according to the line */
    char words[600];    /* the compiler's message about what does not fit */
    char *executable;   /* for the requested batch, with request.compile.keep; free with sx_free */
    size_t executable_size;
} sx_aot_plan;

/* Compiles for the requested batch. It is not an error if it does not fit; see out->fits.
 * Errors: those of sx_aot_compile. */
SX_MUST_USE sx_status sx_aot_plan_make(const sx_aot_plan_request *request, sx_aot_plan *out);

/* Adds the largest batch that fits to a plan, with up to eight more compiles. Does nothing if the
 * device's memory is unknown. */
SX_MUST_USE sx_status sx_aot_plan_find_largest(const sx_aot_plan_request *request,
                                               sx_aot_plan *plan);

/* Bytes per device for a batch, according to the line through two results. */
double sx_aot_bytes_at(const sx_aot_result *a, const sx_aot_result *b, int64_t batch);
/* The largest batch that fits according to the line, at most SX_AOT_MOST_BATCH: a multiple of
 * devices × 8 (tiles have eight rows), or of devices if that would be 0. */
int64_t sx_aot_largest_batch(const sx_aot_result *a, const sx_aot_result *b);

#endif
