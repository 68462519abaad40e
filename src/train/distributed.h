/* Data distributed over a strategy (sextant/runtime.h), before a training reads them. */
#ifndef SX_TRAIN_DISTRIBUTED_H
#define SX_TRAIN_DISTRIBUTED_H

#include <sextant/runtime.h>

#include "train/inputs.h"

struct sx_distributed {
    sx_strategy *strategy; /* a reference */
    sx_inputs inputs;
    int64_t batch; /* examples of a step; 0 = the batches', or the configuration's */
    sx_mode mode;
    const char *file; /* where it was made; static */
    int line;
};

/* Adds the line of user code in front: "loop.c:41: <message>". */
sx_status sx_at_user_line(sx_status status, const char *file, int line);

#endif
