/* A program's state (session.h), for the files of this directory. */
#ifndef SX_RUNTIME_PROGRAM_H
#define SX_RUNTIME_PROGRAM_H

#include "runtime/session.h"

/* A program compiled for one batch size, with buffers of the inputs and outputs of that size. */
typedef struct sx_compiled {
    int64_t batch;
    sx_executable *executable;
    sx_buffer **args;    /* [graph's args]: variables' buffers, and our own for inputs */
    sx_buffer **outputs; /* [graph's results]: NULL where a variable is assigned */
    struct sx_compiled *next;
} sx_compiled;

struct sx_program {
    sx_session *session;
    const sx_graph *graph;
    int *inputs;  /* [n_inputs]: args that the caller feeds */
    int *outputs; /* [n_outputs]: results that are no assignments */
    int *scalars; /* [n_scalars]: indices into outputs */
    int n_inputs, n_outputs, n_scalars;
    const void **fed;      /* [n_inputs] of the loop */
    sx_compiled *compiled; /* newest first */
    sx_compiled *last;     /* of the last run; NULL before */
    struct sx_program *next;
};

#endif
