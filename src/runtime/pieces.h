/* A function that computes each example by itself (graph/specialize_examples.h), run in pieces of
 * the batch.
 *
 *   piece         1, 2, 4 … 64 rows (and at most 64 MiB of the program's inputs) or other sizes
 *                 that are given, the last one padded: few executables, and memory that does not
 *                 grow with the batch; pieces are smaller if a program of that many rows would
 *                 exceed the memory limit
 *   host steps    the piece's rows: decoded images
 *   device step   a program of the session, at the piece's size, in a slot (session.h)
 *   host steps    the piece's rows: names of classes
 *
 * Where several devices have slots, as many pieces are computed at once: host steps before the
 * device step, and the submission, of one piece follow those of another, on the caller's thread.
 *
 * A function of host steps only is run in pieces too: memory and the time between looks at `cancel`
 * do not grow with the batch.
 *
 * A result depends only on its own row and the size of the piece that computes it; that depends on
 * the batch and the memory limit, not on other runs. Any number of threads may run at once. */
#ifndef SX_RUNTIME_PIECES_H
#define SX_RUNTIME_PIECES_H

#include "graph/host.h"
#include "graph/library.h"
#include "image/image.h"
#include "runtime/session.h"

typedef struct sx_pieces sx_pieces;

/* The function's variables must be the session's, or become so. `memory` (may be NULL) is charged
 * for what is made. The library, the session, `memory`, `images` and `tables` (as in
 * graph/host.h) outlive it. *out is NULL if the function is of another form. Errors: those of
 * sx_specialize_examples() and sx_session_add_program(). */
SX_MUST_USE sx_status sx_pieces_create(sx_session *session, const sx_library *library,
                                       const sx_function *function, sx_budget *memory,
                                       const sx_image_limits *images, const sx_tables *tables,
                                       sx_pieces **out);
void sx_pieces_destroy(sx_pieces *p); /* NULL is fine; before the session; no run in progress */

/* Whether small inputs may take long: it has host steps that say so (host_check, graph/op_def.h).
 */
bool sx_pieces_may_take_long(const sx_pieces *p);

/* The sizes of pieces, ascending; before anything is compiled. */
enum { SX_PIECE_SIZES = 32 };
void sx_pieces_set_sizes(sx_pieces *p, const int64_t *sizes, int count);
const int64_t *sx_pieces_sizes(const sx_pieces *p, int *out_count);
/* Whether dimension 0 of each argument and of each result is the batch, so that several batches can
 * be run as one. */
bool sx_pieces_may_merge(const sx_pieces *p);
/* A number of examples that the pieces are not for: the function has to be run for that by itself.
 * 0: there is none. */
int64_t sx_pieces_excluded(const sx_pieces *p);
/* Whether a run of so many rows uses the whole device; false if it is not compiled yet. */
bool sx_pieces_is_wide(const sx_pieces *p, int64_t rows);

/* Compiles the smallest size, and larger ones up to `rows` as long as they fit in memory.
 * RESOURCE_EXHAUSTED: the smallest does not. */
SX_MUST_USE sx_status sx_pieces_compile(sx_pieces *p, int64_t rows);
/* After it, once the variables have their values: what else only the first run does, so that it
 * takes no longer than later ones. */
SX_MUST_USE sx_status sx_pieces_prepare(sx_pieces *p);

/* Runs `batch` examples: args[] and results[] as in sx_runner_run(). The arena's budget is charged
 * for all memory of the run before it is allocated; results are in the arena or the library. What
 * is refused without computing (host_check) is refused for the whole batch first. `cancel` (may be
 * NULL) is checked before each piece. */
SX_MUST_USE sx_status sx_pieces_run(sx_pieces *p, const sx_tensor *args, int64_t batch,
                                    const sx_cancel *cancel, sx_arena *arena, sx_tensor *results);

/* What became of the products of convolutions and matrices. */
typedef struct sx_pieces_quantized {
    int products; /* that multiply 8-bit integers now, */
    int skipped;  /* and others, in float32 */
} sx_pieces_quantized;

/* Turns the device step into one of 8-bit integers, whose ranges are those of these examples
 * (runtime/calibration.h); results[] are those of float32. No other run may be in progress.
 * FAILED_PRECONDITION: it has nothing to quantize, or is quantized. Other errors: those of
 * sx_pieces_run(), after which it is as before. */
SX_MUST_USE sx_status sx_pieces_quantize(sx_pieces *p, const sx_tensor *args, int64_t batch,
                                         const sx_cancel *cancel, sx_arena *arena,
                                         sx_tensor *results, sx_pieces_quantized *out);

/* Gives these pieces the ranges of others, quantized before, whose device step differs in names
 * alone; they stay as they are if it does not. */
SX_MUST_USE sx_status sx_pieces_quantize_like(sx_pieces *p, const sx_pieces *like);

#endif
