/* Shadows: copies of requests, run by another version of the model and compared with what the
 * caller got. The caller never waits: copies that do not fit into what is waiting already are
 * dropped, and one thread of low priority runs the others, past the batcher.
 *
 * Answers are equal if they have the same outputs of the same shapes, integers and texts that are
 * the same, and floats that differ by at most `tolerance` times the output's largest one. */
#ifndef SX_SERVE_SHADOW_H
#define SX_SERVE_SHADOW_H

#include "serve/lifecycle.h"

typedef struct sx_shadow sx_shadow;

SX_MUST_USE sx_status sx_shadow_create(sx_shadow **out_shadow);
/* Stops the copy that runs, drops those that wait, and ends the thread: no servable is held any
 * more. Idempotent; NULL is allowed. */
void sx_shadow_stop(sx_shadow *shadow);
void sx_shadow_destroy(sx_shadow *shadow); /* stops first; NULL is allowed */

/* Has `servable`, which it releases, answer the same inputs, and counts the result in its metrics.
 */
void sx_shadow_run(sx_shadow *shadow, sx_served *servable, double tolerance,
                   const sx_serve_signature *signature, const sx_tensor *inputs,
                   const sx_tensor *outputs);

/* ---- Parts ---- */

/* Whether two values of an output are equal in that sense. */
bool sx_shadow_equal(const sx_tensor *a, const sx_tensor *b, double tolerance);

#endif
