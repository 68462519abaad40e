/* Does a batch fit, and which is the largest that does: a few compiles ahead of time.
 *
 * The bytes of a step are close to a line in the batch. Two compiles give the line, the line a
 * batch, and one more compile confirms it. Near the limit a compiler computes values again rather
 * than keep them, and small batches lie on the chip, so the line is drawn from batches in between:
 * the same ones whatever batch is asked for.
 */
#ifndef SX_BACKENDS_PJRT_AOT_PLAN_H
#define SX_BACKENDS_PJRT_AOT_PLAN_H

#include "backends/pjrt/aot.h"

/* Where the search for the largest batch ends. */
enum { SX_AOT_MOST_BATCH = 1 << 20 };

/* Told before each compile; with a result, after it: batch 0 in the result if the compiler itself
 * refused it. */
typedef void sx_aot_tell(void *user, int64_t batch, const sx_aot_result *result, bool fits);

typedef struct sx_aot_plan_request {
    sx_aot_request compile; /* with the batch that is asked for */
    sx_aot_tell *tell;      /* may be NULL */
    void *user;
} sx_aot_plan_request;

typedef struct sx_aot_plan {
    sx_aot_result asked; /* compiled; where it does not fit and did not compile, a smaller batch */
    bool fits;
    double asked_bytes; /* of one device: compiled, or by the line; 0 = unknown */
    int64_t largest;    /* that was compiled and fits; 0 = not known: not searched for, or the
                           device's memory is unknown */
    int64_t points[2];  /* the line's batches; 0 = no line */
    int64_t by_line;    /* the largest that the line allows */
    char words[600];    /* the compiler's, about what does not fit */
    char *executable;   /* request.compile.keep: of the batch asked for; free with sx_free */
    size_t executable_size;
} sx_aot_plan;

/* Compiles for the batch that is asked for. One that does not fit is no error: out->fits says so.
 * Errors: those of sx_aot_compile. */
SX_MUST_USE sx_status sx_aot_plan_make(const sx_aot_plan_request *request, sx_aot_plan *out);

/* Adds the largest batch that fits, with up to eight compiles more, to a plan that was made.
 * Nothing is compiled where the device's memory is unknown. */
SX_MUST_USE sx_status sx_aot_plan_find_largest(const sx_aot_plan_request *request,
                                               sx_aot_plan *plan);

/* What the line through two results says of a batch: bytes of one device. */
double sx_aot_bytes_at(const sx_aot_result *a, const sx_aot_result *b, int64_t batch);
/* The largest batch that the line allows in the device's memory: a multiple of devices × 8 where
 * that is not 0 (rows of tiles come in eights), else of devices; at most SX_AOT_MOST_BATCH. */
int64_t sx_aot_largest_batch(const sx_aot_result *a, const sx_aot_result *b);

#endif
