/* The names of the instructions in an optimized program (as layouts.h reads it), and the operation
 * of our program that each was made from: what the plugin's profiler calls by the first is a node
 * of ours by the second.
 *
 * Message fields used: those of layouts.h, and 1 name of HloInstructionProto. The bytes are
 * untrusted: every length is checked. */
#ifndef SX_BACKENDS_PJRT_HLO_NAMES_H
#define SX_BACKENDS_PJRT_HLO_NAMES_H

#include <sextant/types.h>

#include "base/buffer.h"

/* `op_name`: the `loc` of our text; empty: it has none. Texts are not NUL-terminated. False: no
 * more are wanted. */
typedef bool sx_hlo_name_visit(void *user, sx_bytes name, sx_bytes op_name);

/* Calls `visit` for each instruction of each computation. Errors: DATA_LOSS: not a valid message.
 */
SX_MUST_USE sx_status sx_hlo_names_visit(const void *data, size_t size, sx_hlo_name_visit *visit,
                                         void *user);

#endif
