/* Inputs that are made up, for a model whose time is measured: always the same ones. */
#ifndef SX_CLI_GENERATED_INPUTS_H
#define SX_CLI_GENERATED_INPUTS_H

#include <sextant/types.h>

#include "base/arena.h"

typedef struct sx_generated_sizes {
    int64_t batch;
    int64_t image; /* of the axes of an image that its type leaves open; 0 = 224 */
    int64_t other; /* of other open axes; 0 = 32 */
} sx_generated_sizes;

/* A tensor of the type, in `arena`: floats in [0, 1), bytes of noise, other integers 0 (a class, an
 * index, a word: whatever it is, 0 is one), true, strings that are JPEG files of flowers. Errors:
 * INVALID_ARGUMENT: an unknown rank; RESOURCE_EXHAUSTED. */
SX_MUST_USE sx_status sx_generate_input(sx_type type, const sx_generated_sizes *sizes,
                                        sx_arena *arena, sx_tensor *out);

#endif
