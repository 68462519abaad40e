/* Checks whether a program fits on its device, when it is compiled, before the first record is
 * read.
 *
 *   bytes of a device = arguments + outputs − outputs over arguments + temporaries + code
 *
 * This is nearly linear in the batch: compiling a second, smaller batch gives the line, and the
 * line gives the largest batch that fits. A device that does not report its memory is not checked.
 */
#ifndef SX_RUNTIME_MEMORY_FIT_H
#define SX_RUNTIME_MEMORY_FIT_H

#include "runtime/session.h"

/* Compiles for `batch`, if that is not done yet. `ok_output` is that of the step loop. Errors:
 * RESOURCE_EXHAUSTED it does not fit: both sizes, and the largest batch that would; those of
 * compiling. */
SX_MUST_USE sx_status sx_program_prove_fit(sx_session *session, sx_program *program, int64_t batch,
                                           int ok_output);

/* The same for a batch that replicas do not divide, the last of an epoch: each replica computes it
 * whole. */
SX_MUST_USE sx_status sx_program_prove_remainder_fits(sx_session *session, sx_program *program,
                                                      int64_t batch);

/* The largest batch that fits, about, by the line through a half and a quarter of `batch`, for
 * which the step loop is compiled, with its staged batches; 0 = not known. */
int64_t sx_program_suggest_batch(sx_session *session, sx_program *program, int64_t batch,
                                 int ok_output);

/* The largest multiple of `unit` whose bytes, on the line through (batch, bytes) a and b, stay
 * within `limit`; 0 if there is none, or no line. */
int64_t sx_batch_within(int64_t batch_a, int64_t bytes_a, int64_t batch_b, int64_t bytes_b,
                        int64_t limit, int64_t unit);

#endif
