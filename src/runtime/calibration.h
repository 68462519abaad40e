/* Ranges for 8-bit integers (graph/passes/quantize.h), from examples that a float32 program runs
 * on.
 *
 * Of each value that is to be quantized, a histogram of its magnitudes is kept, and the extremes.
 * The range of an image is the one of which the squares of the errors add up to the least: what
 * lies beyond it is clipped, what lies inside is rounded, in smaller steps if the range is smaller.
 * That of a filter is its largest magnitude, in each of its last dimension. */
#ifndef SX_RUNTIME_CALIBRATION_H
#define SX_RUNTIME_CALIBRATION_H

#include "graph/passes/quantize.h"

typedef struct sx_calibration sx_calibration;

/* FAILED_PRECONDITION: the graph has nothing that can be quantized. */
SX_MUST_USE sx_status sx_calibration_create(const sx_graph *graph, sx_calibration **out);
void sx_calibration_destroy(sx_calibration *c); /* NULL is fine */

/* The graph to run: its outputs are those of the graph, then the values to observe. Owned by the
 * calibration. */
const sx_graph *sx_calibration_graph(const sx_calibration *c);
const sx_quantize_points *sx_calibration_points(const sx_calibration *c);
/* Adds what a run gave for a point. */
void sx_calibration_observe(sx_calibration *c, int point, const float *data, int64_t elems);
/* The graph with quantizers; the caller's. INVALID_ARGUMENT: a value that is not finite, or nothing
 * was observed; the message names the node. */
SX_MUST_USE sx_status sx_calibration_finish(sx_calibration *c, sx_graph **out);
/* After that, the same ranges for a graph that differs from the first in names alone. */
SX_MUST_USE sx_status sx_calibration_apply(const sx_calibration *c, const sx_graph *graph,
                                           sx_graph **out);

#endif
