/* A program's state (session.h), for the files of this directory. */
#ifndef SX_RUNTIME_PROGRAM_H
#define SX_RUNTIME_PROGRAM_H

#include "runtime/session.h"

/* A program compiled for one batch size, with buffers of the inputs and outputs of that size. */
typedef struct sx_compiled {
    int64_t batch;
    int64_t steps; /* more than 1: a loop of up to that many, over superbatches */
    bool donates;  /* executions take the inputs */
    sx_executable *executable;
    sx_run *run;
    sx_device_buffer *
        *args; /* [graph's args, the loop's count]: buffers of variables, and its own */
    sx_device_buffer *
        *outputs;      /* [graph's results, the loop's count]: NULL for assignments of variables */
    size_t port_bytes; /* of inputs and outputs, charged to the session's budget */
    struct sx_compiled *next;
} sx_compiled;

typedef struct sx_launches sx_launches; /* loop.c */
typedef struct sx_slots sx_slots;       /* slots.c */

struct sx_program {
    sx_session *session;
    const sx_graph *graph; /* the caller's, or: */
    sx_graph *rewritten;   /* by the session's options, and for launches (launch_graph.h) */
    int latch, packed;     /* the arg and the result for launches; -1 = none */
    sx_device_buffer *latch_buffer;
    int *inputs;  /* [n_inputs]: args that the caller feeds */
    int *outputs; /* [n_outputs]: results that are not assignments */
    int *scalars; /* [n_scalars]: indices into outputs */
    int *words;   /* [n_scalars]: places in the packed output; 0 = it is not there */
    int n_words;  /* of that output */
    int n_inputs, n_outputs, n_scalars;
    const void **fed;      /* [n_inputs] of the loop */
    sx_compiled *compiled; /* newest first */
    sx_compiled *last;     /* of the last run, or of the step to replay; NULL before */
    sx_launches *launches; /* NULL = one step at a time */
    struct sx_launch
        *shown; /* the launch whose step the loop shows; NULL: `last` has the outputs */
    _Atomic(sx_slots *) slots; /* of a program shared by threads: newest first */
    const sx_digest *digest;   /* sx_program_set_digest(); NULL = unknown */
    struct sx_program *next;
};

/* A program of `graph`, whose variables the session has. */
SX_MUST_USE sx_status sx_program_create(sx_session *s, const sx_graph *graph, sx_program **out);
void sx_program_destroy(sx_program *p);

/* What a program is compiled for. */
typedef struct sx_program_shape {
    int64_t batch, steps;
    int ok_output; /* as in sx_loop_args, with more than 1 step */
    bool donates;  /* as donate_inputs of sx_compile_options */
} sx_program_shape;
/* One step of that batch, as single executions run it. */
#define SX_ONE_STEP(batch_) (&(sx_program_shape){.batch = (batch_), .steps = 1, .ok_output = -1})

/* The program of that shape, compiled the first time. */
SX_MUST_USE sx_status sx_program_compiled(sx_program *p, const sx_program_shape *shape,
                                          sx_compiled **out);
/* An executable of that shape, under the session's options. */
SX_MUST_USE sx_status sx_program_compile(const sx_program *p, const sx_program_shape *shape,
                                         const sx_cancel *cancel, sx_executable **out);
/* Waits for an execution; sx_session_options.give_up may end the wait, and the run then stays as it
 * is until it is destroyed. */
SX_MUST_USE sx_status sx_session_await(const sx_session *s, sx_run *run);
/* A run of an executable of the program, and buffers of its inputs and outputs, on device 0 or
 * another that has slots; its variables have their values then. */
SX_MUST_USE sx_status sx_program_bind(sx_program *p, sx_executable *executable, int64_t batch,
                                      int64_t steps, int device, sx_compiled **out);
/* Buffers for one step at `batch`, without an executable, to replay a step. */
SX_MUST_USE sx_status sx_program_bind_step(sx_program *p, int64_t batch, const void *const *inputs,
                                           sx_compiled **out);
void sx_compiled_destroy(const sx_program *p, sx_compiled *c); /* NULL is fine */
/* Lets the device apply updates again, after one was withheld. */
SX_MUST_USE sx_status sx_program_arm(sx_program *p);
/* Releases the programs compiled for single steps; false if there were none. */
bool sx_program_release_compiled(sx_program *p);
/* The same for all programs of the session. */
bool sx_session_release_compiled(sx_session *s);

const sx_session_options *sx_session_get_options(const sx_session *s);
sx_platform *sx_session_platform(const sx_session *s);
sx_device *sx_session_device_at(const sx_session *s, int device);
/* The buffer of variable i on one of the devices that have slots; borrowed. One thread at a time.
 */
SX_MUST_USE sx_status sx_session_variable_on(sx_session *s, int i, int device,
                                             sx_device_buffer **out);

/* Lets threads that share the session's programs wait (slots.c). */
typedef struct sx_slot_gate {
    pthread_mutex_t lock; /* for creating, waiting and emptying; not for taking an idle slot */
    pthread_cond_t changed;
    atomic_int waiters;
    bool emptying;
} sx_slot_gate;
sx_slot_gate *sx_session_gate(sx_session *s);
sx_program *sx_session_programs(const sx_session *s);

/* slots.c */
void sx_slot_gate_init(sx_slot_gate *gate);
void sx_slot_gate_deinit(sx_slot_gate *gate);
void sx_slots_destroy(sx_program *p); /* none is taken */

/* loop.c */
void sx_launches_destroy(sx_program *p); /* launches may be NULL */
/* The executable of launches for that batch, or NULL. */
sx_compiled *sx_launches_compiled(const sx_program *p, int64_t batch);
/* Output i of the step reported last, if the last run was a launch; else *out_done is false. */
SX_MUST_USE sx_status sx_launches_read(sx_program *p, int i, void *data, bool *out_done);

#endif
