/* Two runs of one program that take turns, on a device that is not waited for: while it computes
 * one, the inputs of the other are copied to it, and its run is submitted.
 *
 *   device   batch 1 ──────│ batch 2 ──────│ batch 3 ──
 *   copies   batch 2 ──    │ batch 3 ──    │
 *   host     begin 2       │ end 1, begin 3│ end 2, …
 *
 * The program assigns no variable. One thread. */
#ifndef SX_RUNTIME_LANES_H
#define SX_RUNTIME_LANES_H

#include "runtime/session.h"

enum { SX_LANES = 2 };

typedef struct sx_lanes sx_lanes;

/* *out is NULL where runs end when they are begun. The program must outlive it. Errors: those of
 * sx_program_prepare(). */
SX_MUST_USE sx_status sx_lanes_create(sx_program *program, int64_t batch, sx_lanes **out);
/* Waits for the runs that have not ended; NULL is fine. */
void sx_lanes_destroy(sx_lanes *lanes);

/* Begins lane 0's or lane 1's run; inputs[i] must stay as they are until it has ended. */
SX_MUST_USE sx_status sx_lanes_begin(sx_lanes *lanes, int lane, const void *const *inputs);
/* Waits for that run, and copies all its outputs (sx_program_read_output). */
SX_MUST_USE sx_status sx_lanes_end(sx_lanes *lanes, int lane, void *const *outputs);

#endif
