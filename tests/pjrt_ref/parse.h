/* StableHLO text, in the subset that Sextant's lowering emits (MLIR's generic form), to a program:
 *
 *     module @name {
 *       func.func public @main(%0: tensor<2x1xf32> {tf.aliasing_output = 0 : i32}) -> (types) {
 *         %1, %2 = "stablehlo.op"(%0) ({ ^bb0(%3: type): ops }) {attributes} : (types) -> types
 *             loc("node")
 *         func.return %1 : types
 *       }
 *     }
 *
 * One function, regions of one block, static shapes, locations that are one name. Any bytes are
 * safe: depth, counts and sizes are bounded (program.h), and an error says the line and, where the
 * operation had a location, loc("name") as XLA does. */
#ifndef PJRT_REF_PARSE_H
#define PJRT_REF_PARSE_H

#include "pjrt_ref/program.h"

/* The text need not end in a NUL, and is not needed afterwards. `replicas`: how many run it.
 * Errors: INVALID_ARGUMENT, UNIMPLEMENTED (an operation that there is no row for),
 * RESOURCE_EXHAUSTED. */
SX_MUST_USE sx_status ref_parse(const char *text, size_t size, int replicas, ref_program **out);
void ref_program_destroy(ref_program *p); /* NULL is fine */

#endif
