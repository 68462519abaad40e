/* Several calls as one: their inputs one behind the other, and their parts of the outputs. */
#ifndef SX_SERVE_BATCH_MERGE_H
#define SX_SERVE_BATCH_MERGE_H

#include <stdatomic.h>

#include "base/arena.h"
#include "serve/batch_queue.h"
#include "serve/batcher.h"

struct sx_merged {
    atomic_int users; /* calls whose outputs lie in it, and the run */
    sx_budget budget; /* of its memory; part of the budget that the calls' are part of */
    sx_arena arena;   /* of the outputs */
    void *block;      /* of the inputs */
    size_t block_bytes;
    sx_tensor *inputs;  /* [input_count] */
    sx_tensor *outputs; /* [output_count] */
    int64_t rows;       /* of the calls, without padding */
    int64_t size;       /* with it */
};

/* A batch of the calls of a list, with one user; `size` rows, where no input has strings: those
 * that are missing are copies of the first. RESOURCE_EXHAUSTED. */
SX_MUST_USE sx_status sx_merged_create(const sx_serve_signature *signature,
                                       const sx_batch_call *calls, int64_t size, sx_budget *parent,
                                       sx_merged **out);
/* Whether each output has a row for each row of the inputs. */
bool sx_merged_can_split(const sx_merged *batch, const sx_serve_signature *signature);
/* The outputs of `rows` rows from `first`: views. */
void sx_merged_part(const sx_merged *batch, const sx_serve_signature *signature, int64_t first,
                    int64_t rows, sx_tensor *outputs);

/* The bytes of one row of a tensor that has rows. */
size_t sx_batch_row_bytes(const sx_type *type);

#endif
